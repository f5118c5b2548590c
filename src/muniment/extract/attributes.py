"""Attributes that are more than one URL: `srcset`, a refresh, the words of a `rel`, and what lazy loaders set late."""

from __future__ import annotations

import re
from collections.abc import Iterator

import re2

from muniment.model.link import FoundAs

__all__ = ["LATE_TAGS", "byte_options", "late_links", "late_names", "refresh_target", "rel_found_as", "srcset_urls"]


def byte_options() -> re2.Options:
    """Options of a pattern of RE2 that says whether bytes have something: five times as fast as `re`."""
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.never_capture = True
    return options


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
# What scripts of lazy loading copy to `src`, `srcset` and styles once an element is in view.
_LATE = (
    rb"-(?:[a-z]{0,12}src(?:set)?|original(?:-set)?|lazy(?:load|-background)?|image|file|[a-z]{0,12}poster|lazyload|echo"
    rb"|full|large|thumb|hires|retina|bg(?:set|-image)?|background(?:-image)?|href)"
)
# By the hyphen alone, which is rare: a pattern that begins with a frequent letter takes four times as long.
_MAY_BE_LATE = re2.compile(_LATE + rb"\s*=", byte_options()).search
_MAY_BE_IN_CAPITALS = re2.compile(rb"DATA-", byte_options()).search
_LATE_NAMES = re.compile(rb"data[a-z-]{0,30}" + _LATE + rb"(?=\s*=)").findall
_LATE_NAMES_IN_CAPITALS = re.compile(rb"data[a-z-]{0,30}" + _LATE + rb"(?=\s*=)", re.IGNORECASE).findall
LATE_TAGS = frozenset({"img", "source", "image", "iframe", "video", "audio", "embed", "amp-img"})
"""Elements of which such an attribute is nothing else."""
_CERTAIN = frozenset({"data-src", "data-original", "data-lazy-src", "data-original-src", "data-full-src"})
_BACKGROUNDS = frozenset({"data-bg", "data-background-image"})
_SETS = ("srcset", "-set", "bgset")
# some of these names are also switches (`data-lazy="true"`), texts, or hold a script's settings
_ADDRESS = re.compile(r"(?![\[{])(?:[^\s/]*+/\S*+|\S{1,200}\.[A-Za-z]\w{1,4}(?:[?#]\S*+)?)").fullmatch
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


def late_names(markup: bytes) -> tuple[str, ...]:
    """The attributes of lazy loading that a document has, in lower case, and `data-href`."""
    found: list[bytes] = []
    if _MAY_BE_LATE(markup) is not None:
        found = _LATE_NAMES(markup)
    if _MAY_BE_IN_CAPITALS(markup) is not None:
        found += _LATE_NAMES_IN_CAPITALS(markup)
    return tuple(dict.fromkeys(name.decode().lower() for name in found))


def late_links(name: str, value: str, *, certain: bool) -> Iterator[tuple[str, FoundAs]]:
    """The addresses in an attribute of lazy loading; `certain`: it is on an element that shows something."""
    if name.endswith(_SETS):
        yield from ((url, FoundAs.SRCSET_LIKE) for url in srcset_urls(value))
    elif (certain and name in _CERTAIN) or name in _BACKGROUNDS or _ADDRESS(value.strip()):
        yield value, FoundAs.DATA_SRC
