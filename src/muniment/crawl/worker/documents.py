"""An answer as a browser is given it: whether it is a document, and its markup."""

from __future__ import annotations

from muniment.extract.charset import decode as decode_text
from muniment.extract.charset import label
from muniment.extract.coding import decode
from muniment.model.exchange import Exchange
from muniment.rules.rendering.needs_browser import is_document

__all__ = ["markup", "markup_text", "shows_document"]

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
