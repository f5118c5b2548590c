"""An answer as a browser reads it: whether it is a document, its markup, the images that its style offers."""

from __future__ import annotations

from muniment.extract.charset import decode as decode_text
from muniment.extract.charset import label
from muniment.extract.coding import decode
from muniment.extract.css import image_sets
from muniment.model.exchange import Exchange
from muniment.model.url import resolve
from muniment.rules.rendering.needs_browser import is_document

__all__ = ["markup", "markup_text", "offered_images", "shows_document"]

_MOST_MARKUP = 64 << 20
"""Bytes of a document that a browser is given."""


def shows_document(exchange: Exchange) -> bool:
    """Whether a browser would show the answer as a page."""
    if exchange.failure is not None:
        return False
    return is_document(exchange.status, exchange.header("content-type"), exchange.header("content-disposition"))


def markup(exchange: Exchange) -> bytes:
    """The document of an answer, without its codings."""
    payload = exchange.body.payload(_MOST_MARKUP)
    coding = exchange.header("content-encoding")
    return decode(payload, coding, _MOST_MARKUP) if coding else payload


def markup_text(exchange: Exchange) -> str:
    """The same as text."""
    return decode_text(markup(exchange), label(exchange.header("content-type")))


def offered_images(exchange: Exchange) -> tuple[str, ...]:
    """The URLs of the images among which a style sheet has a browser choose."""
    if exchange.failure is not None or b"-set(" not in (sheet := markup(exchange)).lower():
        return ()
    found = image_sets(decode_text(sheet, label(exchange.header("content-type"))))
    return tuple(url for href in found if (url := resolve(exchange.url, href)) is not None)
