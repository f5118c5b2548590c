"""Whose a claimed page is."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sqlalchemy import ColumnElement, literal_column, select

from muniment.tracker.db.database import Database
from muniment.tracker.schema.pipelines import sessions
from muniment.tracker.schema.tables import pages

__all__ = ["EPOCH", "pipelines_of"]

# no parameter, which PostgreSQL would take for a bigint: it shifts by integers
EPOCH: ColumnElement[int] = pages.c.claim_id.bitwise_rshift(literal_column("40"))
"""The epoch of the session that holds a page (`model.page.session_of`)."""


def pipelines_of(db: Database, epochs: Iterable[Any]) -> dict[int, str]:
    """The pipelines of sessions, by their epochs."""
    found = select(sessions.c.epoch, sessions.c.pipeline_id).where(sessions.c.epoch.in_(list(epochs)))
    return {int(epoch): str(name) for epoch, name in db.connection.execute(found)}
