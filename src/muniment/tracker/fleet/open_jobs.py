"""The jobs at hand of one dispatch."""

from __future__ import annotations

from sqlalchemy import and_, or_, select

from muniment.errors import NotFoundError
from muniment.model.job import JobState
from muniment.tracker.db.database import Database
from muniment.tracker.fleet.job_dispatch import JobDispatch
from muniment.tracker.fleet.job_logs import JobLogs
from muniment.tracker.fleet.lease_clock import LeaseClock
from muniment.tracker.fleet.sessions import GivenBack
from muniment.tracker.schema.tables import jobs

__all__ = ["OpenJobs"]

_MOST_JOB = 1 << 31


class OpenJobs:
    """Loads jobs when they come to hand, and lets those go that have ended."""

    def __init__(self, db: Database, clock: LeaseClock, logs: JobLogs | None = None) -> None:
        self._db, self._clock, self._logs = db, clock, logs
        self._work: dict[int, JobDispatch] = {}

    def of(self, job_id: int) -> JobDispatch:
        """A job; raises NotFoundError unless there is one that pipelines may work at."""
        work = self._work.get(job_id)
        if work is None:
            self._check(job_id)
            work = self._work[job_id] = JobDispatch(self._db, job_id, self._logs)
        return work

    def _check(self, job_id: int) -> None:
        # one that an output directory names runs without pipelines
        here = select(jobs.c.id).where(jobs.c.id == job_id, jobs.c.place_id == "")
        if not 0 < job_id < _MOST_JOB or self._db.connection.execute(here).first() is None:
            raise NotFoundError(f"there is no job {job_id}")

    def forget(self, job_id: int) -> None:
        """Read a job again when it comes to hand the next time."""
        self._work.pop(job_id, None)

    def add(self, given_back: GivenBack) -> None:
        """Note that pages wait again."""
        for (job_id, host_id), count in given_back.items():
            # a job that is not at hand counts them when it comes to hand
            if job_id in self._work:
                self._work[job_id].add({host_id: count})

    def took_back(self, given_back: GivenBack) -> None:
        """The same, and bring the states of their jobs in line with that."""
        self.add(given_back)
        for job_id in dict.fromkeys(job_id for job_id, _ in given_back):
            self.settle(job_id)

    def settle(self, job_id: int, *, anyway: bool = False) -> None:
        """Bring a job's state in line with its pages; one that is finished is let go."""
        if self.of(job_id).settle(self._clock.now(), anyway=anyway):
            # its caches are of no use any more
            self.forget(job_id)

    def sweep(self) -> None:
        """Do some of the work that is left to do at each job."""
        going = jobs.c.state.in_([JobState.ACTIVE.value, JobState.DRAINING.value])
        # a kill may have come before its outcome
        ended = and_(jobs.c.state == JobState.FINISHED.value, jobs.c.outcome == "")
        open_jobs = select(jobs.c.id).where(or_(going, ended), jobs.c.place_id == "").order_by(jobs.c.id)
        found = self._db.connection.execute(open_jobs).scalars().all()
        # others may have ended the rest
        self._work = {job_id: work for job_id, work in self._work.items() if job_id in found}
        for job_id in found:
            self.of(job_id).upkeep()
            self.settle(job_id, anyway=True)
