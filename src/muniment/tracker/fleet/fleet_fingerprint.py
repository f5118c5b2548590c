"""The fingerprint of a fleet: all that waiting requests go by, in few rows.

It is compared once a second, so that requests which wait for nothing in particular need not look themselves.
"""

from __future__ import annotations

from sqlalchemy import literal_column, select

from muniment.tracker.db.database import Database, Prepared
from muniment.tracker.schema.pipelines import assignments, host_permits, pipelines, sessions
from muniment.tracker.schema.tables import jobs

__all__ = ["FleetFingerprint"]

_OPEN = jobs.c.state.in_([literal_column("'ACTIVE'"), literal_column("'DRAINING'")])
_JOBS = select(jobs.c.id, jobs.c.state, jobs.c.paused, jobs.c.settings_age, jobs.c.nice, jobs.c.concurrency)
_SESSIONS = select(sessions.c.epoch, sessions.c.stopping, sessions.c.paused).where(sessions.c.ended_at.is_(None))
_SLOTS = select(assignments.c.pipeline_id, assignments.c.slot, assignments.c.job_id, assignments.c.lock)
_PIPELINES = select(pipelines.c.id, pipelines.c.tags, pipelines.c.matchonly, pipelines.c.token_hash)
_LOWERED = select(host_permits.c.epoch, host_permits.c.host, host_permits.c.target)
_ASKED = [
    (Prepared(rows), ())
    for rows in (
        _JOBS.where(_OPEN, jobs.c.place_id == literal_column("''")).order_by(jobs.c.id),
        _SESSIONS.order_by(sessions.c.epoch),
        _SLOTS.order_by(assignments.c.pipeline_id, assignments.c.slot),
        _PIPELINES.order_by(pipelines.c.id),
        _LOWERED.where(host_permits.c.target.is_not(None)).order_by(host_permits.c.epoch, host_permits.c.host),
    )
]


class FleetFingerprint:
    """The fingerprint as it was looked up last."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._known: list[list[tuple[object, ...]]] = []

    def changed(self) -> bool:
        """Whether it is another one than at the last call."""
        before, self._known = self._known, [list(map(tuple, rows)) for rows in self._db.several(_ASKED)]
        return self._known != before
