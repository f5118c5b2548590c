"""The jobs of a server that Redis shows: which they are, how they stand, and how far their ends are shown."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Any

from msgspec import Struct
from sqlalchemy import Boolean, ColumnElement, and_, func, literal_column, or_, select, update

from muniment.errors import UsageError
from muniment.model.job import JobOutcome
from muniment.model.network.live import LogEntry, LogPosition, LogState, ShownJob
from muniment.model.pipeline import tags_of
from muniment.model.queue import Totals
from muniment.tracker.db.database import Database, Prepared, retrying_transaction
from muniment.tracker.jobs.job_log import BEGUN, EntryText, add_entries
from muniment.tracker.schema.live import live_jobs
from muniment.tracker.schema.pipelines import trackers
from muniment.tracker.schema.tables import RESPONSES, job_sums, jobs

__all__ = [
    "LiveStart", "ShownEnding", "ShownLook", "TakenBeforeError", "begin_shown", "begin_taken", "ended_jobs",
    "hold_plane", "keep_pipeline", "recent_jobs", "say_end", "set_ending", "shown_jobs", "unshown_jobs",
]  # fmt: skip

_L = live_jobs.c
_GOING = literal_column("jobs.state IN ('ACTIVE', 'DRAINING')", Boolean())
_FLEET = literal_column("jobs.place_id = ''", Boolean())
_SUMS = (
    "pages_captured", "pages_failed", "starts_captured", "requisites_captured", "payload_bytes",
    *(f"responses_{name}" for name in RESPONSES), "errors",
)  # fmt: skip
"""In the order of the first fields of `Totals`."""


_COLUMNS = (
    jobs.c.id, _L.ident, jobs.c.state, jobs.c.outcome, jobs.c.settings_age, _L.said, _L.ending, jobs.c.paused,
    jobs.c.tags, _L.log_score, _L.log_length, _L.unknown, _L.robots,
)  # fmt: skip
_NOT_ENDED = literal_column("live_jobs.ending NOT IN ('SHOWN', 'GONE')", Boolean())
_LOOK = Prepared(
    select(*_COLUMNS).select_from(jobs.join(live_jobs)).where(_FLEET, or_(_GOING, _NOT_ENDED)).order_by(jobs.c.id)
)
_WHOLE = (
    select(*_COLUMNS, *(func.sum(job_sums.c[name]) for name in _SUMS))
    .select_from(jobs.join(live_jobs).outerjoin(job_sums, job_sums.c.job_id == jobs.c.id))
    .group_by(jobs.c.id, live_jobs.c.job_id)
)


class ShownEnding(StrEnum):
    """How far the end of a job is shown."""

    NONE = ""
    SAID = "SAID"
    """Its log has it."""
    SHOWN = "SHOWN"
    """So does Redis."""
    GONE = "GONE"
    """Redis did, and others took its record away."""


class LiveStart(Struct, frozen=True, kw_only=True):
    """What a job begins with that was taken from a queue of Redis."""

    ident: str
    url: str
    queued: str
    epoch: str
    """The state of the server that has its record."""


class TakenBeforeError(UsageError):
    """A job was taken from a queue before."""

    def __init__(self, job_id: int) -> None:
        super().__init__(f"it is job {job_id}")
        self.job_id = job_id


def begin_taken(db: Database, job_id: int, start: LiveStart, now: int) -> None:
    """Within the transaction that makes a job: note where it came from.

    Raises TakenBeforeError when it was taken before, or another job of its name runs.
    """
    # of two servers that take it at once the second waits here
    db.take_names([start.ident])
    again = or_(_L.queued == start.queued, _GOING)
    known = select(_L.job_id).join(jobs, jobs.c.id == _L.job_id).where(_L.ident == start.ident, again)
    if (before := db.connection.execute(known).scalar()) is not None:
        raise TakenBeforeError(int(before))
    row = {"ident": start.ident, "url": start.url, "queued": start.queued, "epoch": start.epoch, "started_at": now}
    db.connection.execute(live_jobs.insert().values(job_id=job_id, **row))


@retrying_transaction
def begin_shown(db: Database, job_ids: Sequence[int], now: int) -> None:
    """Have Redis show jobs from now on (Unix ms)."""
    with db.transaction():
        db.many(BEGUN, [(job_id, now) for job_id in job_ids])


def unshown_jobs(db: Database) -> list[int]:
    """The jobs that run, and that Redis does not show."""
    found = select(jobs.c.id).outerjoin(live_jobs).where(_GOING, _FLEET, _L.job_id.is_(None))
    return [int(job_id) for job_id in db.connection.execute(found.order_by(jobs.c.id)).scalars()]


class ShownLook(Struct, frozen=True):
    """A look at the jobs that Redis shows."""

    jobs: list[ShownJob] = []
    rows: dict[int, tuple[Any, ...]] = {}
    """What the database has of each; one that is as before is the same job as before."""


def shown_jobs(db: Database, before: ShownLook) -> ShownLook:
    """How the jobs stand that run, or whose ends Redis does not show yet; sums are made of those that changed alone."""
    there = {row[0]: row for row in db.rows(_LOOK)}
    changed = [job_id for job_id, row in there.items() if before.rows.get(job_id) != row]
    fresh = _whole(db, jobs.c.id.in_(changed)) if changed else {}
    known = {job.job_id: job for job in before.jobs}
    found = [fresh.get(job_id) or known.get(job_id) for job_id in there]
    # one that ended meanwhile is in the next look
    return ShownLook([job for job in found if job is not None], there)


def recent_jobs(db: Database, epoch: str, since: int) -> list[ShownJob]:
    """The jobs that ended since (Unix ms), but for aborted ones, whose records a server in this state lacks."""
    return list(_whole(db, and_(_ended_since(since), _L.epoch != epoch)).values())


def ended_jobs(db: Database, epoch: str, since: int) -> list[tuple[str, int]]:
    """Ident and number of those of them whose records a server in this state was given."""
    found = select(_L.ident, _L.job_id).select_from(jobs.join(live_jobs))
    rows = db.connection.execute(found.where(_ended_since(since), _L.epoch == epoch))
    return [(str(ident), int(job_id)) for ident, job_id in rows]


def _ended_since(since: int) -> ColumnElement[bool]:
    later = live_jobs.alias()
    again = select(later.c.job_id).where(later.c.ident == _L.ident, later.c.job_id > _L.job_id).exists()
    ended = jobs.c.outcome.in_([JobOutcome.COMPLETED.value, JobOutcome.FAILED.value])
    shown = and_(_L.ident != "", _L.ending == ShownEnding.SHOWN.value, ~again)
    return and_(_FLEET, jobs.c.finished_at > since, ended, shown)


def _whole(db: Database, condition: ColumnElement[bool]) -> dict[int, ShownJob]:
    """Position and sums come from one statement, so that neither is ahead of the other."""
    rows = db.connection.execute(_WHOLE.where(condition))
    return {
        rest[0]: ShownJob(
            *rest[:7], bool(rest[7]), tags_of(rest[8]), LogState(LogPosition(*rest[9:13]), _totals(rest[13:]))
        )
        for rest in rows
    }  # fmt: skip


def _totals(sums: Sequence[int | None]) -> Totals:
    values: list[Any] = [int(value or 0) for value in sums]
    return Totals(*values)


@retrying_transaction
def say_end(db: Database, job_id: int, lines: Sequence[LogEntry], text: EntryText) -> None:
    """Add the last lines of a job that has ended to its log, once."""
    with db.transaction():
        said = update(live_jobs).where(_L.job_id == job_id, _L.ending == "").values(ending=ShownEnding.SAID.value)
        if db.connection.execute(said).rowcount:
            add_entries(db, job_id, lines, text)


@retrying_transaction
def set_ending(db: Database, job_id: int, ending: ShownEnding) -> None:
    """Keep how far the end of a job is shown; not at all when it goes on."""
    with db.transaction():
        db.connection.execute(update(live_jobs).where(_L.job_id == job_id).values(ending=ending.value))


@retrying_transaction
def keep_pipeline(db: Database, job_id: int, instance: str) -> None:
    """Keep which pipeline works at a job."""
    with db.transaction():
        db.connection.execute(update(live_jobs).where(_L.job_id == job_id).values(pipeline=instance))


@retrying_transaction
def hold_plane(db: Database, server: str, now: int, lasts_ms: int) -> bool:
    """Whether a server has the live plane of this tracker, for some time from `now` (by the clock of leases)."""
    free = or_(trackers.c.plane == server, trackers.c.plane_until < now)
    with db.transaction():
        held = update(trackers).where(trackers.c.number == 1, free).values(plane=server, plane_until=now + lasts_ms)
        return bool(db.connection.execute(held).rowcount)
