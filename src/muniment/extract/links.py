"""The one entry: chooses the reader by content type and resolves the document's base."""

from __future__ import annotations

import re

import ada_url
from msgspec import Struct

from muniment.extract.charset import decode, label
from muniment.extract.css import css_links
from muniment.extract.found import Found
from muniment.extract.html import html_links
from muniment.model.link import FoundAs

__all__ = ["Extracted", "extract"]

_XHTML = "application/xhtml+xml"
_HTML = {"text/html", _XHTML}
# Types that say nothing. text/plain is not one: a browser shows it as text.
_UNSAID = {"", "application/octet-stream", "application/unknown", "unknown/unknown", "*/*"}
# The tags of MIME Sniffing 7.1, after a byte-order mark, white space and an XML declaration.
_LOOKS_LIKE_HTML = re.compile(
    rb"(?:\xef\xbb\xbf)?+\s*+(?:<\?xml[^>]{0,256}+>\s*+)?+<(?:!--|(?:!doctype html|html|head|script|iframe|h1|div|font"
    rb"|table|a|style|title|b|body|br|p)[\s>])",
    re.IGNORECASE,
).match


class Extracted(Struct, frozen=True):
    """What a document refers to, unresolved: entities and escapes are decoded, and each reference is there once."""

    base: str
    """The absolute URL that every href resolves against."""
    links: list[tuple[str, FoundAs]]
    """Every reference but <a href>, as (href, how) in document order; HTML's white space is taken out."""
    anchors: list[str]
    """Every <a href> in document order, as written: to be `cleaned` before it is resolved."""


def extract(payload: bytes, content_type: str, url: str) -> Extracted:
    """Return the references of a decoded payload; never raises, and other types than HTML and CSS have none."""
    media_type = content_type.partition(";")[0].strip().lower()
    found = Found()
    if media_type in _HTML or (media_type in _UNSAID and _LOOKS_LIKE_HTML(payload)):
        html_links(payload, label(content_type), found, xhtml=media_type == _XHTML)
    elif media_type == "text/css":
        css_links(decode(payload, label(content_type)), found.add)
    return Extracted(_base(found.base, url), list(found.links), list(dict.fromkeys(found.anchors)))


def _base(href: str | None, url: str) -> str:
    """Resolve the first <base href>; one that is no URL, or of a script or data scheme, does not count (HTML 4.2.3)."""
    if href is None:
        return url
    try:
        base: str = ada_url.join_url(url, href)
    except ValueError:
        return url
    return url if base.startswith(("javascript:", "data:")) else base
