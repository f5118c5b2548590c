"""Attributes that are more than one URL: `srcset`, a refresh, the words of a `rel`, and what lazy loaders set late."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from muniment.model.link import FoundAs

__all__ = ["LAZY", "lazy_links", "refresh_target", "rel_found_as", "srcset_urls"]

# HTML, "parse a srcset attribute": an address runs to white space; commas at its end mean that it has no
# descriptors; else these run to the next comma outside brackets. The address is optional and nothing can fail after it,
# so that nothing is read twice: linear.
_CANDIDATES = re.compile(
    r"[ \t\n\f\r,]*+(?:([^ \t\n\f\r]++)(?:(?<=,)|[^,(]*+(?:\([^)]*+\)?+[^,(]*+){0,1000}))?"
).findall
# HTML, "shared declarative refresh steps", also without the number, as authors write it; a number that runs
# into something else is no refresh.
_REFRESH = re.compile(
    r"\s*+(?:[\d.]++(?:\s*+[;,]|\s|\Z)|(?![\d.]))\s*+(?:url\s*+=\s*+)?(.*)", re.IGNORECASE | re.DOTALL
)
_ICONS = {"icon", "apple-touch-icon", "apple-touch-icon-precomposed", "mask-icon"}
_PRELOADS = {"preload", "modulepreload"}
_HINTS = {"dns-prefetch", "preconnect"}
# What scripts of lazy loading copy to `src` and `srcset` once an element is in view.
_LATE_URLS = (
    "data-src", "data-original", "data-lazy-src", "data-lazy", "data-lazyload", "data-original-src", "data-hi-res-src",
    "data-image", "data-img-src", "data-large-file", "data-orig-file", "data-poster", "data-flickity-lazyload",
)  # fmt: skip
_LATE_SETS = ("data-srcset", "data-lazy-srcset", "data-original-set")
LAZY = frozenset((*_LATE_URLS, *_LATE_SETS))
"""Attributes of lazy loading."""
_CERTAIN = frozenset({"data-src", "data-original", "data-lazy-src", "data-original-src"})
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


def rel_found_as(rel: str, otherwise: FoundAs) -> FoundAs | None:
    """The kind of document that a `<link>` or `Link` header of this relation refers to; None for hints."""
    words = set(rel.lower().split())
    if "stylesheet" in words:
        return FoundAs.STYLESHEET
    if words & _ICONS:
        return FoundAs.ICON
    if "manifest" in words:
        return FoundAs.MANIFEST
    if words & _PRELOADS:
        return FoundAs.PRELOAD
    return None if words & _HINTS else otherwise


def lazy_links(get: Callable[[str], str | None]) -> Iterator[str]:
    """The addresses in the attributes of lazy loading; `get` gives an attribute's value."""
    for name in _LATE_URLS:
        value = get(name)
        # some of these names are also switches (`data-lazy="true"`) or hold a script's settings
        if value and (name in _CERTAIN or (("/" in value or "." in value) and value[0] not in "{[")):
            yield value
    for name in _LATE_SETS:
        yield from srcset_urls(get(name) or "")
