"""The bytes of a request: where it goes and what it says (RFC 9112 §3)."""

from __future__ import annotations

import re
from collections.abc import Iterable

from muniment.fetch.config import FetchConfig
from muniment.http.credentials import CredentialReach

__all__ = ["Requests", "ServerOrigin", "UnsupportedSchemeError"]

_PORTS = {"http": 80, "https": 443}
_MAX_ORIGINS = 20_000
_ANYTHING = ("Accept", "*/*")
# What browsers say of the pages that they ask for, without what would be untrue of us: Sec-Fetch-*, client hints.
_BROWSER = (
    ("Accept", "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8"),
    ("Accept-Language", "en-US,en;q=0.5"),
)
_UPGRADE = ("Upgrade-Insecure-Requests", "1")
# A header value may come from a server (an ETag, a cookie); none may begin another header.
_BREAKS = re.compile(r"[\r\n\0]+")
_NOT_A_TARGET = re.compile(r"[\x00-\x20\x7f-\U0010ffff]")


Pairs = tuple[tuple[str, str], ...]
_NEVER_ASKED = ("if-none-match", "if-modified-since")
"""A 304 in an archive would have no body to be shown: the client has none of it either, its caches are empty."""


class UnsupportedSchemeError(ValueError):
    """The URL is not one of http or https, or has no host."""


class ServerOrigin:
    """Scheme, host and port, and the part of a request that is the same for all of its URLs."""

    __slots__ = ("base", "host", "host_header", "key", "lines", "port", "secure")

    def __init__(self, scheme: str, host: str, port: int) -> None:
        self.secure = scheme == "https"
        self.host = host
        """The name or address, IPv6 in brackets."""
        self.port = port
        self.key = (self.secure, port)
        """The key of this origin among those of its host."""
        self.host_header = host if port == _PORTS[scheme] else f"{host}:{port}"
        self.base: list[tuple[str, str]] = []
        """What is said to it always, `Host` apart."""
        self.lines = b""


class Requests:
    """Builds requests of one configuration; remembers the part that each origin's requests share."""

    def __init__(self, config: FetchConfig) -> None:
        self._config, self._reach = config, CredentialReach(config.credentials)
        self._base = _base_headers(config, config.headers)
        given = {header.name.lower() for header in config.credentials.headers}
        self._names = frozenset(name.lower() for name, _ in self._base) | given | {"host"}
        self._origins: dict[str, ServerOrigin] = {}

    def split(self, url: str) -> tuple[ServerOrigin, str]:
        """The origin and the request target of a normalised URL; raises UnsupportedSchemeError."""
        start = url.find("://") + 3
        end = url.find("/", start)
        if end < 0 or start < 3:
            end = len(url)
        origin = self._origins.get(url[:end])
        if origin is None:
            origin = self._origin(url[:end], start)
        target = url[end:]
        if "#" in target:
            target = target.partition("#")[0]
        return origin, target or "/"

    def build(self, origin: ServerOrigin, target: str, extra: Iterable[tuple[str, str]] = ()) -> bytes:
        """The request; an extra header takes the place of a built-in one of its name, but no Referer a user's."""
        if not target.isascii() or _NOT_A_TARGET.search(target):
            target = _NOT_A_TARGET.sub(_escape, target)
        if not extra:
            return b"GET %b HTTP/1.1\r\n%b\r\n" % (target.encode(), origin.lines)
        given = {name.lower() for name, _ in extra}
        lines = origin.lines
        if given & self._names:
            own = {name.lower() for name, _ in origin.base}
            if "referer" in given & own:
                extra = [pair for pair in extra if pair[0].lower() != "referer"]
                given.discard("referer")
            host = [] if "host" in given else [("Host", origin.host_header)]
            base = origin.base
            if "user-agent" in given & own:
                # it stands where it always does: servers that tell browsers apart look at the order
                agent = next(pair for pair in extra if pair[0].lower() == "user-agent")
                base = [agent if pair[0].lower() == "user-agent" else pair for pair in base]
                extra = [pair for pair in extra if pair is not agent]
                given.discard("user-agent")
            lines = _lines(host + [pair for pair in base if pair[0].lower() not in given])
        return b"GET %b HTTP/1.1\r\n%b%b\r\n" % (target.encode(), lines, _lines(extra))

    def forward(self, origin: ServerOrigin, method: str, target: str, version: str, headers: Pairs) -> bytes:
        """The head of a client's own request: as it was written, but for what `_NEVER_ASKED` names.

        Headers that were given for every request take the place of the client's of that name. A client that takes
        gzip is asked for in the codings that are kept.
        """
        given = [pair for pair in self._given_to(origin) if pair[0].lower() != "host"]
        taken = {name.lower() for name, _ in given}
        lines = []
        for name, value in headers:
            lower = name.lower()
            if lower in _NEVER_ASKED:
                continue
            if lower in taken:
                lines += [pair for pair in given if pair[0].lower() == lower]
                given = [pair for pair in given if pair[0].lower() != lower]
            elif lower == "accept-encoding":
                zipped = self._config.compression and "gzip" in value.lower()
                lines.append((name, "gzip, deflate" if zipped else "identity"))
            else:
                lines.append((name, value))
        if not any(name.lower() == "host" for name, _ in lines):
            lines.insert(0, ("Host", origin.host_header))
        return b"%b %b HTTP/%b\r\n%b\r\n" % (
            method.encode(),
            target.encode("latin-1"),
            version.encode(),
            _lines([*lines, *given]),
        )

    def _given_to(self, origin: ServerOrigin) -> Pairs:
        return self._config.headers + self._reach.headers(
            f"{'https' if origin.secure else 'http'}://{origin.host_header}"
        )

    def _base_of(self, origin: ServerOrigin) -> list[tuple[str, str]]:
        added = self._reach.headers(f"{'https' if origin.secure else 'http'}://{origin.host_header}")
        return _base_headers(self._config, self._config.headers + added) if added else self._base

    def _origin(self, prefix: str, start: int) -> ServerOrigin:
        scheme = prefix[: start - 3].lower() if start >= 3 else ""
        authority = prefix[start:].rpartition("@")[2]
        if scheme not in _PORTS or not authority:
            raise UnsupportedSchemeError(f"cannot fetch {scheme or 'this'}: URLs")
        host, colon, port = authority.rpartition(":")
        if not colon or "]" in port:
            host, port = authority, ""
        origin = ServerOrigin(scheme, host, int(port) if port else _PORTS[scheme])
        origin.base = self._base_of(origin)
        origin.lines = _lines([("Host", origin.host_header), *origin.base])
        if len(self._origins) >= _MAX_ORIGINS:
            self._origins.clear()
        self._origins[prefix] = origin
        return origin


def _base_headers(config: FetchConfig, extra: tuple[tuple[str, str], ...]) -> list[tuple[str, str]]:
    coding = ("Accept-Encoding", "gzip, deflate" if config.compression else "identity")
    agent, connection = ("User-Agent", config.user_agent), ("Connection", "keep-alive")
    base = [agent, *_BROWSER, coding, connection, _UPGRADE] if config.polite else [agent, _ANYTHING, coding, connection]
    given = {name.lower() for name, _ in extra}
    return [pair for pair in base if pair[0].lower() not in given] + list(extra)


def _lines(headers: Iterable[tuple[str, str]]) -> bytes:
    text = "".join(f"{name}: {_BREAKS.sub(' ', value)}\r\n" for name, value in headers)
    # Header values are bytes that were read as Latin-1; what is not Latin-1 was typed by a person, in UTF-8.
    return text.encode("latin-1") if _is_latin1(text) else text.encode()


def _is_latin1(text: str) -> bool:
    return text.isascii() or max(text) <= "\xff"


def _escape(match: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in match[0].encode("utf-8", "surrogatepass"))
