"""The stash: pages that an operator put aside. They come back all at once, some at a time, or as others are done."""

from __future__ import annotations

from collections import Counter

from sqlalchemy import func, select

from muniment.model.job import JobState
from muniment.model.page import PageState
from muniment.tracker.db.database import Database, retrying_transaction
from muniment.tracker.jobs.store import any_pending
from muniment.tracker.schema.tables import PENDING, hosts, jobs, pages

__all__ = ["apply_stash", "apply_unstash", "drip", "stash", "stashed", "unstash"]

_STASHED = pages.c.state == PageState.STASHED.value


@retrying_transaction
def stash(db: Database, job_id: int, *, host: str = "", prefix: str = "") -> Counter[int]:
    """Put the pages aside that wait, of one host or with URLs that begin so; how many, per host number."""
    with db.transaction():
        return apply_stash(db, job_id, host=host, prefix=prefix)


def apply_stash(db: Database, job_id: int, *, host: str = "", prefix: str = "") -> Counter[int]:
    """The same within the caller's transaction."""
    which = [pages.c.job_id == job_id]
    if host:
        which.append(pages.c.host_id.in_(select(hosts.c.id).where(hosts.c.job_id == job_id, hosts.c.name == host)))
    if prefix:
        which.append(func.substr(pages.c.url, 1, len(prefix)) == prefix)
    put = db.connection.execute(
        pages.update().where(*which, PENDING).values(state=PageState.STASHED.value).returning(pages.c.host_id)
    )
    return Counter(int(host_id) for (host_id,) in put)


@retrying_transaction
def unstash(db: Database, job_id: int, most: int | None = None) -> Counter[int]:
    """Take the first pages out of the stash, nice then first in first out; pages newly pending per host number."""
    with db.transaction():
        return apply_unstash(db, job_id, most)


@retrying_transaction
def drip(db: Database, job_id: int) -> Counter[int]:
    """Take as many out as the job says, for a job of which no page is pending; pages newly pending per host number."""
    with db.transaction() as connection:
        going = jobs.c.state != JobState.ABORTED.value
        drop = connection.execute(select(jobs.c.drip).where(jobs.c.id == job_id, going).with_for_update()).scalar()
        # another process may have let some out, or brought some
        if not drop or any_pending(db, job_id):
            return Counter()
        return apply_unstash(db, job_id, int(drop))


def stashed(db: Database, job_id: int) -> int:
    """The number of pages in the stash."""
    return int(db.connection.execute(select(func.count()).where(pages.c.job_id == job_id, _STASHED)).scalar_one())


def apply_unstash(db: Database, job_id: int, most: int | None) -> Counter[int]:
    """Take pages out of the stash within the caller's transaction; those newly pending per host number."""
    first = select(pages.c.id).where(pages.c.job_id == job_id, _STASHED).order_by(pages.c.nice, pages.c.id)
    taken = db.connection.execute(
        pages.update()
        .where(pages.c.job_id == job_id, _STASHED, pages.c.id.in_(first.limit(most)))
        .values(state=PageState.READY.value)
        .returning(pages.c.host_id, pages.c.in_scope, pages.c.attempts_remaining)
    )
    return Counter(int(host_id) for host_id, in_scope, left in taken if in_scope and left > 0)
