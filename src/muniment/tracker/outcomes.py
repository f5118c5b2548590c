"""Outcomes: which hosts of a job never answered. Read once, at the end of a run."""

from __future__ import annotations

from sqlalchemy import func, or_, select

from muniment.tracker.engine import Database
from muniment.tracker.tables import attempts, hosts, pages

__all__ = ["silent_hosts"]

_FAILED = 3
_CAPTURED = (1, 2)
_DEAD = "dead-host"


def silent_hosts(db: Database, job_id: int) -> list[tuple[str, str, int]]:
    """(host, code, pages) of the hosts that gave no answer to any page that has ended."""
    found = (
        select(pages.c.host_id, attempts.c.error, func.count(), func.max(attempts.c.status))
        .select_from(pages)
        .outerjoin(
            attempts,
            (attempts.c.job_id == pages.c.job_id)
            & (attempts.c.page_id == pages.c.id)
            & (attempts.c.number == pages.c.attempts),
        )
        .where(pages.c.job_id == job_id)
        .where(or_(pages.c.counted == _FAILED, pages.c.reason.like(_DEAD + ":%")))
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
