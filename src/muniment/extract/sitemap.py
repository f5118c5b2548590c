"""Sitemaps (sitemaps.org): lists of pages and indexes of lists as XML, lists as text, and their names in robots.txt."""

from __future__ import annotations

import re
from collections.abc import Callable

from muniment.extract.xml import attribute, scanner
from muniment.model.link import FoundAs

__all__ = ["robots_sitemaps", "sitemap_links", "text_sitemap_links"]

_Add = Callable[[str, FoundAs], None]

# `link` is xhtml:link, the same page in another language; the others are Google's image and video extensions.
_LOCATIONS = scanner("loc", "content_loc", "player_loc", "thumbnail_loc", "link")
_LINE = re.compile(r"^[ \t\ufeff]*+(https?://\S++)[ \t]*+\r?$", re.MULTILINE | re.IGNORECASE).finditer
_NAMED = re.compile(r"^[ \t\ufeff]*+sitemap[ \t]*+:[ \t]*+([^\s#]++)", re.MULTILINE | re.IGNORECASE).finditer
_MOST_NAMED = 1000
"""Sitemaps that are taken from one robots.txt."""


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
