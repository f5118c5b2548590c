"""The log of a job of many pipelines: its attempts and changes, as lines, by the moment of their end."""

from __future__ import annotations

from sqlalchemy import desc, select

from muniment.clock import iso_ms
from muniment.model.network.dashboard import LogLine
from muniment.tracker.db.database import Database
from muniment.tracker.schema.changes import job_changes
from muniment.tracker.schema.tables import BY_SESSION, attempts, pages

__all__ = ["LinePlace", "lines_from", "lines_until"]

LinePlace = tuple[int, int, int]
"""End (Unix ms), page and number of an attempt; of a change its moment, 0 and its age."""

_TRIES = (
    attempts.c.finished_at, attempts.c.page_id, attempts.c.number, pages.c.url, attempts.c.status, attempts.c.error,
    attempts.c.started_at,
)  # fmt: skip
_CHANGES = (
    job_changes.c.at, job_changes.c.age, job_changes.c.who, job_changes.c.what, job_changes.c.before,
    job_changes.c.after,
)  # fmt: skip
_OF_PAGE = (pages.c.job_id == attempts.c.job_id) & (pages.c.id == attempts.c.page_id)


def lines_until(db: Database, job_id: int, before: int | None, most: int) -> list[tuple[LinePlace, LogLine]]:
    """The last lines before a moment, so many of either kind at most; the newest first."""
    tries = select(*_TRIES).join(pages, _OF_PAGE).where(attempts.c.job_id == job_id, BY_SESSION)
    made = select(*_CHANGES).where(job_changes.c.job_id == job_id)
    if before is not None:
        tries, made = tries.where(attempts.c.finished_at < before), made.where(job_changes.c.at < before)
    rows = db.connection.execute(tries.order_by(desc(attempts.c.finished_at)).limit(most))
    lines = [_try(*row) for row in rows]
    lines += [_change(*row) for row in db.connection.execute(made.order_by(desc(job_changes.c.at)).limit(most))]
    return sorted(lines, key=lambda one: one[0], reverse=True)


def lines_from(db: Database, job_id: int, since: int, most: int) -> list[tuple[LinePlace, LogLine]]:
    """The lines from a moment on, the newest so many of attempts, in order."""
    tries = select(*_TRIES).join(pages, _OF_PAGE).where(attempts.c.job_id == job_id, BY_SESSION)
    tries = tries.where(attempts.c.finished_at >= since)
    made = select(*_CHANGES).where(job_changes.c.job_id == job_id, job_changes.c.at >= since)
    lines = [_try(*row) for row in db.connection.execute(tries.order_by(desc(attempts.c.finished_at)).limit(most))]
    lines += [_change(*row) for row in db.connection.execute(made.order_by(job_changes.c.at).limit(most))]
    return sorted(lines, key=lambda one: one[0])


def _try(
    at: int, page: int, number: int, url: str, status: int, error: str, started_at: int
) -> tuple[LinePlace, LogLine]:
    line = LogLine(
        ts=iso_ms(at),
        kind="fail" if error else "capture",
        url=url,
        status=status,
        code=error.partition(":")[0],
        ms=max(0, at - started_at),
        text=error,
    )
    return (at, page, number), line


def _change(at: int, age: int, who: str, what: str, before: str, after: str) -> tuple[LinePlace, LogLine]:
    return (at, 0, age), LogLine(ts=iso_ms(at), kind="change", text=f"{who}: {what}: {before} → {after}")
