"""The firehose of the job in a directory: complete, from the log that its run writes beside the tracker."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from msgspec import structs

from muniment.clock import monotonic, now_ms
from muniment.control.runs.folder import is_running
from muniment.errors import UsageError
from muniment.live import layout
from muniment.live.ident import candidates
from muniment.live.log_file import LOG_FILE, LogReader
from muniment.live.reading.firehose import with_record
from muniment.model.network.live import LiveJob, LogState
from muniment.model.place import TrackerPlace
from muniment.tracker.connect import opened
from muniment.tracker.db.database import Database
from muniment.tracker.jobs import live
from muniment.tracker.jobs.store import find_job
from muniment.tracker.queue.counters import totals_of
from muniment.tracker.views.jobs import job_view
from muniment.tracker.views.waiting import first_url

__all__ = ["entries_of"]

_AT_ONCE = 1000
_LOOK_S = 0.1
_COUNT_S = 5.0


def entries_of(out: Path, place: TrackerPlace, *, since: int | None, follow: bool) -> Iterator[list[bytes]]:
    """Lines of the job in a directory as they are committed, until no run works at it; raises UsageError."""
    try:
        descriptor = os.open(out / LOG_FILE, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        raise UsageError(f"{out} has no {LOG_FILE}: a run writes it with --redis") from None
    try:
        with closing(opened(place, read_only=True, written=is_running(out))) as db:
            yield from _followed(_DirectoryLog(db, descriptor, since), out, follow=follow)
    finally:
        os.close(descriptor)


def _followed(log: _DirectoryLog, out: Path, *, follow: bool) -> Iterator[list[bytes]]:
    if log.since is None and follow:
        log.skip()
    while True:
        running = follow and is_running(out)  # before the look: what a run said last is not left out
        state = log.state()
        while lines := log.read(state):
            yield lines
        if not running:
            return
        time.sleep(_LOOK_S)


class _DirectoryLog:
    """Reads the log as far as the tracker has it."""

    def __init__(self, db: Database, descriptor: int, since: int | None) -> None:
        job = find_job(db)
        if job is None:
            raise UsageError("the tracker has no job")
        self._db, self._job_id, self.since = db, job.job_id, since
        self._descriptor = descriptor
        self._reader = LogReader(descriptor, 0)
        self._queued, self._counted_at = 0, -_COUNT_S

    def state(self) -> LogState:
        """The last commit."""
        # the position first: sums that are later than an entry do no harm
        position = live.read_position(self._db, self._job_id)
        return LogState(position, totals_of(self._db, self._job_id))

    def skip(self) -> None:
        """Leave out what is there now."""
        self._reader = LogReader(self._descriptor, self.state().position.length)

    def read(self, state: LogState) -> list[bytes]:
        """The next lines of a commit; empty at its end."""
        while entries := self._reader.read(state.position, _AT_ONCE):
            wanted = [entry for entry in entries if _number(entry) > (self.since or 0)]
            if wanted:
                job = self._job()
                return with_record(wanted, self._record(job, state), job.ident)
        return []

    def _job(self) -> LiveJob:
        job = live.live_job(self._db, self._job_id)
        if job.ident:
            return job
        # Redis has not had it yet
        target = layout.target_of(first_url(self._db, self._job_id), job.settings.seed)
        ident, url = next(candidates(target))
        return structs.replace(job, ident=ident, url=url)

    def _record(self, job: LiveJob, state: LogState) -> dict[str, str]:
        if monotonic() - self._counted_at >= _COUNT_S:
            pages = job_view(self._db, self._job_id).pages
            done = pages.captured + pages.requisites + pages.failed
            self._queued, self._counted_at = done + pages.pending + pages.claimed, monotonic()
        return layout.record_fields(job, state, self._queued + state.position.robots, now_ms())


def _number(entry: bytes) -> int:
    """The number of an entry: it comes before all that is taken from pages."""
    return int(entry.partition(b'"seq":')[2].partition(b",")[0])
