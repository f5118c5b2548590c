"""The job in a directory, as far as the live plane is concerned."""

from __future__ import annotations

from msgspec import Struct

from muniment.errors import UsageError
from muniment.model.place import TrackerPlace
from muniment.tracker.connect import tracker_to_read
from muniment.tracker.jobs import live
from muniment.tracker.jobs.store import find_job

__all__ = ["ShownDirectory", "shown_directory"]


class ShownDirectory(Struct, frozen=True):
    """What a tracker says of its job in Redis."""

    ident: str
    redis: str | None
    """The address that its run was given, without a secret."""
    log_score: int
    """The last entry of its log that is committed."""


def shown_directory(place: TrackerPlace) -> ShownDirectory:
    """Raises UsageError for a job that was never shown."""
    with tracker_to_read(place) as db:
        job = find_job(db)
        if job is None:
            raise UsageError("the tracker has no job")
        shown = live.live_job(db, job.job_id)
        if not shown.ident:
            raise UsageError("Redis never had this job: its run was given no --redis, or found no server")
        position = live.read_position(db, job.job_id)
        return ShownDirectory(shown.ident, shown.settings.redis, position.score)
