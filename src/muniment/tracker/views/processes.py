"""The processes that pipelines report of their machines."""

from __future__ import annotations

import msgspec
from sqlalchemy import select

from muniment.model.pipeline import HostReport
from muniment.model.process import Process
from muniment.tracker.db.database import Database
from muniment.tracker.schema.pipelines import sessions

__all__ = ["reported_processes"]


def reported_processes(db: Database) -> list[Process]:
    """The rows of the latest report of each pipeline that is at work."""
    reports = select(sessions.c.report).where(sessions.c.ended_at.is_(None), sessions.c.report != "")
    found: dict[str, Process] = {}
    for text in db.connection.execute(reports.order_by(sessions.c.epoch)).scalars():
        found.update((row.id, row) for row in msgspec.json.decode(text, type=HostReport).rows)
    return list(found.values())
