"""When a revisit is written in place of a response whose payload is known."""

from __future__ import annotations

from muniment.model.capture import EarlierCapture
from muniment.model.exchange import Exchange

__all__ = ["REVISIT_ABOVE", "is_revisit"]

REVISIT_ABOVE = 100
"""Payloads of at most so many bytes are always stored again: a revisit would be no smaller."""


def is_revisit(exchange: Exchange, earlier: EarlierCapture | None, *, unchanged: bool) -> bool:
    """Whether the record of an exchange is a revisit of its earlier capture; `unchanged`: the server said so."""
    if earlier is None or exchange.truncated or exchange.failure is not None:
        return False
    return unchanged or (exchange.status != 304 and exchange.body.payload_length > REVISIT_ABOVE)
