"""Whose a claimed page is, in SQL."""

from __future__ import annotations

from sqlalchemy import ColumnElement

from muniment.tracker.schema.tables import pages

__all__ = ["EPOCH"]

_BITS = 40

EPOCH: ColumnElement[int] = pages.c.claim_id.bitwise_rshift(_BITS)
"""The epoch of the session that holds a page (`model.page.session_of`)."""
