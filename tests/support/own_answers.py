"""What a relay says itself for a while, instead of asking its server; standard library only."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass
from http import HTTPStatus

__all__ = ["OwnAnswers"]


@dataclass(frozen=True, slots=True)
class _Answer:
    """One answer, for as long as it is given."""

    until: float
    status: int
    headers: tuple[tuple[str, str], ...]

    def to(self, method: bytes) -> bytes:
        """All of it as it is sent."""
        phrase = HTTPStatus(self.status).phrase
        body = f"<title>{self.status}</title><p>{phrase}".encode()
        lines = [f"HTTP/1.1 {self.status} {phrase}", "Content-Type: text/html", f"Content-Length: {len(body)}"]
        lines += [f"{name}: {value}" for name, value in self.headers]
        return "\r\n".join([*lines, "", ""]).encode() + (b"" if method == b"HEAD" else body)


class OwnAnswers:
    """The answers that are given now, to all requests or to those for one path, and how many were given."""

    def __init__(self) -> None:
        self.given: Counter[str] = Counter()
        """Path → how often it was answered."""
        self._now: dict[str, _Answer] = {}

    def begin(self, status: int, seconds: float, headers: tuple[tuple[str, str], ...] = (), path: str = "") -> None:
        """Answer so for so long; without a path, whatever is asked for."""
        self._now[path] = _Answer(time.monotonic() + seconds, status, headers)

    def end(self) -> None:
        """Answer nothing any more."""
        self._now.clear()

    def to(self, request: bytes) -> bytes:
        """The answer to a request, of which this is the beginning; empty when the server is to be asked."""
        method, path = request.split(b" ", 2)[:2]
        asked = path.decode("latin-1")
        for answer in (self._now.get(asked), self._now.get("")):
            if answer is not None and time.monotonic() < answer.until:
                self.given[asked.partition("?")[0]] += 1
                return answer.to(method)
        return b""
