"""Signing in on the loopback: a ticket that works once, and a signed cookie that outlives a restart."""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from contextlib import suppress
from pathlib import Path

from muniment.clock import monotonic, now_ms

__all__ = ["SESSION_S", "Tickets", "kept_key"]

SESSION_S = 12 * 3600
_TICKET_S = 60.0
_KEY_BYTES = 32
_MOST_ENDED = 10_000


class Tickets:
    """Gives out tickets and knows sessions. Nothing of a session is kept but that it was ended."""

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._ticket: tuple[str, float] | None = None
        self._ended: dict[str, None] = {}

    def issue(self) -> str:
        """A new ticket, good for one use within a minute; the one before is worth nothing."""
        made = secrets.token_urlsafe(24)
        self._ticket = made, monotonic() + _TICKET_S
        return made

    def session(self, ticket: str) -> str | None:
        """The session that a ticket opens; None for one that is used, late or wrong."""
        if self._ticket is None:
            return None
        right, until = self._ticket
        if not hmac.compare_digest(right.encode(), ticket.encode("utf-8", "replace")):
            return None
        self._ticket = None
        if monotonic() > until:
            return None
        told = f"{secrets.token_urlsafe(12)}.{now_ms() // 1000 + SESSION_S}"
        return f"{told}.{self._signature(told)}"

    def is_open(self, session: str) -> bool:
        """Whether a session was opened here, and is neither over nor ended."""
        told, _, signature = session.rpartition(".")
        if session in self._ended or not hmac.compare_digest(self._signature(told), signature):
            return False
        return int(told.rpartition(".")[2]) > now_ms() // 1000

    def end(self, session: str) -> None:
        """End a session."""
        if self.is_open(session):
            while len(self._ended) >= _MOST_ENDED:
                del self._ended[next(iter(self._ended))]
            self._ended[session] = None

    def _signature(self, told: str) -> str:
        return hmac.new(self._key, told.encode("utf-8", "replace"), hashlib.sha256).hexdigest()


def kept_key(directory: Path) -> bytes:
    """The key of this user's sessions, made at first; one for this process alone where none can be kept."""
    path = directory / "dashboard.key"
    with suppress(OSError):
        directory.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError):
            made = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            try:
                os.write(made, secrets.token_bytes(_KEY_BYTES))
            finally:
                os.close(made)
        found = path.read_bytes()
        if len(found) == _KEY_BYTES:
            return found
    return secrets.token_bytes(_KEY_BYTES)
