"""What Redis shows of a job: its ident, where its log ends, and the rest as operators see it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import msgspec
from sqlalchemy import Row, bindparam, select

from muniment.model.network.live import LiveJob, LogPosition
from muniment.model.page import PageResult
from muniment.model.queue import Totals
from muniment.rules.job_rules import Rules
from muniment.settings.option_table import Settings
from muniment.tracker.db.database import BatchInsert, Database, Prepared, retrying_transaction
from muniment.tracker.jobs.store import all_latest_rules
from muniment.tracker.schema.live import live_jobs
from muniment.tracker.schema.tables import jobs

__all__ = [
    "EntryLog", "KeptLog", "Log", "keep_counted", "keep_epochs", "keep_ident", "live_job", "log_position",
    "read_position", "several_live",
]  # fmt: skip

_BEGUN = BatchInsert(live_jobs, "job_id", "started_at", conflict="IGNORE")
_END = Prepared(
    live_jobs.update()
    .where(live_jobs.c.job_id == bindparam("job"))
    .values(
        log_score=bindparam("score"),
        log_length=bindparam("bytes"),
        unknown=bindparam("beyond"),
        robots=bindparam("asked"),
    ),
    "score", "bytes", "beyond", "asked", "job",
)  # fmt: skip
_POSITION = select(live_jobs.c.log_score, live_jobs.c.log_length, live_jobs.c.unknown, live_jobs.c.robots)
_COLUMNS = (
    jobs.c.state, jobs.c.outcome, jobs.c.settings, jobs.c.paused, jobs.c.settings_age, jobs.c.explanation,
    jobs.c.started_by, jobs.c.started_in, jobs.c.created_at, jobs.c.finished_at, jobs.c.reason, live_jobs.c.ident,
    live_jobs.c.url, live_jobs.c.epoch, live_jobs.c.started_at, live_jobs.c.queued, live_jobs.c.pipeline,
    live_jobs.c.counted,
)  # fmt: skip


class Log(Protocol):
    """The log of a job, outside of the tracker."""

    def write(self, pages: Sequence[PageResult]) -> LogPosition:
        """Write the entries of pages, and what else waits; the log's new end."""

    def forget(self) -> None:
        """What was written since the last commit is to be written again."""

    def commit(self, totals: Totals) -> None:
        """It is committed."""


class EntryLog(Protocol):
    """A log that is written with the pages whose entries it has."""

    def write(self, pages: Sequence[PageResult], skipped: Sequence[tuple[str, str]] = ()) -> None:
        """Write what became of pages, and URL and reason of what is left out, within the caller's transaction."""

    def commit(self, totals: Totals) -> None:
        """The caller's transaction is committed."""


class KeptLog:
    """A log whose end is part of the transactions whose entries it has."""

    def __init__(self, db: Database, job_id: int, log: Log) -> None:
        self._db, self._job_id, self._log = db, job_id, log
        db.on_rollback(self._forget)

    def _forget(self) -> None:
        self._log.forget()

    def write(self, pages: Sequence[PageResult], _skipped: Sequence[tuple[str, str]] = ()) -> None:
        """Write what became of pages, within the caller's transaction; what is left out comes by events."""
        end = self._log.write(pages)
        self._db.many(_END, [(end.score, end.length, end.unknown, end.robots, self._job_id)])

    @retrying_transaction
    def keep(self, totals: Totals) -> None:
        """Write what waits, in a transaction of its own."""
        with self._db.transaction():
            self.write(())
        self.commit(totals)

    def commit(self, totals: Totals) -> None:
        """The caller's transaction is committed."""
        self._log.commit(totals)


@retrying_transaction
def log_position(db: Database, job_id: int, now: int) -> LogPosition:
    """Where the log of a job ends; a job that has none begins one at `now` (Unix ms)."""
    with db.transaction():
        db.many(_BEGUN, [(job_id, now)])
        return read_position(db, job_id)


def read_position(db: Database, job_id: int) -> LogPosition:
    """Where the log of a job ends, as committed."""
    found = db.connection.execute(_POSITION.where(live_jobs.c.job_id == job_id)).one_or_none()
    return LogPosition(*found) if found else LogPosition()


@retrying_transaction
def keep_ident(db: Database, job_id: int, ident: str, url: str) -> None:
    """Keep the name of a job in Redis, and the URL that makes it."""
    with db.transaction():
        named = live_jobs.update().where(live_jobs.c.job_id == job_id).values(ident=ident, url=url)
        db.connection.execute(named)


@retrying_transaction
def keep_epochs(db: Database, job_ids: Sequence[int], epoch: str) -> None:
    """Keep which server has all of some jobs."""
    with db.transaction():
        db.connection.execute(live_jobs.update().where(live_jobs.c.job_id.in_(job_ids)).values(epoch=epoch))


@retrying_transaction
def keep_counted(db: Database, job_id: int, outcome: str) -> None:
    """Keep which outcome of a job the counts in Redis have; empty for none."""
    with db.transaction():
        db.connection.execute(live_jobs.update().where(live_jobs.c.job_id == job_id).values(counted=outcome))


def live_job(db: Database, job_id: int) -> LiveJob:
    """A job as Redis shows it."""
    return several_live(db, [job_id])[job_id]


def several_live(db: Database, job_ids: Sequence[int]) -> dict[int, LiveJob]:
    """Some jobs as Redis shows them, by their numbers."""
    found = select(jobs.c.id, *_COLUMNS).select_from(jobs.outerjoin(live_jobs)).where(jobs.c.id.in_(job_ids))
    rules = all_latest_rules(db, job_ids)
    return {row.id: _live(row, rules[row.id]) for row in db.connection.execute(found)}


def _live(row: Row[*tuple[Any, ...]], rules: Rules) -> LiveJob:
    return LiveJob(
        job_id=row.id,
        state=row.state,
        outcome=row.outcome,
        settings=msgspec.json.decode(row.settings, type=Settings),
        patterns=frozenset(pattern for _, pattern in rules.all_ignores()),
        paused=bool(row.paused),
        age=row.settings_age,
        explanation=row.explanation,
        started_by=row.started_by,
        started_in=row.started_in,
        created_at=row.created_at,
        finished_at=row.finished_at,
        ident=row.ident or "",
        url=row.url or "",
        epoch=row.epoch or "",
        started_at=row.started_at or 0,
        queued=row.queued or "",
        pipeline=row.pipeline or "",
        reason=row.reason,
        counted=row.counted or "",
    )
