"""The jar: cookies by domain, and which of them a URL is sent (RFC 6265 §5.3, §5.4; 6265bis §5.7)."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from muniment.http.cookies import domains_of
from muniment.model.cookie import Cookie
from muniment.model.url import host_of, path_of

__all__ = ["MOST_BYTES", "MOST_FIELD", "Jar", "alive"]

MOST_BYTES = 16 << 20
"""The default limit of a jar's memory."""
MOST_FIELD = 15 << 10
"""Bytes of a Cookie field: usual servers refuse a request whose header block has more than 16 KB."""
_MOST_OF_A_DOMAIN = 180
"""As many as browsers keep."""
_OF_A_DOMAIN, _OF_A_COOKIE = 300, 700
"""Bytes that each takes beside its texts, about."""


class _Shelf(dict[tuple[str, str], Cookie]):
    """The cookies of a domain, by name and path."""

    __slots__ = ("weight",)

    def __init__(self) -> None:
        self.weight = _OF_A_DOMAIN


def _weight(cookie: Cookie) -> int:
    return _OF_A_COOKIE + len(cookie.value) + len(cookie.name) + len(cookie.path) + len(cookie.domain)


def _unheard(_domain: str) -> None:
    return


class Jar:
    """A jar that is bounded in bytes; the least recently used domains go first, and `dropped` is called."""

    def __init__(self, most_bytes: int = MOST_BYTES, dropped: Callable[[str], None] = _unheard) -> None:
        self._most, self._dropped = most_bytes, dropped
        self._domains: dict[str, _Shelf] = {}
        """The one that was asked for longest ago first."""
        self.bytes = 0
        """About how much memory it takes."""

    def __bool__(self) -> bool:
        """Whether it holds anything, so that a crawl without cookies asks no further."""
        return bool(self._domains)

    def knows(self, domain: str) -> bool:
        """Whether the domain has a place here, be it empty."""
        return domain in self._domains

    def open(self, domain: str) -> None:
        """Give a domain a place."""
        if domain not in self._domains:
            self._domains[domain] = _Shelf()
            self._grow(domain, _OF_A_DOMAIN)

    def _grow(self, domain: str, weight: int) -> None:
        """More of a domain, which goes last: of one whose cookies are in use, some would be missed."""
        self.bytes += weight
        if self.bytes > self._most:
            self._domains[domain] = self._domains.pop(domain)
        while self.bytes > self._most and len(self._domains) > 1:
            other = next(iter(self._domains))
            self.bytes -= self._domains.pop(other).weight
            self._dropped(other)

    def _put(self, shelf: _Shelf, cookie: Cookie) -> None:
        key = cookie.name, cookie.path
        more = _weight(cookie)
        if key in shelf:
            more -= _weight(shelf[key])
        shelf[key] = cookie
        shelf.weight += more
        self._grow(cookie.domain, more)

    def _take_out(self, shelf: _Shelf, cookie: Cookie) -> None:
        less = _weight(shelf.pop((cookie.name, cookie.path)))
        shelf.weight -= less
        self.bytes -= less

    def keep(self, cookie: Cookie) -> list[Cookie] | None:
        """Take in a cookie; the ones that fell out for it, or None when it says nothing new, or may not say it."""
        if cookie.http_host and self._is_guarded(cookie):
            return None
        self.open(cookie.domain)
        shelf = self._domains[cookie.domain]
        key = (cookie.name, cookie.path)
        before = shelf.get(key)
        if before is not None and before.set_at >= cookie.set_at and not (cookie.secure and before.http_host):
            return None
        self._put(shelf, cookie)
        if len(shelf) <= _MOST_OF_A_DOMAIN:
            return []
        now = cookie.set_at // 1_000_000
        # deletions and what is over go first, then what is not Secure, then the oldest (6265bis §5.7)
        out = min(shelf.values(), key=lambda other: (not _over(other, now), other.secure, other.set_at))
        self._take_out(shelf, out)
        return [out]

    def _is_guarded(self, cookie: Cookie) -> bool:
        """Whether a Secure cookie stands where one that was said over http would: such a one is left alone."""
        now = cookie.set_at // 1_000_000
        return any(
            other.secure
            and other.name == cookie.name
            and _path_matches(cookie.path, other.path)
            and not _over(other, now)
            for domain in domains_of(cookie.http_host)
            for other in self._domains.get(domain, {}).values()
        )

    def of(self, host: str) -> list[Cookie]:
        """Every cookie of a host, deletions included."""
        found = []
        for domain in domains_of(host):
            shelf = self._domains.get(domain)
            if shelf is not None:
                self._domains[domain] = self._domains.pop(domain)
                found += [cookie for cookie in shelf.values() if not cookie.host_only or domain == host]
        return found

    def header(self, url: str, now: int) -> str:
        """The Cookie field for a normalised URL at `now` (Unix s); empty when none goes there.

        Of more than `MOST_FIELD` bytes, those of the longest paths go (RFC 6265 §5.4), each that still has room.
        """
        path, safe = path_of(url), url.startswith("https://")
        going = [
            cookie
            for cookie in self.of(host_of(url))
            if not _over(cookie, now) and (safe or not cookie.secure) and _path_matches(path, cookie.path)
        ]
        going.sort(key=lambda cookie: (-len(cookie.path), cookie.set_at, cookie.name))
        pairs = [f"{cookie.name}={cookie.value}" if cookie.name else cookie.value for cookie in going]
        return _fitting(pairs)


def _fitting(pairs: list[str]) -> str:
    """The first of them that fit into a field, joined."""
    field = "; ".join(pairs)
    if len(field) <= MOST_FIELD:
        return field
    kept, size = [], -2
    for pair in pairs:
        if size + 2 + len(pair) <= MOST_FIELD:
            kept.append(pair)
            size += 2 + len(pair)
    return "; ".join(kept)


def alive(cookies: Iterable[Cookie], now: int) -> list[Cookie]:
    """Those of the cookies that are neither over at `now` (Unix s) nor deletions."""
    return [cookie for cookie in cookies if not _over(cookie, now)]


def _over(cookie: Cookie, now: int) -> bool:
    return 0 < cookie.expires_at <= now


def _path_matches(path: str, wanted: str) -> bool:
    return path.startswith(wanted) and (len(path) == len(wanted) or wanted.endswith("/") or path[len(wanted)] == "/")
