"""Cookies: what a Set-Cookie field means, and which cookies a URL is sent (RFC 6265, with the prefixes of 6265bis)."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from muniment.model.cookie import Cookie
from muniment.model.url import host_of, normalise, path_of
from muniment.rules.domains import is_public_suffix

__all__ = ["domains_of", "parse_set_cookie"]

_MOST_BYTES = 4096
"""Of name and value together; longer ones are ignored (6265bis §5.6)."""
_MOST_ATTRIBUTE = 1024
_LONGEST_S = 400 * 24 * 3600
"""The farthest end that a cookie may have (6265bis §5.5)."""
_GONE = 1
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_SPACE = " \t"


def parse_set_cookie(field: str, url: str, now_us: int) -> Cookie | None:
    """The cookie that an answer from a normalised URL sets; None when the field, or its origin, makes it none."""
    pair, *rest = field.split(";")
    name, equals, value = pair.partition("=")
    name, value = (name.strip(_SPACE), value.strip(_SPACE)) if equals else ("", pair.strip(_SPACE))
    if (not name and not value) or len(name) + len(value) > _MOST_BYTES or _CONTROL.search(field):
        return None
    said = _attributes(rest)
    host = host_of(url)
    domain = _domain(said.get("domain", ""), host)
    if domain is None:
        return None
    path = said.get("path", "")
    cookie = Cookie(
        domain=domain or host,
        name=name,
        path=path if path.startswith("/") else _default_path(url),
        value=value,
        host_only=not domain,
        secure="secure" in said,
        http_only="httponly" in said,
        expires_at=_expires(said, now_us // 1_000_000),
        set_at=now_us,
        http_host="" if url.startswith("https:") else host,
    )
    return cookie if _honest(cookie, url) else None


def _attributes(parts: list[str]) -> dict[str, str]:
    """The attributes by name in lower case; the last of a name counts."""
    said: dict[str, str] = {}
    for part in parts:
        name, _, value = part.partition("=")
        value = value.strip(_SPACE)
        if len(value) <= _MOST_ATTRIBUTE:
            said[name.strip(_SPACE).lower()] = value
    return said


def _domain(given: str, host: str) -> str | None:
    """The domain that a cookie is for: empty for the host alone, None when the host may not set it."""
    domain = _canonical(given.removeprefix(".")) if given else ""
    if not domain:
        return "" if domain is not None else None
    if is_public_suffix(domain):
        # a host that is one itself, as user.github.io's parent, keeps its cookie to itself
        return "" if domain == host else None
    return domain if domain in domains_of(host) else None


def _canonical(domain: str) -> str | None:
    """A domain in the form of normalised URLs; None for an invalid domain."""
    if domain.isascii() and re.fullmatch(r"[a-z0-9.-]+", domain):
        return domain
    url = normalise(f"http://{domain}/") if domain.strip(_SPACE) and not re.search(r"[/?#@:\\]", domain) else None
    return host_of(url) if url else None


def _honest(cookie: Cookie, url: str) -> bool:
    """Whether the origin may set a cookie that says of itself what this one says (6265bis §4.1.3, §5.6)."""
    safe = url.startswith("https://")
    prefix = cookie.name.lower()
    if cookie.secure and not safe:
        return False
    if prefix.startswith("__secure-"):
        return cookie.secure
    if prefix.startswith("__host-"):
        return cookie.secure and cookie.host_only and cookie.path == "/"
    return bool(cookie.name) or not cookie.value.lower().startswith(("__secure-", "__host-"))


def _default_path(url: str) -> str:
    path = path_of(url)
    return path[: path.rfind("/")] or "/"


def _expires(said: dict[str, str], now: int) -> int:
    age = said.get("max-age", "")
    if re.fullmatch(r"-?[0-9]+", age):
        seconds = int(age[:12])
        return now + min(seconds, _LONGEST_S) if seconds > 0 else _GONE
    at = _date(said.get("expires", ""))
    return 0 if at is None else max(_GONE, min(at, now + _LONGEST_S))


_DELIMITERS = re.compile(r"[\x09\x20-\x2f\x3b-\x40\x5b-\x60\x7b-\x7e]+")
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DATE_PARTS = (
    ("time", re.compile(r"(\d{1,2}):(\d{1,2}):(\d{1,2})(?:\D.*)?", re.ASCII)),
    ("day", re.compile(r"(\d{1,2})(?:\D.*)?", re.ASCII)),
    ("month", re.compile(rf"({'|'.join(_MONTHS)}).*", re.IGNORECASE)),
    ("year", re.compile(r"(\d{2,4})(?:\D.*)?", re.ASCII)),
)


def _date(text: str) -> int | None:
    """Unix seconds of a date in any of the forms that servers write (RFC 6265 §5.1.1)."""
    found: dict[str, tuple[str, ...]] = {}
    for token in _DELIMITERS.split(text):
        for part, pattern in _DATE_PARTS:
            match = pattern.fullmatch(token) if part not in found else None
            if match:
                found[part] = match.groups()
                break
    if len(found) < len(_DATE_PARTS):
        return None
    year = int(found["year"][0])
    year += 1900 if 70 <= year <= 99 else 2000 if year <= 69 else 0
    month = _MONTHS.index(found["month"][0].lower()) + 1
    try:
        moment = datetime(year, month, int(found["day"][0]), *map(int, found["time"]), tzinfo=UTC)  # type: ignore[misc,arg-type]
    except ValueError:
        return None
    return int(moment.timestamp()) if year >= 1601 else None


def domains_of(host: str) -> list[str]:
    """The domains whose cookies a host may be sent: itself and, for a name, every parent."""
    if host.startswith("[") or host.rpartition(".")[2].isdigit():
        return [host]
    labels = host.split(".")
    return [".".join(labels[at:]) for at in range(len(labels))]
