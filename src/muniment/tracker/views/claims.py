"""Whose a claimed page is."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sqlalchemy import select

from muniment.tracker.db.database import Database
from muniment.tracker.schema.pipelines import sessions

__all__ = ["pipelines_of"]


def pipelines_of(db: Database, epochs: Iterable[Any]) -> dict[int, str]:
    """The pipelines of sessions, by their epochs."""
    found = select(sessions.c.epoch, sessions.c.pipeline_id).where(sessions.c.epoch.in_(list(epochs)))
    return {int(epoch): str(name) for epoch, name in db.connection.execute(found)}
