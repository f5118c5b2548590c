"""Keys that captures are looked up by: http and https are one; a loose key knows no order and no cache-busters."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from email.utils import formatdate

from muniment.clock import iso_us
from muniment.model.url import normalise

__all__ = ["MACROS", "full_stamp", "http_date", "micros_of", "stamp", "wanted_url"]

_BUSTERS = (
    r"(?:_|cb|cachebuster|cachebust|nocache|no_cache|rand|random|rnd|ts|timestamp|_ts|_dc|__t)=[0-9.]*"
    r"|[a-z]=1[0-9]{12}|[^=]*=0\.[0-9]{10,}"  # the time in ms under a letter, and what Math.random() gives
)
"""Arguments that pages add so that no cache answers: a number by one of these names."""
_TIME = re.compile(r"\d{1,20}", re.ASCII)
_SECONDS = 14
"""Digits of a time without its microseconds, which are six more."""
MACROS = (
    "CREATE MACRO rest(url) AS substr(url, instr(url, '://') + 3)",
    "CREATE MACRO exact_key(url) AS hash(rest(url))",
    "CREATE MACRO path_key(url) AS hash(split_part(rest(url), '?', 1))",
    "CREATE MACRO kept(url) AS list_sort(list_filter(string_split(substr(rest(url), instr(rest(url), '?') + 1), '&'), "
    f"lambda one: one <> '' AND NOT regexp_full_match(one, '{_BUSTERS}', 'i')))",
    "CREATE MACRO arguments(url) AS CASE WHEN contains(url, '?') THEN kept(url) ELSE [] END",
)
"""SQL on URLs: what follows the scheme, numbers for that and for its path, and the arguments of its query, in order
and without cache-busters."""


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
    try:
        at = datetime.strptime(full, "%Y%m%d%H%M%S").replace(tzinfo=UTC)
    except ValueError:
        return None
    return int(at.timestamp()) * 1_000_000 + int(fraction.ljust(6, "0"))
