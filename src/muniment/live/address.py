"""The address of a Redis server, as given and as its client wants it."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from msgspec import Struct

from muniment.errors import UsageError

__all__ = ["RedisAddress", "parse_redis"]

_PORT = 6379
_EXAMPLE = "write redis://HOST:6379/0 or unix:///PATH"


class RedisAddress(Struct, frozen=True):
    """Where a server is; its password is beside it, for it is never shown."""

    host: str = ""
    port: int = _PORT
    path: str = ""
    """Of a socket, in place of host and port."""
    db: int = 0
    user: str = ""
    tls: bool = False

    def __str__(self) -> str:
        """For messages."""
        return f"unix://{self.path}" if self.path else f"{self.host}:{self.port}/{self.db}"

    def options(self, password: str) -> dict[str, Any]:
        """What the client is made with."""
        place: dict[str, Any] = {"unix_socket_path": self.path} if self.path else {"host": self.host, "port": self.port}
        if self.tls:
            place["ssl"] = True
        return {**place, "db": self.db, "username": self.user or None, "password": password or None}


def parse_redis(text: str, *, secret: bool = False) -> tuple[RedisAddress, str]:
    """The address and the password of a URL; raises UsageError for anything else.

    A password is refused unless the URL comes from a `secret` place: command lines can be read by everybody.
    """
    try:
        parts = urlsplit(text)
        port, password = parts.port, unquote(parts.password or "")
    except ValueError:
        raise UsageError(f"the address of Redis cannot be read; {_EXAMPLE}") from None
    if password and not secret:
        raise UsageError("a password in the address of Redis can be read by everybody: set MUNIMENT_REDIS_PASSWORD")
    if parts.scheme == "unix" and parts.path:
        number = (parse_qs(parts.query).get("db") or ["0"])[0]
        return RedisAddress(path=unquote(parts.path), db=_db(number), user=unquote(parts.username or "")), password
    if parts.scheme not in {"redis", "rediss"} or not parts.hostname:
        raise UsageError(f"{text.rpartition('@')[2]!r} is not an address of Redis; {_EXAMPLE}")
    number = parts.path.strip("/") or "0"
    user = unquote(parts.username or "")
    address = RedisAddress(parts.hostname, port or _PORT, "", _db(number), user, parts.scheme == "rediss")
    return address, password


def _db(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 5):
        raise UsageError(f"{text[:30]!r} is not the number of a Redis database; write 0, 1, 2 …")
    return int(text)
