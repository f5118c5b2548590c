"""The counts of output directories and index files: of their trackers, or, where these are gone, of their rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from msgspec import structs

from muniment.control.tracker_location import tracker_place
from muniment.errors import TrackerError, UsageError
from muniment.model.network.counts import (
    ByteSums,
    Crowding,
    JobSummary,
    OtherCounts,
    PageCounts,
    RenderCounts,
    SilentHost,
    SiteCounts,
    Unfollowed,
    done_counts,
)
from muniment.tracker.connect import tracker_to_read
from muniment.tracker.jobs.store import find_job
from muniment.tracker.queue.counters import totals_of
from muniment.tracker.views.counts import job_summary

__all__ = ["Rows", "captured_pages", "counted_by_rows", "directory_summary", "summed"]

Rows = Callable[[str], list[tuple[Any, ...]]]
"""Asks for rows of `c`, the exchanges of an index, by SQL."""
_MOST_NAMED = 100
_LAST = """
    CREATE OR REPLACE TEMP TABLE last_rows AS
    SELECT url, any_value(host) AS host, max(depth >= 0) AS as_page, max(found_as = 'start') AS is_start,
        max(seed_url <> '') AS listed, arg_max(status, (fetched_at, attempt)) AS status,
        arg_max(error, (fetched_at, attempt)) AS error, arg_max(redirect_to, (fetched_at, attempt)) AS redirect_to
    FROM c WHERE found_as NOT IN ('robots', 'sitemap', 'start-list') GROUP BY url
"""
_SITE = """
    CREATE OR REPLACE TEMP TABLE site_hosts AS
    SELECT DISTINCT host FROM last_rows WHERE is_start OR listed OR url IN (
        SELECT redirect_to FROM last_rows WHERE is_start
    )
"""
_FAILED = "(error <> '' OR status IN (408, 425, 429) OR status // 100 = 5)"
_WORDS = f"""
    SELECT host IN (SELECT host FROM site_hosts) AS site, as_page,
        count(*) FILTER (NOT {_FAILED} AND status < 400), count(*) FILTER (NOT {_FAILED} AND status >= 400),
        count(*) FILTER ({_FAILED})
    FROM last_rows
    WHERE redirect_to = '' OR redirect_to = url OR redirect_to NOT IN (SELECT url FROM last_rows) GROUP BY site, as_page
"""  # noqa: S608 (ours)
_WHY = f"""
    SELECT CASE WHEN error = '' THEN status::VARCHAR ELSE split_part(error, ':', 1) END AS code, count(*) AS n
    FROM last_rows WHERE {_FAILED} GROUP BY code ORDER BY n DESC, code
"""  # noqa: S608 (ours)


def directory_summary(out: Path) -> JobSummary | None:
    """The counts of a directory by its tracker; None where that is not there, or cannot be read by this version."""
    if not out.is_dir():
        return None
    try:
        with tracker_to_read(tracker_place(out)) as db:
            job = find_job(db)
            return None if job is None else structs.replace(job_summary(db, job.job_id), directory=str(out))
    except (UsageError, TrackerError):
        return None


def captured_pages(out: Path) -> int | None:
    """The captured pages of a directory, of its site and other hosts; None without a tracker that can be read."""
    if not out.is_dir():
        return None
    try:
        with tracker_to_read(tracker_place(out)) as db:
            job = find_job(db)
            if job is None:
                return None
            site, _, other, _ = done_counts(totals_of(db, job.job_id).tallies)
            return site.captured + other.captured
    except (UsageError, TrackerError):
        return None


def counted_by_rows(rows: Rows, path: str) -> JobSummary:
    """The counts that an index alone gives: what was skipped or waits has no row."""
    rows(_LAST)
    rows(_SITE)
    parts: dict[tuple[bool, bool], PageCounts] = {}
    for site, as_page, *words in rows(_WORDS):
        parts[bool(site), bool(as_page)] = PageCounts(*words)
    names = [str(host) for (host,) in rows("SELECT host FROM site_hosts ORDER BY host LIMIT 100")]
    [(others,)] = rows("SELECT count(DISTINCT host) FROM last_rows WHERE host NOT IN (SELECT host FROM site_hosts)")
    answers = rows(
        "SELECT status, count(*) AS n FROM c WHERE status > 0 AND error = '' "
        "AND found_as NOT IN ('robots', 'sitemap', 'start-list') GROUP BY status ORDER BY n DESC, status"
    )
    failed = {str(code): int(count) for code, count in rows(_WHY)}
    [(count, asked, payload, stored, files)] = rows(
        "SELECT count(*), count(*) FILTER (status > 0), coalesce(sum(body_length), 0)::BIGINT, "
        "coalesce(sum(warc_length), 0)::BIGINT, count(DISTINCT warc_file) FILTER (warc_file <> '') FROM c"
    )
    none = PageCounts()
    return JobSummary(
        outcome="finished",
        directory=path,
        site=SiteCounts(tuple(names), parts.get((True, True), none), parts.get((True, False), none)),
        other=OtherCounts(int(others), parts.get((False, True), none), parts.get((False, False), none)),
        requests=int(asked),
        rows=int(count),
        answers={str(status): int(count) for status, count in answers},
        errors={code: count for code, count in failed.items() if not code.isdigit()},
        failed=failed,
        bytes=ByteSums(int(payload), 0, int(stored)),
        warc_files=int(files),
    )


def summed(found: Sequence[JobSummary]) -> JobSummary:
    """The counts of several directories as one."""
    if len(found) == 1:
        return found[0]
    outcomes = [one.outcome for one in found]
    worst = next((word for word in ("running", "failed", "stopped") if word in outcomes), "finished")
    return JobSummary(
        outcome=worst,
        exit=max(one.exit for one in found),
        seconds=sum(one.seconds for one in found),
        site=SiteCounts(
            tuple(dict.fromkeys(host for one in found for host in one.site.hosts))[:_MOST_NAMED],
            _pages(one.site.pages for one in found),
            _pages(one.site.requisites for one in found),
            _added(one.site.skipped for one in found),
        ),
        other=OtherCounts(
            sum(one.other.hosts for one in found),
            _pages(one.other.pages for one in found),
            _pages(one.other.requisites for one in found),
            _added(one.other.skipped for one in found),
        ),
        requests=sum(one.requests for one in found),
        rows=sum(one.rows for one in found),
        answers=_added(one.answers for one in found),
        errors=_added(one.errors for one in found),
        skipped=_added(one.skipped for one in found),
        failed=_added(one.failed for one in found),
        retryable=sum(one.retryable for one in found),
        bytes=ByteSums(*map(sum, zip(*(structs.astuple(one.bytes) for one in found), strict=True))),
        warc_files=sum(one.warc_files for one in found),
        crowded=Crowding(*map(sum, zip(*(structs.astuple(one.crowded) for one in found), strict=True))),
        nofollow=Unfollowed(*map(sum, zip(*(structs.astuple(one.nofollow) for one in found), strict=True))),
        rendering=RenderCounts(*map(sum, zip(*(structs.astuple(one.rendering) for one in found), strict=True))),
        silent_hosts=_silent(host for one in found for host in one.silent_hosts),
    )


def _pages(parts: Iterable[PageCounts]) -> PageCounts:
    return sum(parts, PageCounts())


def _added(parts: Iterable[dict[str, int]]) -> dict[str, int]:
    counts: Counter[str] = Counter()
    for part in parts:
        counts.update(part)
    return dict(counts.most_common())


def _silent(hosts: Iterable[SilentHost]) -> tuple[SilentHost, ...]:
    by_host: dict[str, Counter[str]] = {}
    for one in hosts:
        by_host.setdefault(one.host, Counter()).update(one.errors)
    return tuple(SilentHost(host, dict(errors)) for host, errors in by_host.items())
