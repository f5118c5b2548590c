"""Keys that captures are looked up by: http and https are one; a loose key knows no order and no cache-busters.

The database's keys are coarse: what it finds by them is compared by `spelled` and `loose_key`.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from email.utils import formatdate

from muniment.clock import iso_us
from muniment.model.url import normalise

__all__ = [
    "BUSTERS",
    "full_stamp",
    "http_date",
    "kept_arguments",
    "loose_key",
    "micros_of",
    "spelled",
    "stamp",
    "wanted_url",
]

BUSTERS = (
    r"(?:_|cb|cachebuster|cachebust|nocache|no_cache|rand|random|rnd|ts|timestamp|_ts|_dc|__t)=[0-9.]*"
    r"|[a-z]=1[0-9]{12}|[^=]*=0\.[0-9]{10,}"  # the time in ms under a letter, and what Math.random() gives
)
"""Arguments that pages add so that no cache answers: a number by one of these names."""
_BUSTER = re.compile(BUSTERS, re.IGNORECASE | re.ASCII)
_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})")
_UNRESERVED = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"
_REWRITTEN = "!$'()*,:;@|[]^`{}\"<>\\"
"""Characters that rewriters and browsers escape or leave, each in its way."""
_IN_PATH = frozenset(_UNRESERVED + _REWRITTEN)
_IN_QUERY = _IN_PATH | {"/", "?"}
_TIME = re.compile(r"\d{1,20}", re.ASCII)
_SECONDS = 14
"""Digits of a time without its microseconds, which are six more."""


def spelled(url: str, *, with_scheme: bool = False) -> str:
    """A normalised URL in the one spelling of RFC 3986 §6.2.2, the characters of rewriters being unreserved, too."""
    scheme, _, rest = url.partition("://")
    if "%" in rest:
        path, mark, query = rest.partition("?")
        rest = _unescaped(path, _IN_PATH) + mark + _unescaped(query, _IN_QUERY)
    return f"{scheme}://{rest}" if with_scheme else rest


def loose_key(url: str) -> str:
    """What URLs have in common that differ in the order of their arguments and in cache-busters."""
    path, _, query = spelled(url).partition("?")
    return "?".join((path, "&".join(sorted(kept_arguments(query)))))


def kept_arguments(query: str) -> list[str]:
    """The arguments of a query without cache-busters."""
    return [one for one in query.split("&") if one and not _BUSTER.fullmatch(one)]


def _unescaped(text: str, plain: frozenset[str]) -> str:
    def one(found: re.Match[str]) -> str:
        character = chr(int(found[1], 16))
        return character if character in plain else found[0].upper()

    return _ESCAPE.sub(one, text)


def wanted_url(text: str) -> str:
    """The URL that somebody asks for: as typed, with a scheme if it has none; empty when it is not one."""
    text = text.strip()
    if not re.match(r"[a-zA-Z][a-zA-Z0-9+.-]*://", text):
        text = re.sub(r"^(https?):/+", r"\1://", text) if re.match(r"https?:/", text) else f"http://{text}"
    return normalise(text) or ""


def stamp(at_us: int) -> str:
    """The fourteen digits of a time, UTC."""
    return full_stamp(at_us)[:_SECONDS]


def full_stamp(at_us: int) -> str:
    """The twenty digits of a time with its microseconds, UTC."""
    return re.sub(r"\D", "", iso_us(at_us))


def http_date(at_us: int) -> str:
    """A time as headers have it."""
    return formatdate(at_us // 1_000_000, usegmt=True)


def micros_of(text: str) -> int | None:
    """The time of 1 to 20 digits or of ISO 8601, in Unix microseconds; None for another text."""
    digits = text if _TIME.fullmatch(text) else re.sub(r"\D", "", text.partition("+")[0])[:_SECONDS]
    if len(digits) < 4:
        return None
    seconds, fraction = digits[:_SECONDS], digits[_SECONDS:]
    full = seconds + "00000101000000"[len(seconds) :]
    numbers = (int(full[:4]), *(int(full[at : at + 2]) for at in range(4, _SECONDS, 2)))
    try:
        at = datetime(*numbers, tzinfo=UTC)  # type: ignore[arg-type, misc]  # six numbers
    except ValueError:
        return None
    return int(at.timestamp()) * 1_000_000 + int(fraction.ljust(6, "0"))
