"""Rounds: the pages of a job whose tries are used up get new ones when nothing else of it is left."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

from sqlalchemy import bindparam, func, or_, select

from muniment.rules.retry import LONGEST_WAIT_MS
from muniment.tracker.engine import Database, Prepared, one_transaction
from muniment.tracker.jobs import any_claimed, any_parked, any_pending
from muniment.tracker.sums import Sums
from muniment.tracker.tables import PARKED, PENDING, pages
from muniment.tracker.tries import new_tries

__all__ = ["begin_round", "begun_round"]

_BY_INDEX = pages, "INDEXED BY ix_pages_pending", "sqlite"
_WAITING = pages.c.job_id == bindparam("job"), PENDING
_NOT_LATER = or_(pages.c.rounds == 0, pages.c.ready_at <= bindparam("now"), pages.c.ready_at > bindparam("never"))
_OTHERS = Prepared(
    select(pages.c.id).with_hint(*_BY_INDEX).where(*_WAITING, _NOT_LATER).limit(1), "job", "now", "never"
)
_COUNTED = Prepared(select(func.count(), func.min(pages.c.ready_at)).with_hint(*_BY_INDEX).where(*_WAITING), "job")


@one_transaction
def begin_round(
    db: Database, job_id: int, tries: int, sums: Sums, waited: Collection[int] = ()
) -> list[tuple[int, int, int]]:
    """Give the parked pages new tries, unless others are claimed, or pending and not of `waited` hosts.

    Returns (host number, pages newly pending, when the first of them is due in Unix ms).
    """
    with db.transaction() as connection:
        db.take_turns(job_id, alone=True)
        if not any_parked(db, job_id) or any_claimed(db, job_id) or _others_wait(db, job_id, waited):
            return []
        parked = pages.c.job_id == job_id, PARKED
        counted = select(pages.c.host_id, func.count(), func.min(pages.c.ready_at)).where(*parked, pages.c.in_scope)
        found = [(int(h), int(n), int(at)) for h, n, at in connection.execute(counted.group_by(pages.c.host_id))]
        again = {"counted": 0, "rounds": pages.c.rounds + 1, **new_tries(tries, pages.c.ready_at)}
        taken = connection.execute(pages.update().where(*parked).values(again)).rowcount
        sums.save(Counter({3: taken}))
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
