"""The two attribute values with a grammar: the candidates of a `srcset`, the target of a `meta` refresh."""

from __future__ import annotations

import re

__all__ = ["refresh_target", "srcset_urls"]

# HTML, "parse a srcset attribute": an address runs to white space; commas at its end mean that it has no
# descriptors; else these run to the next comma outside brackets. Possessive throughout, and the address optional, so
# that nothing is read twice: linear.
_CANDIDATES = re.compile(r"[ \t\n\f\r,]*+(?:([^ \t\n\f\r]++)(?:(?<=,)|[^,(]*+(?:\([^)]*+\)?+[^,(]*+)*+))?+").findall
# HTML, "shared declarative refresh steps", also without the number, as authors write it; a number that runs
# into something else is no refresh.
_REFRESH = re.compile(
    r"\s*+(?:[\d.]++(?:\s*+[;,]|\s|\Z)|(?![\d.]))\s*+(?:url\s*+=\s*+)?+(.*)", re.IGNORECASE | re.DOTALL
)
_NUMBER_ONLY = re.compile(r"\s*+[\d.]++\s*+[;,]?+\s*+\Z")


def srcset_urls(value: str) -> list[str]:
    """Return the addresses of a `srcset` or `imagesrcset` in order, without their descriptors."""
    urls: list[str] = [url.rstrip(",") for url in _CANDIDATES(value) if url]
    return urls


def refresh_target(content: str) -> str:
    """Return the URL of a refresh's `content`, or nothing when it only reloads the page."""
    match = _REFRESH.match(content)
    if match is None or _NUMBER_ONLY.match(content):
        return ""
    target: str = match[1]
    quote = target[:1]
    if quote in {'"', "'"}:
        return target[1:].partition(quote)[0]
    return target
