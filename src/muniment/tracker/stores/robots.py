"""Answers to requests for robots.txt, kept over a resume."""

from __future__ import annotations

from sqlalchemy import bindparam, select

from muniment.rules.robots.validity import RobotsAnswer
from muniment.tracker.db.database import BatchInsert, Database, Prepared, retrying_transaction
from muniment.tracker.schema.tables import robots

__all__ = ["RobotsStore"]

_FIND = Prepared(
    select(robots.c.status, robots.c.text, robots.c.fetched_at).where(
        robots.c.job_id == bindparam("job"), robots.c.origin == bindparam("o")
    ),
    "job",
    "o",
)
_KEEP = BatchInsert(robots, "job_id", "origin", "status", "text", "fetched_at", conflict="REPLACE")


class RobotsStore:
    """The robots.txt answers of one job by origin."""

    def __init__(self, db: Database, job_id: int) -> None:
        self._db, self._job_id = db, job_id

    def find(self, origin: str) -> RobotsAnswer | None:
        """The latest answer of an origin that decided, however old."""
        rows = self._db.rows(_FIND, (self._job_id, origin))
        return RobotsAnswer(*rows[0]) if rows else None

    @retrying_transaction
    def keep(self, origin: str, answer: RobotsAnswer) -> None:
        """Keep an answer that decides."""
        with self._db.transaction():
            self._db.many(_KEEP, [(self._job_id, origin, answer.status, answer.text, answer.fetched_at)])
