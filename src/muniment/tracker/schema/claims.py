"""Whose a claimed page is, in SQL."""

from __future__ import annotations

from sqlalchemy import ColumnElement, literal_column

from muniment.tracker.schema.tables import pages

__all__ = ["EPOCH"]

# no parameter, which PostgreSQL would take for a bigint: it shifts by integers
EPOCH: ColumnElement[int] = pages.c.claim_id.bitwise_rshift(literal_column("40"))
"""The epoch of the session that holds a page (`model.page.session_of`)."""
