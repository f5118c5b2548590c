"""Retries: pages that get new tries in a later run or round. They are taken out of the counters first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

from sqlalchemy import ColumnElement, Connection, bindparam, exists, false, func, literal_column, or_, select

from muniment.model.job import JobState
from muniment.model.page import Counted, PageOutcome
from muniment.rules.retry import ASKS_AGAIN, LONGEST_WAIT_MS
from muniment.settings.option_table import Settings
from muniment.tracker.db.database import Database, Prepared, retrying_transaction
from muniment.tracker.jobs.stash import drip
from muniment.tracker.jobs.store import any_claimed, any_parked, any_pending, reopen
from muniment.tracker.queue.counters import Counters, take_out
from muniment.tracker.schema.attempt_budget import IS_LATEST, UNASKED, new_tries
from muniment.tracker.schema.tables import PARKED, PENDING, attempts, fresh_payloads, jobs, pages, payloads

__all__ = [
    "any_failed",
    "any_to_revive",
    "begun_round",
    "next_round",
    "revive",
    "try_again",
    "try_failed_again",
    "try_lost_again",
]

_INSIDE = "private-address: %"
_BY_ROBOTS = "robots: robots.txt%"
_BY_INDEX = pages, "INDEXED BY ix_pages_pending", "sqlite"
_WAITING = pages.c.job_id == bindparam("job"), PENDING
_NOT_LATER = or_(pages.c.rounds == 0, pages.c.ready_at <= bindparam("now"), pages.c.ready_at > bindparam("never"))
_OTHERS = Prepared(
    select(pages.c.id).with_hint(*_BY_INDEX).where(*_WAITING, _NOT_LATER).limit(1), "job", "now", "never"
)
_COUNTED = Prepared(select(func.count(), func.min(pages.c.ready_at)).with_hint(*_BY_INDEX).where(*_WAITING), "job")


@retrying_transaction
def try_again(db: Database, job_id: int, tries: int) -> int:
    """Give the start pages of a job that captured nothing their tries back; returns how many there are."""
    with db.transaction() as connection:
        return _give_back(db, connection, job_id, (pages.c.link_hops == 0) & (pages.c.state == "READY"), tries)


def any_failed(db: Database, job_id: int) -> bool:
    """Whether there are pages that `try_failed_again` takes up."""
    some = select(pages.c.id).where(pages.c.job_id == job_id, _has_failed()).limit(1)
    return db.connection.execute(some).first() is not None


@retrying_transaction
def try_failed_again(db: Database, job_id: int, tries: int) -> int:
    """Give the pages that failed for good, or were skipped with their origin, their tries back; returns how many."""
    with db.transaction() as connection:
        return _give_back(db, connection, job_id, _has_failed(), tries)


@retrying_transaction
def try_lost_again(db: Database, job_id: int, epochs: Collection[int], tries: int) -> int:
    """Give the pages tries that were done last in these sessions, whose files are gone; returns how many there are.

    Nothing refers to their payloads any more. A finished job goes on.
    """
    theirs = exists().where(IS_LATEST, attempts.c.session.in_(epochs)).correlate(pages)
    which = (pages.c.state == "READY") & (pages.c.attempts_remaining == 0) & (pages.c.counted > 0) & theirs
    with db.transaction() as connection:
        db.take_turns(job_id, alone=True)
        lost = select(pages.c.id).where(pages.c.job_id == job_id, which)
        for kept in (payloads, fresh_payloads):
            connection.execute(kept.delete().where(kept.c.job_id == job_id, kept.c.page_id.in_(lost)))
        count = _give_back(db, connection, job_id, which, tries)
        if count:
            finished = jobs.c.id == job_id, jobs.c.state == JobState.FINISHED.value
            connection.execute(jobs.update().where(*finished).values(state="ACTIVE", outcome="", finished_at=None))
    return count


def _has_failed() -> ColumnElement[bool]:
    """Pages that count as failed, whose origin was given up, or whose last status asks for another try."""
    asks_again = exists().where(IS_LATEST, attempts.c.status.in_(ASKS_AGAIN)).correlate(pages)
    return or_(
        pages.c.counted == PageOutcome.FAILED,
        UNASKED,
        pages.c.counted.in_((PageOutcome.CAPTURED, PageOutcome.REQUISITE)) & asks_again,
    )


def _give_back(db: Database, connection: Connection, job_id: int, which: ColumnElement[bool], tries: int) -> int:
    """Make pages wait as if they had not been tried, and take them out of the counters, before a run reads these."""
    here = pages.c.job_id == job_id, which
    is_start = pages.c.link_hops == literal_column("0")
    sums: Counter[Counted] = Counter()
    starts = 0
    by = pages.c.counted, pages.c.tally, is_start
    for counted, tally, start, count in connection.execute(select(*by, func.count()).where(*here).group_by(*by)):
        sums[Counted(counted, tally)] += count
        starts += count if start and counted == PageOutcome.CAPTURED else 0
    take_out(db, job_id, sums, starts)
    anew = {
        "state": "READY",
        "reason": "",
        "rounds": 0,
        "throttled": 0,
        "counted": PageOutcome.NONE,
        "tally": 0,
        **new_tries(tries),
    }
    connection.execute(pages.update().where(*here).values(anew))
    return sums.total()


def any_to_revive(db: Database, job_id: int, settings: Settings) -> bool:
    """Whether there are pages that `revive` takes up."""
    some = select(pages.c.id).where(pages.c.job_id == job_id, _kept_back(settings)).limit(1)
    return db.connection.execute(some).first() is not None


def revive(db: Database, job_id: int, settings: Settings) -> int:
    """Give pages new tries that settings had kept out: robots.txt that is not obeyed any more, and private addresses.

    Returns how many there are; with some, the job is open again. What failed for another reason is left alone.
    """
    if not any_to_revive(db, job_id, settings):
        return 0
    # before its pages wait again: a run that is killed then must not find a job that is over
    reopen(db, job_id)
    return _revive(db, job_id, settings)


@retrying_transaction
def _revive(db: Database, job_id: int, settings: Settings) -> int:
    with db.transaction() as connection:
        return _give_back(db, connection, job_id, _kept_back(settings), settings.tries)


def _kept_back(settings: Settings) -> ColumnElement[bool]:
    beginnings = [*([] if settings.robots else [_BY_ROBOTS]), *([_INSIDE] if settings.allow_private else [])]
    if not beginnings:
        return false()
    skipped = (pages.c.state == "SKIPPED") & or_(*map(pages.c.reason.like, beginnings))
    failed_so = exists().where(IS_LATEST, or_(*map(attempts.c.error.like, beginnings))).correlate(pages)
    return or_(skipped, (pages.c.counted == PageOutcome.FAILED) & failed_so)


def next_round(
    db: Database, job_id: int, tries: int, counters: Counters, waited: Collection[int] = ()
) -> list[tuple[int, int, int]]:
    """Let pages drip out of the stash; if none, give the parked ones new tries, when all others are of `waited` hosts.

    Returns (host number, pages newly pending, when the first of them is due in Unix ms; 0 for now).
    """
    if taken := drip(db, job_id):
        return [(host, count, 0) for host, count in taken.items()]
    return _begin_round(db, job_id, tries, counters, waited)


@retrying_transaction
def _begin_round(
    db: Database, job_id: int, tries: int, counters: Counters, waited: Collection[int]
) -> list[tuple[int, int, int]]:
    with db.transaction() as connection:
        db.take_turns(job_id, alone=True)
        if not any_parked(db, job_id) or any_claimed(db, job_id) or _others_wait(db, job_id, waited):
            return []
        parked = pages.c.job_id == job_id, PARKED
        counted = select(pages.c.host_id, func.count(), func.min(pages.c.ready_at)).where(*parked, pages.c.in_scope)
        found = [(int(h), int(n), int(at)) for h, n, at in connection.execute(counted.group_by(pages.c.host_id))]
        by = pages.c.counted, pages.c.tally
        taken = connection.execute(select(*by, func.count()).where(*parked).group_by(*by)).all()
        uncounted = {"counted": PageOutcome.NONE, "tally": 0, "rounds": pages.c.rounds + 1}
        connection.execute(pages.update().where(*parked).values({**uncounted, **new_tries(tries, pages.c.ready_at)}))
        counters.save(Counter({Counted(*row[:2]): row[2] for row in taken}))
    return found


def _others_wait(db: Database, job_id: int, waited: Collection[int]) -> bool:
    if not waited:
        return any_pending(db, job_id)
    pending = select(pages.c.host_id).where(pages.c.job_id == job_id, PENDING).distinct()
    return not set(db.connection.execute(pending).scalars()) <= set(waited)


def begun_round(db: Database, job_id: int, now: int) -> tuple[int, int]:
    """How many pages a round has to do that began before, and when the first is due; none if others are pending."""
    if db.rows(_OTHERS, (job_id, now, now + LONGEST_WAIT_MS)):
        return 0, 0
    [(count, due_at)] = db.rows(_COUNTED, (job_id,))
    return int(count), int(due_at or 0)
