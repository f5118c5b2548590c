"""The one entry: chooses the reader by content type and by what the document is for, and resolves its base."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import islice

import ada_url
from msgspec import Struct, structs

from muniment.extract import coding
from muniment.extract.charset import decode
from muniment.extract.css import css_links
from muniment.extract.feed import FEED_ROOTS, feed_links
from muniment.extract.html import html_links
from muniment.extract.link_collector import MOST_LINKS, LinkCollector, cleaned
from muniment.extract.media_type import SNIFFED, looks_like_html, media_type, sniffed
from muniment.extract.playlists import dash_links, hls_links, is_hls
from muniment.extract.scripts import module_links
from muniment.extract.sitemap import (
    SITEMAP_ROOTS,
    robots_sitemaps,
    root_after_notice,
    sitemap_links,
    text_sitemap_links,
    without_notice,
)
from muniment.extract.structured import manifest_links
from muniment.extract.xml import attribute, decode_xml, root_of, style_sheets
from muniment.model.link import FoundAs

__all__ = ["MOST_SITEMAP", "Extraction", "extract", "may_hold_links"]

MOST_SITEMAP = 50 << 20
"""Bytes of a sitemap, decompressed, that are read: the protocol allows no more."""

_XHTML = "application/xhtml+xml"
_SVG = "image/svg+xml"
_HTML = {"text/html", _XHTML, _SVG}
_XML = {"application/xml", "text/xml", "video/vnd.mpeg.dash.mpd"}
_MANIFEST = "application/manifest+json"
_JSON = {_MANIFEST, "application/json", "text/json"}
_SCRIPTS = frozenset(
    {
        *(f"{kind}/{name}" for kind in ("text", "application") for name in ("javascript", "ecmascript")),
        *(f"{kind}/x-{name}" for kind in ("text", "application") for name in ("javascript", "ecmascript")),
        *(f"text/javascript1.{number}" for number in range(6)), "text/jscript", "text/livescript",
    }
)  # fmt: skip
"""JavaScript, by MIME Sniffing 4.6."""
_PLAYLISTS = {"audio/mpegurl", "audio/x-mpegurl", "video/vnd.mpeg.dash.mpd"}
"""Those that are no film and no music, whatever their type says."""
_DENSE = ("image/", "video/", "audio/", "font/")
# Types that say nothing. text/plain is not one: a browser shows it as text.
_UNSAID = {"", "application/octet-stream", "application/unknown", "unknown/unknown"}
_NO_TYPE = {"", "application/unknown", "unknown/unknown"}
_MOST_TEXT = 16 << 20
"""Characters that the bases of all references of a document may have together."""
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
    text: bytes | None = None
    """Its text, if that was asked for and could be read."""
    in_lines: bool = True
    """Each block of the text is a line."""


class _Document(Struct, frozen=True):
    """A document that is to be read."""

    payload: bytes
    kind: str
    """Its media type, as far as that was said."""
    charset: str | None
    url: str
    found_as: FoundAs
    at_ms: int


def may_hold_links(content_type: str) -> bool:
    """Whether a document of this type is worth reading."""
    kind = media_type(content_type).essence
    return not kind.startswith(_DENSE) or kind == _SVG or kind in _PLAYLISTS


def extract(
    payload: bytes,
    content_type: str,
    url: str,
    found_as: FoundAs = FoundAs.A,
    *,
    at_ms: int = 0,
    with_text: bool = False,
) -> Extraction:
    """Return the references of a decoded payload; never raises, and types that no reader knows have none.

    How the document itself was found says what it is for: sitemaps and manifests come under all kinds of types. `at_ms`
    is when it came (Unix), for live playlists.
    """
    said = media_type(content_type)
    found = LinkCollector()
    if with_text:
        found.text = []
    _read(_Document(payload, said.essence, said.charset or None, url, found_as, at_ms), found)
    made = _extraction(found, url)
    if found.text:
        return structs.replace(made, text="\n".join(found.text).encode("utf-8", "replace"))
    if with_text and _is_plain(said.essence):
        return structs.replace(made, text=payload, in_lines=said.essence == "text/plain")
    return made


def _is_plain(kind: str) -> bool:
    """Whether a document that is not HTML is text."""
    return kind not in _HTML and (kind.startswith("text/") or kind in _JSON or kind in _XML or kind.endswith("+xml"))


def _read(document: _Document, found: LinkCollector) -> None:
    kind, payload, charset = document.kind, document.payload, document.charset
    if document.found_as in _READERS and _READERS[document.found_as](document, found):
        return
    if kind in _HTML or (kind in _UNSAID and looks_like_html(payload, 0, SNIFFED)):
        html_links(payload, charset, found, xhtml=kind in {_XHTML, _SVG})
    elif kind == "text/css":
        css_links(decode(payload, charset), found.add)
    elif is_hls(payload):
        hls_links(decode(payload, charset), found.add)
    elif kind in _SCRIPTS:
        module_links(decode(payload, charset), found.add)
    elif kind in _XML or kind.endswith("+xml") or (kind in _NO_TYPE and sniffed(payload) == "text/xml"):
        _read_xml(document, decode_xml(payload, charset), found)
    elif kind == _MANIFEST:
        manifest_links(decode(payload, charset), found.add)


def _extraction(found: LinkCollector, url: str) -> Extraction:
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


def _read_start_list(document: _Document, found: LinkCollector) -> bool:
    """Take the lines of a list of start URLs; one without a scheme is of HTTP."""
    for line in decode(document.payload, document.charset).splitlines():
        url = line.strip()
        if url:
            found.add(url if "://" in url else f"http://{url}", FoundAs.START_LINE)
    return True


def _read_robots(document: _Document, found: LinkCollector) -> bool:
    for address in robots_sitemaps(decode(document.payload, document.charset)):
        found.add(address, FoundAs.SITEMAP)
    return True


def _read_sheet(document: _Document, found: LinkCollector) -> bool:
    if document.kind not in _UNSAID | {"text/plain"}:
        return False
    css_links(decode(document.payload, document.charset), found.add)
    return True


def _read_manifest(document: _Document, found: LinkCollector) -> bool:
    if document.kind not in _JSON | _UNSAID:
        return False
    manifest_links(decode(document.payload, document.charset), found.add)
    return True


def _read_sitemap(document: _Document, found: LinkCollector) -> bool:
    """Read what was asked for as a sitemap, whatever its type says; False when it is a page of words instead."""
    payload = document.payload
    if payload.startswith(_GZIP):
        payload = coding.decode(payload, "gzip", MOST_SITEMAP)
    text = decode_xml(without_notice(payload), document.charset)
    text = text[root_after_notice(text) :]
    if _read_xml(document, text, found):
        return True
    if document.kind in _HTML or looks_like_html(payload, 0, SNIFFED):
        return False
    text_sitemap_links(text, found.add)
    return True


def _read_xml(document: _Document, text: str, found: LinkCollector) -> bool:
    """Read a sitemap, a feed or a presentation of DASH; False for other documents."""
    as_page = document.found_as is not FoundAs.SITEMAP
    root, attributes = root_of(text)
    for sheet in style_sheets(text):
        found.add(sheet, FoundAs.STYLESHEET)
    if root in SITEMAP_ROOTS:
        sitemap_links(root, text, found.add, as_page=as_page)
    elif root in FEED_ROOTS:
        found.base = attribute(attributes, "xml:base") or None
        feed_links(text, found, FoundAs.FEED if as_page else FoundAs.SITEMAP_URL)
    elif root == "mpd" and as_page:
        dash_links(document.payload, document.url, found.add, document.at_ms)
    else:
        return False
    return True


_READERS: dict[FoundAs, Callable[[_Document, LinkCollector], bool]] = {
    FoundAs.START_LIST: _read_start_list,
    FoundAs.ROBOTS: _read_robots,
    FoundAs.SITEMAP: _read_sitemap,
    FoundAs.STYLESHEET: _read_sheet,
    FoundAs.CSS_IMPORT: _read_sheet,
    FoundAs.MANIFEST: _read_manifest,
}
"""By what a document is for: who reads it first. False where it is to be read by its type."""


def _base(href: str | None, url: str) -> str:
    """Resolve the first <base href>; an invalid URL, or a script or data scheme, does not count (HTML 4.2.3)."""
    if href is None:
        return url
    try:
        base: str = ada_url.join_url(url, href)
    except ValueError:
        return url
    return url if base.startswith(("javascript:", "data:")) else base
