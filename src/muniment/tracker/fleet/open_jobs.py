"""The jobs at hand of one dispatch."""

from __future__ import annotations

from sqlalchemy import ColumnElement, TextClause, and_, func, literal_column, or_, select

from muniment.errors import NotFoundError
from muniment.tracker.db.database import Database, Prepared
from muniment.tracker.fleet.job_dispatch import JobDispatch
from muniment.tracker.fleet.job_logs import JobLogs
from muniment.tracker.fleet.lease_clock import LeaseClock
from muniment.tracker.fleet.sessions import GivenBack
from muniment.tracker.schema.changes import job_rulesets
from muniment.tracker.schema.tables import CLAIMED, PARKED, PENDING, STASHED, jobs, pages, repairs

__all__ = ["OpenJobs"]

_MOST_JOB = 1 << 31


def _has(condition: TextClause, index: str) -> ColumnElement[bool]:
    # looked up for each job: as a join, it would read all pages of this kind
    some = select(pages.c.id).with_hint(pages, f"INDEXED BY {index}", "sqlite").correlate(jobs)
    one = some.where(pages.c.job_id == jobs.c.id, condition).limit(literal_column("1"))
    return one.scalar_subquery().is_not(None)


_NEWEST = select(func.max(job_rulesets.c.version)).where(job_rulesets.c.job_id == jobs.c.id).scalar_subquery()
_JUDGED = jobs.c.judged >= func.coalesce(_NEWEST, literal_column("0"))
_REPAIR = select(repairs.c.page_id).where(repairs.c.job_id == jobs.c.id).limit(literal_column("1")).scalar_subquery()
_PENDING, _HELD = _has(PENDING, "ix_pages_pending"), _has(CLAIMED, "ix_pages_claimed")
_ASIDE, _LATER = _has(STASHED, "ix_pages_stashed"), _has(PARKED, "ix_pages_parked")
_IS_ACTIVE, _IS_DRAINING = (jobs.c.state == literal_column(f"'{state}'") for state in ("ACTIVE", "DRAINING"))
_DRAINS = and_(jobs.c.drip == literal_column("0"), ~_PENDING, or_(_HELD, and_(_ASIDE, ~_LATER)))
_SETTLED = and_(_JUDGED, _REPAIR.is_(None), or_(and_(_IS_ACTIVE, _PENDING), and_(_IS_DRAINING, _DRAINS)))
# a kill may have come before the outcome
_UNSAID = and_(jobs.c.state == literal_column("'FINISHED'"), jobs.c.outcome == literal_column("''"))
_OPEN = Prepared(
    select(jobs.c.id, _IS_ACTIVE, _SETTLED)
    .where(or_(_IS_ACTIVE, _IS_DRAINING, _UNSAID), jobs.c.place_id == literal_column("''"))
    .order_by(jobs.c.id)
)
"""The jobs that have not ended, whether each is ACTIVE, and whether its state is that of its pages for now."""


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

    def begin_work(self, job_id: int) -> None:
        """Do one batch of what is left to do at a job, so that a change of a small one holds at once."""
        if (work := self._work.get(job_id)) is not None and work.at_work:
            work.upkeep()

    def sweep(self) -> None:
        """Do some of the work that is left to do at the jobs that have some; one statement finds these."""
        found = {job_id: (active, settled) for job_id, active, settled in self._db.rows(_OPEN, ())}
        # others may have ended the rest
        self._work = {job_id: work for job_id, work in self._work.items() if job_id in found}
        for job_id, (active, settled) in found.items():
            work = self._work.get(job_id)
            if not settled or (work is not None and (work.at_work or (active and not work.waits))):
                self.of(job_id).upkeep()
                self.settle(job_id, anyway=True)
