"""Sitemaps (sitemaps.org): lists of pages and indexes of lists as XML, lists as text, and their names in robots.txt."""

from __future__ import annotations

import re
from collections.abc import Callable

from muniment.extract.xml import attribute, root_of, scanner
from muniment.model.link import FoundAs

__all__ = [
    "SITEMAP_ROOTS",
    "robots_sitemaps",
    "root_after_notice",
    "sitemap_links",
    "text_sitemap_links",
    "without_notice",
]

_Add = Callable[[str, FoundAs], None]

# `link` is xhtml:link, the same page in another language; the others are Google's image and video extensions.
_LOCATIONS = scanner("loc", "content_loc", "player_loc", "thumbnail_loc", "link")
_LINE = re.compile(r"^[ \t\ufeff]*+(https?://\S++)[ \t]*+\r?$", re.MULTILINE | re.IGNORECASE).finditer
_NAMED = re.compile(r"(?:^|[\r\n])[ \t\ufeff]*+sitemap[ \t]*+:[ \t]*+([^\s#]++)", re.IGNORECASE).finditer
SITEMAP_ROOTS = frozenset({"urlset", "sitemapindex"})
"""Names of the document's element, without prefix and in lower case."""
# Programs print before a document: notices of PHP, empty lines, the byte-order marks of their files.
_MOST_NOTICE = 64 << 10
_PROLOG = re.compile(rb"<\?xml\s").search
_ROOT = re.compile(r"<(?:[\w.-]{1,40}:)?(?:urlset|sitemapindex)[\s>]", re.IGNORECASE).search
_MOST_NAMED = 1000
"""Sitemaps that are taken from one robots.txt."""


def without_notice(payload: bytes) -> bytes:
    """A document from its XML declaration on, what a program printed before it left out."""
    found = _PROLOG(payload, 0, _MOST_NOTICE)
    return payload[found.start() :] if found else payload


def root_after_notice(text: str) -> int:
    """Where the element of a sitemap begins when something else stands before it; 0 when nothing does."""
    if root_of(text)[0] in SITEMAP_ROOTS or text.lstrip().startswith("<!--"):
        return 0
    found = _ROOT(text, 0, _MOST_NOTICE)
    return found.start() if found else 0


def sitemap_links(root: str, text: str, add: _Add, *, as_page: bool) -> None:
    """Hand each location of an XML sitemap to `add`; as links when the sitemap was linked like `as_page`."""
    found_as = FoundAs.SITEMAP if root == "sitemapindex" else FoundAs.SITEMAP_URL
    if as_page:
        found_as = FoundAs.LINK
    for name, attributes, content in _LOCATIONS(text):
        add(attribute(attributes, "href") if name == "link" else content, found_as)


def text_sitemap_links(text: str, add: _Add) -> None:
    """Hand each line that is an absolute URL to `add`."""
    for match in _LINE(text):
        add(match[1], FoundAs.SITEMAP_URL)


def robots_sitemaps(text: str) -> tuple[str, ...]:
    """The sitemaps that a robots.txt names (RFC 9309 §2.2.4), whoever they are meant for, each once."""
    named: dict[str, None] = {}
    for match in _NAMED(text):
        named[match[1]] = None
        if len(named) == _MOST_NAMED:
            break
    return tuple(named)
