"""The one entry: chooses the reader by content type and by what the document is for, and resolves its base."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import islice

import ada_url
from msgspec import Struct

from muniment.extract import coding
from muniment.extract.charset import decode, label
from muniment.extract.css import css_links
from muniment.extract.feed import FEED_ROOTS, feed_links
from muniment.extract.html import html_links
from muniment.extract.link_collector import MOST_LINKS, LinkCollector, cleaned
from muniment.extract.sitemap import robots_sitemaps, sitemap_links, text_sitemap_links
from muniment.extract.structured import manifest_links
from muniment.extract.url_list import list_links
from muniment.extract.xml import attribute, decode_xml, root_of, style_sheets
from muniment.model.link import FoundAs

__all__ = ["MOST_SITEMAP", "Extraction", "extract"]

MOST_SITEMAP = 50 << 20
"""Bytes of a sitemap, decompressed, that are read: the protocol allows no more."""

_XHTML = "application/xhtml+xml"
_SVG = "image/svg+xml"
_HTML = {"text/html", _XHTML, _SVG}
_XML = {"application/xml", "text/xml"}
_MANIFEST = "application/manifest+json"
_JSON = {_MANIFEST, "application/json", "text/json"}
# Types that say nothing. text/plain is not one: a browser shows it as text.
_UNSAID = {"", "application/octet-stream", "application/unknown", "unknown/unknown", "*/*"}
# The tags of MIME Sniffing 7.1, after a byte-order mark, white space and an XML declaration.
_LOOKS_LIKE_HTML = re.compile(
    rb"(?:\xef\xbb\xbf)?\s*+(?:<\?xml[^>]{0,256}+>\s*+)?<(?:!--|(?:!doctype html|html|head|script|iframe|h1|div|font"
    rb"|table|a|style|title|b|body|br|p)[\s>])",
    re.IGNORECASE,
).match
_MOST_TEXT = 16 << 20
"""Characters that the bases of all references of a document may have together."""
_SITEMAP = FoundAs.SITEMAP
_GZIP = b"\x1f\x8b"


class Extraction(Struct, frozen=True):
    """The references of a document, unresolved: entities and escapes are decoded, and each reference is there once."""

    base: str
    """The absolute URL that every href resolves against."""
    links: list[tuple[str, FoundAs]]
    """Every reference but <a href>, as (href, how) in document order; HTML's white space is taken out."""
    anchors: list[str]
    """Every <a href> in document order, as written: to be `cleaned` before it is resolved."""
    directives: list[tuple[str, str]]
    """Name and content of the meta elements that ask something of robots."""
    dropped: int = 0
    """About how many references it has beyond the limit, as far as it was read."""


def extract(payload: bytes, content_type: str, url: str, found_as: FoundAs = FoundAs.A) -> Extraction:
    """Return the references of a decoded payload; never raises, and types that no reader knows have none.

    How the document itself was found says what it is for: sitemaps and manifests come under all kinds of types.
    """
    media_type = content_type.partition(";")[0].strip().lower()
    found = LinkCollector()
    if found_as is FoundAs.START_LIST:
        list_links(payload, label(content_type), found)
    elif found_as is _SITEMAP and _read_sitemap(payload, media_type, label(content_type), found):
        pass
    elif media_type in _HTML or (media_type in _UNSAID and _LOOKS_LIKE_HTML(payload)):
        html_links(payload, label(content_type), found, xhtml=media_type in {_XHTML, _SVG})
    elif media_type == "text/css":
        css_links(decode(payload, label(content_type)), found.add)
    else:
        _read_other(payload, media_type, label(content_type), found_as, found)
    base = _base(found.base, url)
    # each may be as long as the base that it is seen from
    most = min(MOST_LINKS, _MOST_TEXT // len(base)) if base else MOST_LINKS
    links = list(islice(found.links, most))
    unique = dict.fromkeys(found.anchors)
    anchors = list(islice(unique, most - len(links)))
    dropped = found.dropped + len(found.links) - len(links)
    if len(unique) > len(anchors):
        dropped += len(_pages(unique) - _pages(anchors) - {""})
    return Extraction(base, links, anchors, found.directives, dropped)


def _pages(anchors: Iterable[str]) -> set[str]:
    """What anchors lead to, whatever part of it they name."""
    return {cleaned(raw).partition("#")[0] for raw in anchors}


def _read_other(payload: bytes, media_type: str, charset: str | None, found_as: FoundAs, found: LinkCollector) -> None:
    """Read what is not shown as a page."""
    if found_as is FoundAs.ROBOTS:
        for address in robots_sitemaps(decode(payload, charset)):
            found.add(address, FoundAs.SITEMAP)
    elif media_type in _XML or media_type.endswith("+xml"):
        _read_xml(decode_xml(payload, charset), found, as_page=True)
    elif media_type == _MANIFEST or (found_as is FoundAs.MANIFEST and media_type in _JSON | _UNSAID):
        manifest_links(decode(payload, charset), found.add)


def _read_sitemap(payload: bytes, media_type: str, charset: str | None, found: LinkCollector) -> bool:
    """Read what was asked for as a sitemap, whatever its type says; False when it is a page of words instead."""
    if payload.startswith(_GZIP):
        payload = coding.decode(payload, "gzip", MOST_SITEMAP)
    text = decode_xml(payload, charset)
    if _read_xml(text, found, as_page=False):
        return True
    if media_type in _HTML or _LOOKS_LIKE_HTML(payload):
        return False
    text_sitemap_links(text, found.add)
    return True


def _read_xml(text: str, found: LinkCollector, *, as_page: bool) -> bool:
    """Read a sitemap or a feed; False when it is neither."""
    root, attributes = root_of(text)
    for sheet in style_sheets(text):
        found.add(sheet, FoundAs.STYLESHEET)
    if root in {"urlset", "sitemapindex"}:
        sitemap_links(root, text, found.add, as_page=as_page)
    elif root in FEED_ROOTS:
        found.base = attribute(attributes, "xml:base") or None
        feed_links(text, found.add, FoundAs.FEED if as_page else FoundAs.SITEMAP_URL)
    else:
        return False
    return True


def _base(href: str | None, url: str) -> str:
    """Resolve the first <base href>; an invalid URL, or a script or data scheme, does not count (HTML 4.2.3)."""
    if href is None:
        return url
    try:
        base: str = ada_url.join_url(url, href)
    except ValueError:
        return url
    return url if base.startswith(("javascript:", "data:")) else base
