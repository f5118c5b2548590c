"""Outcomes: which hosts never answered, which were given up. Read when a run is over."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlalchemy import func, or_, select

from muniment.model.page import PageOutcome
from muniment.rules.retry import ASKS_AGAIN
from muniment.tracker.db.database import Database
from muniment.tracker.schema.attempt_budget import IS_LATEST, UNASKED
from muniment.tracker.schema.tables import attempts, hosts, pages

__all__ = ["done_pages", "given_up", "page_urls", "silent_hosts"]

_CAPTURED = PageOutcome.CAPTURED, PageOutcome.REQUISITE
_DEAD = "dead-host"


def silent_hosts(db: Database, job_id: int) -> list[tuple[str, str, int]]:
    """(host, code, pages) of the hosts that gave no answer to any page that has ended."""
    found = (
        select(pages.c.host_id, attempts.c.error, func.count(), func.max(attempts.c.status))
        .select_from(pages)
        .outerjoin(attempts, IS_LATEST)
        .where(pages.c.job_id == job_id)
        .where(or_(pages.c.counted == PageOutcome.FAILED, pages.c.reason.like(_DEAD + ":%")))
        .group_by(pages.c.host_id, attempts.c.error)
    )
    rows = db.connection.execute(found).all()
    answered = {host_id for host_id, _, _, status in rows if status}
    captured = select(pages.c.host_id).where(pages.c.job_id == job_id, pages.c.counted.in_(_CAPTURED)).distinct()
    if rows:
        answered.update(db.connection.execute(captured).scalars())
    silent = [(host_id, error, count) for host_id, error, count, _ in rows if host_id not in answered]
    named = select(hosts.c.id, hosts.c.name).where(hosts.c.job_id == job_id)
    names = {int(host_id): str(name) for host_id, name in db.connection.execute(named)} if silent else {}
    # a page that was given up without a try of its own has no attempt
    return [(names[host_id], (error or _DEAD).partition(":")[0], count) for host_id, error, count in silent]


def given_up(db: Database, job_id: int) -> int:
    """The number of pages that `--retry-failed` would fetch again, without those that cannot or may not be fetched."""
    error = func.coalesce(attempts.c.error, "")
    failed = (pages.c.counted == PageOutcome.FAILED) & error.not_like("robots:%") & error.not_like("scheme:%")
    # of versions that counted these as captured, and 408 and 425: found by the few attempts that have such a status
    asks_again = pages.c.counted.in_(_CAPTURED) & attempts.c.status.in_(ASKS_AGAIN)
    counted = [
        select(func.count()).select_from(source).where(pages.c.job_id == job_id, condition)
        for source, condition in (
            (pages.outerjoin(attempts, IS_LATEST), or_(failed, UNASKED)),
            (attempts.join(pages, IS_LATEST), asks_again & (attempts.c.job_id == job_id)),
        )
    ]
    return sum(int(db.connection.execute(one).scalar_one()) for one in counted)


def done_pages(db: Database, job_id: int) -> Iterator[tuple[int, str]]:
    """(id, URL) of the pages whose last try has ended: each has a row of the index."""
    done = select(pages.c.id, pages.c.url).where(
        pages.c.job_id == job_id,
        pages.c.state == "READY",
        pages.c.attempts_remaining == 0,
        pages.c.counted > 0,
        pages.c.ready_at == 0,  # one that a later round takes up has no row yet
    )
    for page_id, url in db.connection.execution_options(yield_per=10_000).execute(done):
        yield int(page_id), str(url)


def page_urls(db: Database, job_id: int, ids: Sequence[int]) -> list[str]:
    """The URLs of some pages."""
    found = select(pages.c.url).where(pages.c.job_id == job_id, pages.c.id.in_(ids))
    return [str(url) for url in db.connection.execute(found).scalars()]
