"""Changing a crawl: the run that is under way does it; without one, it is kept for the next."""

from __future__ import annotations

import os
import time
from pathlib import Path

import msgspec

from muniment.archive.event_log import EventLog
from muniment.clock import now_ms
from muniment.errors import BusyError, UsageError
from muniment.model.change import Change, ChangeMade, ChangeReply, Removal
from muniment.model.event import EventBatch, change_events
from muniment.model.place import TrackerPlace
from muniment.procs.lock import EVENTS_FILE, lock_both
from muniment.procs.socket import ask
from muniment.tracker.connect import tracker_at
from muniment.tracker.jobs import store as jobs
from muniment.tracker.jobs.changes import amend

__all__ = ["change_crawl"]

_PATIENCE_S = 5.0
"""How long a run may be starting or ending, so that it holds the directory and takes no changes."""


def change_crawl(out: Path, place: TrackerPlace, change: Change) -> tuple[ChangeMade, ...]:
    """Change the crawl in a directory; what changed is in force when this returns. Raises UsageError."""
    if not place.database and not place.file.is_file():
        raise UsageError(f"there is no tracker at {place.file}")
    give_up = time.monotonic() + _PATIENCE_S
    while True:
        said = ask(out, msgspec.json.encode(change))
        if said is not None:
            answer = msgspec.json.decode(said, type=ChangeReply)
            if answer.error:
                raise UsageError(answer.error)
            return answer.changes
        try:
            return _change_stored(out, place, change)
        except BusyError:
            if time.monotonic() > give_up:
                raise UsageError(
                    f"the run in {out} accepts no changes while it starts or ends: give the command again in a moment"
                ) from None
            time.sleep(0.1)


def _change_stored(out: Path, place: TrackerPlace, change: Change) -> tuple[ChangeMade, ...]:
    locks = lock_both(out, place.directory, patience_s=0)
    try:
        with tracker_at(place) as db:
            job = jobs.find_job(db)
            if job is None:
                raise UsageError(f"{out} has no crawl yet")
            if job.over and not isinstance(change, Removal):
                raise UsageError(f"the crawl in {out} is finished: only removing ignore patterns can change it")
            db.hold(job.job_id)
            amended = amend(db, job, change, now_ms())
            if job.over:
                jobs.reopen(db, job.job_id)
            events = EventBatch(now_ms(), tuple(change_events(change.who, amended.changes)))
            EventLog(locks[0].descriptor, out / EVENTS_FILE).take(events)
            return amended.changes
    finally:
        for lock in locks:
            os.close(lock.descriptor)
