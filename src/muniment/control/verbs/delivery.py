"""Delivery: a change reaches the job in a directory, by the run that is under way or in its tracker, and once."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec import Struct, structs

from muniment.archive.event_log import EventLog
from muniment.clock import now_ms
from muniment.errors import BusyError, MunimentError, UsageError
from muniment.model.change import Change, ChangeMade, ChangeReply, Removal, UnstashPages
from muniment.model.event import EventBatch, change_events
from muniment.model.place import TrackerPlace
from muniment.procs.lock import EVENTS_FILE, lock_both
from muniment.procs.socket import ask
from muniment.tracker.connect import tracker_at, tracker_to_read
from muniment.tracker.db.database import Database
from muniment.tracker.jobs import store as jobs
from muniment.tracker.jobs.audit import settings_age
from muniment.tracker.jobs.changes import amend

__all__ = ["JobDirectory", "deliver", "job_age"]

_PATIENCE_S = 5.0
"""How long a run may be starting or ending, so that it holds the directory and takes no changes."""
_PAUSE_S = 0.1


class JobDirectory(Struct, frozen=True):
    """A job by its output directory, and who changes it."""

    out: Path
    tracker: TrackerPlace
    who: str


def job_age(job: JobDirectory) -> int | None:
    """How many changes a job has had, which makes a request known when it comes again; None when nobody can say."""
    with suppress(MunimentError), tracker_to_read(job.tracker) as db:
        found = jobs.find_job(db)
        return settings_age(db, found.job_id) if found else None
    return None


def deliver(job: JobDirectory, change: Change) -> tuple[ChangeMade, ...]:
    """Change the job in a directory; what changed is in force when this returns. Raises UsageError.

    A change without an age is given that of now, so that it is made once even when a run is cut off before its answer.
    """
    if job.tracker.server:
        raise UsageError(f"{job.out} is of a pipeline, and {job.tracker.refusal}")
    if not job.tracker.database and not job.tracker.file.is_file():
        raise UsageError(f"there is no tracker at {job.tracker.file}")
    if change.age is None:
        change = structs.replace(change, age=job_age(job))
    give_up = time.monotonic() + _PATIENCE_S
    while True:
        said = ask(job.out, msgspec.json.encode(change))
        if said is not None:
            answer = msgspec.json.decode(said, type=ChangeReply)
            if answer.error:
                raise UsageError(answer.error)
            return answer.changes
        try:
            return _change_resting(job, change)
        except BusyError:
            if time.monotonic() > give_up:
                text = f"the run in {job.out} accepts no changes while it starts or ends"
                raise UsageError(f"{text}: give the command again in a moment") from None
            time.sleep(_PAUSE_S)


def _change_resting(job: JobDirectory, change: Change) -> tuple[ChangeMade, ...]:
    locks = lock_both(job.out, job.tracker.directory, patience_s=0)
    try:
        with tracker_at(job.tracker) as db:
            found = jobs.find_job(db)
            if found is None:
                raise UsageError(f"{job.out} has no crawl yet")
            if found.over and not isinstance(change, Removal | UnstashPages):
                raise UsageError(f"the crawl in {job.out} is finished: only removing ignore patterns can change it")
            return _change_stored(db, found, change, EventLog(locks[0].descriptor, job.out / EVENTS_FILE))
    finally:
        for lock in locks:
            os.close(lock.descriptor)


def _change_stored(db: Database, job: jobs.Job, change: Change, log: EventLog) -> tuple[ChangeMade, ...]:
    db.hold(job.job_id)
    amended = amend(db, job, change, now_ms())
    if not amended.repeated:
        log.take(EventBatch(now_ms(), tuple(change_events(change.who, amended.changes))))
    return amended.changes
