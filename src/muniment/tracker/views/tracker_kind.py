"""What a tracker is for: one crawl of a directory, or the jobs of a fleet."""

from __future__ import annotations

import msgspec
from msgspec import Struct
from sqlalchemy import select

from muniment.tracker.db.database import Database
from muniment.tracker.schema.pipelines import pipelines, trackers
from muniment.tracker.schema.tables import jobs

__all__ = ["crawl_directory", "has_fleet"]


class _Out(Struct):
    out: str = ""


def has_fleet(db: Database) -> bool:
    """Whether pipelines work for the tracker, or are meant to: it has some, was served, or has a job of a fleet."""
    if any(db.connection.execute(some.limit(1)).first() for some in (select(pipelines.c.id), select(trackers.c.id))):
        return True
    return any(not out for out in _directories(db))


def crawl_directory(db: Database) -> str:
    """The directory of a crawl whose tracker this is alone; empty for others."""
    return next(filter(None, _directories(db)), "")


def _directories(db: Database) -> list[str]:
    """The output directory of the first job; that of a fleet names nothing of a machine, so its is empty."""
    found = select(jobs.c.settings).where(jobs.c.place_id == "").order_by(jobs.c.id).limit(1)
    return [msgspec.json.decode(text, type=_Out).out for text in db.connection.execute(found).scalars()]
