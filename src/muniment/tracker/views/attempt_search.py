"""Search in attempts as captures: those of all jobs, for a server that has no archive at hand."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Select, case, desc, func, or_, select

from muniment.model.network.captures import CaptureFilter, CaptureRow, TimeBucket
from muniment.tracker.db.database import Database
from muniment.tracker.schema.tables import BY_SESSION, attempts, hosts, jobs, pages

__all__ = ["newest_by_host", "newest_over_time", "search_attempts"]

_MOST_PLOTTED, _MOST_SPANS, _MOST_NAMED = 50_000, 60, 5
_ROWS = (
    select(
        attempts.c.job_id, pages.c.url, hosts.c.name, attempts.c.status, attempts.c.finished_at, attempts.c.error,
        attempts.c.number, attempts.c.started_at,
    )
    .join(pages, (pages.c.job_id == attempts.c.job_id) & (pages.c.id == attempts.c.page_id))
    .join(hosts, (hosts.c.job_id == pages.c.job_id) & (hosts.c.id == pages.c.host_id))
)  # fmt: skip


def search_attempts(db: Database, wanted: CaptureFilter, most: int, offset: int) -> list[CaptureRow]:
    """The newest attempts that fit, after so many of them; no type fits, since a tracker has none.

    Raises UsageError for an invalid status.
    """
    if wanted.type:
        return []
    numbers = [wanted.job] if wanted.job is not None else _job_numbers(db)
    query = _conditions(_ROWS, wanted).order_by(desc(attempts.c.finished_at)).limit(offset + most)
    if wanted.since is not None or not (wanted.q or wanted.host or wanted.status or wanted.error):
        # else few may fit: all of them are read faster in the order of their pages
        query = query.where(BY_SESSION)
    found = [db.connection.execute(query.where(attempts.c.job_id == number)).all() for number in numbers]
    newest = heapq.nlargest(offset + most, (row for rows in found for row in rows), key=lambda row: row[4])
    return [_capture(row) for row in newest[offset:]]


def newest_over_time(db: Database, job_id: int) -> tuple[int, list[TimeBucket]]:
    """When the newest attempts of a job ended: the length of a span in ms, and sums by span, class of status and host.

    Hosts are the five with most attempts; the others are one, without a name.
    """
    newest = _newest(job_id)
    first, last = db.connection.execute(select(func.min(newest.finished_at), func.max(newest.finished_at))).one()
    if first is None:
        return 0, []
    span = max(1000, -(-(last - first + 1) // _MOST_SPANS))
    at, kind = (newest.finished_at - first) // span, newest.status // 100
    summed = select(at, kind, pages.c.host_id, func.count()).where(
        pages.c.job_id == job_id, pages.c.id == newest.page_id
    )
    rows = db.connection.execute(summed.group_by(at, kind, pages.c.host_id)).all()
    names = _most_asked(db, job_id, rows)
    sums: Counter[tuple[int, int, str]] = Counter()
    for bucket, status_class, host, count in rows:
        sums[first + int(bucket) * span, min(int(status_class), 6), names.get(host, "")] += int(count)
    return span, [TimeBucket(*key, count) for key, count in sorted(sums.items())]


def newest_by_host(db: Database, job_id: int) -> dict[str, tuple[int, int]]:
    """By host: how many of a job's newest attempts were at it, and how many have an error or a status from 400 on."""
    newest = _newest(job_id)
    bad = func.sum(case((or_(newest.error != "", newest.status >= 400), 1), else_=0))
    summed = select(hosts.c.name, func.count(), bad).where(
        pages.c.job_id == job_id, pages.c.id == newest.page_id, hosts.c.job_id == job_id, hosts.c.id == pages.c.host_id
    )
    found = db.connection.execute(summed.group_by(hosts.c.name))
    return {str(name): (int(count), int(wrong)) for name, count, wrong in found}


def _newest(job_id: int) -> Any:
    """The columns of a job's newest attempts."""
    a = attempts.c
    ends = select(a.finished_at, a.status, a.error, a.page_id).where(a.job_id == job_id, BY_SESSION)
    return ends.order_by(desc(a.finished_at)).limit(_MOST_PLOTTED).subquery().c


def _most_asked(db: Database, job_id: int, rows: Sequence[Any]) -> dict[int, str]:
    """The names of the hosts with most attempts, by their numbers."""
    asked: Counter[int] = Counter()
    for *_, host, count in rows:
        asked[host] += int(count)
    most = [host for host, _ in asked.most_common(_MOST_NAMED)]
    named = select(hosts.c.id, hosts.c.name).where(hosts.c.job_id == job_id, hosts.c.id.in_(most))
    return {int(number): str(name) for number, name in db.connection.execute(named)}


def _job_numbers(db: Database) -> Sequence[int]:
    return db.connection.execute(select(jobs.c.id)).scalars().all()


def _conditions(query: Select[Any], wanted: CaptureFilter) -> Select[Any]:
    if wanted.q:
        query = query.where(pages.c.url.contains(wanted.q, autoescape=True))
    if wanted.host:
        query = query.where(hosts.c.name == wanted.host.lower())
    if (statuses := wanted.statuses()) is not None:
        query = query.where(attempts.c.status.between(*statuses))
    if wanted.error:
        query = query.where(attempts.c.error.startswith(wanted.error, autoescape=True))
    if wanted.since is not None:
        query = query.where(attempts.c.finished_at >= wanted.since)
    if wanted.until is not None:
        query = query.where(attempts.c.finished_at < wanted.until)
    return query


def _capture(row: Any) -> CaptureRow:
    job, url, host, status, finished_at, error, number, started_at = row
    return CaptureRow(
        job=job, url=url, host=host, status=status, fetched_at=finished_at, content_type="", bytes=0,
        error=error.partition(":")[0], warc_file="", warc_offset=None, record_type="", attempt=number,
        ms=max(0, finished_at - started_at),
    )  # fmt: skip
