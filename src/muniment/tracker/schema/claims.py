"""The epoch in the number of a claim."""

from __future__ import annotations

from sqlalchemy import ColumnElement, literal_column

from muniment.tracker.schema.tables import pages

__all__ = ["EPOCH"]

EPOCH: ColumnElement[int] = pages.c.claim_id.bitwise_rshift(literal_column("40"))
"""The epoch of the session that holds a page (`model.page.session_of`)."""
