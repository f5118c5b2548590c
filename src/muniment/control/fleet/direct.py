"""The direct door: a fleet's tracker without a server, by its database."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from muniment.control.fleet import jobs
from muniment.errors import BusyError, UsageError
from muniment.model.network.jobs import ChangesMade, IgnoresCall, JobOrder, JobPatch, JobView
from muniment.model.network.lists import ChangeList, JobList
from muniment.model.place import TrackerPlace
from muniment.procs.lock import TRACKER_LOCK, lock_directory, make_directory
from muniment.tracker.connect import tracker_at
from muniment.tracker.db.database import Database

__all__ = ["DirectDoor", "direct_door"]

_WHERE = "command line"


class DirectDoor:
    """Asks the tracker itself."""

    def __init__(self, db: Database, who: str) -> None:
        self._db, self._who = db, who

    def add(self, order: JobOrder) -> JobView:
        """Make a job; whoever has the database may have any address archived."""
        return jobs.add(self._db, order, self._who, allow_private=True, where=_WHERE)

    def list_jobs(self, state: str, after: int) -> JobList:
        """The jobs after a number."""
        return jobs.list_jobs(self._db, state=state, after=after)

    def view(self, job_id: int) -> JobView:
        """How a job stands."""
        return jobs.view(self._db, job_id)

    def changes(self, job_id: int, after: int) -> ChangeList:
        """Changes of a job."""
        return jobs.changes(self._db, job_id, after=after)

    def change(self, job_id: int, patch: JobPatch) -> ChangesMade:
        """Change settings and terms."""
        return jobs.change(self._db, job_id, patch, self._who)

    def ignores(self, job_id: int, call: IgnoresCall) -> ChangesMade:
        """Add and remove ignore patterns and sets."""
        return jobs.ignores(self._db, job_id, call, self._who)

    def pause(self, job_id: int) -> JobView:
        """Pause a job."""
        return jobs.pause(self._db, job_id, self._who)

    def resume(self, job_id: int) -> JobView:
        """Have a paused or aborted job go on."""
        return jobs.resume(self._db, job_id, self._who)

    def abort(self, job_id: int) -> JobView:
        """End a job."""
        return jobs.abort(self._db, job_id, self._who)

    def fail(self, job_id: int, reason: str) -> JobView:
        """End a job that has failed."""
        return jobs.fail(self._db, job_id, reason, self._who)


@contextmanager
def direct_door(state: Path | None, database: str, who: str, *, make: bool) -> Iterator[DirectDoor]:
    """The door to the tracker in a directory, which nothing else may use meanwhile, or in a database.

    With `make` one that is not there is made. Raises UsageError.
    """
    if state is None:
        with tracker_at(TrackerPlace(Path(), database)) as db:
            yield DirectDoor(db, who)
        return
    place = TrackerPlace(state)
    if make:
        make_directory(state)
    elif not place.file.is_file():
        raise UsageError(f"there is no tracker at {place.file}")
    locks = _taken(state)
    try:
        with tracker_at(place) as db:
            yield DirectDoor(db, who)
    finally:
        for descriptor in locks:
            os.close(descriptor)


def _taken(state: Path) -> list[int]:
    try:
        return lock_directory(state, TRACKER_LOCK)
    except BusyError:
        raise UsageError(
            f"the tracker in {state} is in use: give --server URL when a server has it, or wait for its run to end"
        ) from None
