"""The jar: cookies by domain, and which of them a URL is sent (RFC 6265 §5.3, §5.4; 6265bis §5.7)."""

from __future__ import annotations

from collections.abc import Iterable

from muniment.model.cookie import Cookie
from muniment.model.url import host_of, path_of
from muniment.rules.cookies import domains_of

__all__ = ["Jar", "alive"]

_MOST_DOMAINS = 10_000
_MOST_OF_A_DOMAIN = 180
"""As many as browsers keep."""

_Shelf = dict[tuple[str, str], Cookie]


class Jar:
    """A bounded jar; of the domains it may hold, those that came first go first."""

    def __init__(self, most_domains: int = _MOST_DOMAINS) -> None:
        self._most = most_domains
        self._domains: dict[str, _Shelf] = {}

    def __bool__(self) -> bool:
        """Whether it holds anything, so that a crawl without cookies asks no further."""
        return bool(self._domains)

    def knows(self, domain: str) -> bool:
        """Whether the domain has a place here, be it empty."""
        return domain in self._domains

    def open(self, domain: str) -> None:
        """Give a domain a place."""
        if domain not in self._domains:
            while len(self._domains) >= self._most:
                del self._domains[next(iter(self._domains))]
            self._domains[domain] = {}

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
        shelf[key] = cookie
        if len(shelf) <= _MOST_OF_A_DOMAIN:
            return []
        now = cookie.set_at // 1_000_000
        # deletions and what is over go first, then what is not Secure, then the oldest (6265bis §5.7)
        out = min(shelf.values(), key=lambda other: (not _over(other, now), other.secure, other.set_at))
        del shelf[out.name, out.path]
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
        return [
            cookie
            for domain in domains_of(host)
            for cookie in self._domains.get(domain, {}).values()
            if not cookie.host_only or domain == host
        ]

    def header(self, url: str, now: int) -> str:
        """The Cookie field for a normalised URL at `now` (Unix s); empty when none goes there."""
        path, safe = path_of(url), url.startswith("https://")
        going = [
            cookie
            for cookie in self.of(host_of(url))
            if not _over(cookie, now) and (safe or not cookie.secure) and _path_matches(path, cookie.path)
        ]
        going.sort(key=lambda cookie: (-len(cookie.path), cookie.set_at, cookie.name))
        return "; ".join(f"{cookie.name}={cookie.value}" if cookie.name else cookie.value for cookie in going)


def alive(cookies: Iterable[Cookie], now: int) -> list[Cookie]:
    """Those of the cookies that are neither over at `now` (Unix s) nor deletions."""
    return [cookie for cookie in cookies if not _over(cookie, now)]


def _over(cookie: Cookie, now: int) -> bool:
    return 0 < cookie.expires_at <= now


def _path_matches(path: str, wanted: str) -> bool:
    return path.startswith(wanted) and (len(path) == len(wanted) or wanted.endswith("/") or path[len(wanted)] == "/")
