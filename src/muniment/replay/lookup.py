"""Keys that captures are looked up by: http and https are one; a loose key knows no order and no cache-busters."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import xxhash

from muniment.clock import iso_us
from muniment.model.url import normalise

__all__ = ["exact_key", "loose_key", "micros_of", "stamp", "wanted_url"]

_BUSTERS = re.compile(
    r"(?:_|cb|cachebuster|cachebust|nocache|no_cache|rand|random|rnd|ts|timestamp|_ts|_dc|__t)=[0-9.]*", re.IGNORECASE
)
"""Arguments that pages add so that no cache answers: a number by one of these names."""
_TIME = re.compile(r"\d{1,14}")
_SIGNED = 1 << 63


def exact_key(url: str) -> int:
    """A number for a URL, whatever its scheme."""
    return _number(url.partition("://")[2])


def loose_key(url: str) -> int:
    """A number for a URL whatever its scheme, the order of its arguments and its cache-busters."""
    rest = url.partition("://")[2]
    path, mark, query = rest.partition("?")
    if not mark:
        return _number(path)
    kept = sorted(one for one in query.split("&") if one and not _BUSTERS.fullmatch(one))
    return _number(f"{path}?{'&'.join(kept)}" if kept else path)


def _number(text: str) -> int:
    # DuckDB's integers have a sign
    return xxhash.xxh3_64_intdigest(text.encode("utf-8", "replace")) - _SIGNED


def wanted_url(text: str) -> str:
    """The URL that somebody asks for: as typed, with a scheme if it has none; empty when it is not one."""
    text = text.strip()
    if not re.match(r"[a-zA-Z][a-zA-Z0-9+.-]*://", text):
        text = re.sub(r"^(https?):/+", r"\1://", text) if re.match(r"https?:/", text) else f"http://{text}"
    return normalise(text) or ""


def stamp(at_us: int) -> str:
    """The fourteen digits of a time, UTC."""
    return re.sub(r"\D", "", iso_us(at_us))[:14]


def micros_of(text: str) -> int | None:
    """The time of 1 to 14 digits or of ISO 8601, in Unix microseconds; None for another text."""
    digits = text if _TIME.fullmatch(text) else re.sub(r"\D", "", text.partition("+")[0])[:14]
    if len(digits) < 4:
        return None
    full = digits + "00000101000000"[len(digits) :]
    try:
        at = datetime.strptime(full, "%Y%m%d%H%M%S").replace(tzinfo=UTC)
    except ValueError:
        return None
    return int(at.timestamp()) * 1_000_000
