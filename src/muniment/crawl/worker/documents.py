"""An answer as a browser reads it: whether it is a document, its markup, the images that its style offers."""

from __future__ import annotations

from muniment.extract.charset import decode as decode_text
from muniment.extract.charset import label
from muniment.extract.coding import decode
from muniment.extract.css import image_sets
from muniment.extract.media_type import media_type, sniffed
from muniment.model.exchange import Exchange
from muniment.model.url import resolve
from muniment.rules.rendering.needs_browser import is_document

__all__ = ["content_type", "markup", "markup_text", "offered_images", "shows_document"]

_MOST_MARKUP = 64 << 20
"""Bytes of a document that a browser is given."""
_MOST_PACKED = 16 << 10
"""Bytes of a payload that are unpacked to see its first ones."""


def content_type(exchange: Exchange) -> str:
    """The type by which an answer is read: its own, empty where its first bytes say it, text where it forbids that."""
    said = exchange.field("content-type")
    if media_type(said).essence:
        return said
    asked = exchange.field("x-content-type-options").partition(",")[0]
    return "text/plain" if asked.strip().lower() == "nosniff" else ""


def shows_document(exchange: Exchange) -> bool:
    """Whether a browser would show the answer as a page."""
    if exchange.failure is not None:
        return False
    kind = media_type(content_type(exchange)).essence or sniffed(_unpacked(exchange, _MOST_PACKED))
    return is_document(exchange.status, kind, exchange.header("content-disposition"))


def markup(exchange: Exchange) -> bytes:
    """The document of an answer, without its codings."""
    return _unpacked(exchange, _MOST_MARKUP)


def _unpacked(exchange: Exchange, most: int) -> bytes:
    payload = exchange.body.payload(most)
    coding = exchange.field("content-encoding")
    return decode(payload, coding, most) if coding else payload


def markup_text(exchange: Exchange) -> str:
    """The same as text."""
    return decode_text(markup(exchange), label(exchange.field("content-type")))


def offered_images(exchange: Exchange) -> tuple[str, ...]:
    """The URLs of the images among which a style sheet has a browser choose."""
    if exchange.failure is not None or b"-set(" not in (sheet := markup(exchange)).lower():
        return ()
    found = image_sets(decode_text(sheet, label(exchange.field("content-type"))))
    return tuple(url for href in found if (url := resolve(exchange.url, href)) is not None)
