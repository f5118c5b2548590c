"""The counts of a job as every face has them (`model.network.counts`): the one place that makes them of the tables.

What has ended is counted as it ends, in `job_sums`; what waits or was left out, and why pages failed, when it is asked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Struct, structs
from sqlalchemy import ColumnElement, Select, TextClause, and_, case, func, or_, select, text, true

from muniment.model.job import JobState
from muniment.model.network.counts import (
    TALLIES,
    ByteSums,
    Crowding,
    JobSummary,
    OtherCounts,
    PageCounts,
    PageWord,
    RenderCounts,
    RunFacts,
    SilentHost,
    SiteCounts,
    Unfollowed,
    done_counts,
)
from muniment.rules.scope import FAR, NO_PAGES
from muniment.rules.skip_causes import BEGINNINGS, OTHER
from muniment.settings.option_table import Settings
from muniment.tracker.db.database import Database
from muniment.tracker.jobs.reports import given_up, silent_hosts
from muniment.tracker.jobs.store import Job, load_job, settings_of
from muniment.tracker.queue.counters import totals_of
from muniment.tracker.schema.attempt_budget import IS_LATEST
from muniment.tracker.schema.tables import CLAIMED, PENDING, STASHED, attempts, hosts, jobs, pages

__all__ = ["UrlCounts", "job_summary", "keep_facts", "url_counts"]

_MOST_NAMED = 100
"""Hosts of the site that are named."""
_MOST_SILENT = 10_000
_DEAD = "dead-host"
_WAITING = (
    (PENDING, "ix_pages_pending"),
    (CLAIMED, "ix_pages_claimed"),
    (STASHED, "ix_pages_stashed"),
)
_SKIPPED = text("pages.state = 'SKIPPED'"), "ix_pages_skipped"
_FAILED = tuple(at for at in range(1, len(TALLIES) + 1) if (at - 1) % len(PageWord) == PageWord.FAILED)
_OF_HOST = pages.join(hosts, and_(hosts.c.job_id == pages.c.job_id, hosts.c.id == pages.c.host_id))
_CAUSE = case(*((pages.c.reason.like(begins + "%"), named) for begins, named in BEGINNINGS), else_=OTHER)
_COUNTED = pages.c.in_scope & pages.c.found_as.not_in(tuple(map(int, NO_PAGES)))


class UrlCounts(Struct, frozen=True):
    """The URLs of a job, each once."""

    site: SiteCounts
    other: OtherCounts
    skipped: dict[str, int]
    """Those that were skipped, by cause, most first."""


def url_counts(db: Database, job_id: int) -> UrlCounts:
    """The counts of a job now; takes a second for a million pages that wait or were skipped."""
    settings = settings_of(load_job(db, job_id))
    done = done_counts(totals_of(db, job_id).tallies)
    waiting: list[Counter[str]] = [Counter() for _ in done]
    causes: list[Counter[str]] = [Counter() for _ in done]
    for site, as_page, word, cause, count in _rest(db, job_id, settings):
        part = (0 if as_page else 1) + (0 if site else 2)
        waiting[part][word] += count
        if cause:
            causes[part][cause] += count
    found = [structs.replace(one, **more) for one, more in zip(done, waiting, strict=True)]
    names, others = _hosts(db, job_id, settings)
    return UrlCounts(
        SiteCounts(names, found[0], found[1], dict(causes[0].most_common())),
        OtherCounts(others, found[2], found[3], dict(causes[2].most_common())),
        dict(sum(causes, Counter()).most_common()),
    )


def _rest(db: Database, job_id: int, settings: Settings) -> Iterator[tuple[bool, bool, str, str, int]]:
    """What waits or was left out: whether of the site, whether a page, its word, cause and number."""
    by = _is_site(settings), _is_page(settings)
    for state, index in _WAITING:
        for site, as_page, count in db.connection.execute(_grouped(job_id, state, index, *by)):
            yield bool(site), bool(as_page), "queued", "", int(count)
    for site, as_page, cause, count in db.connection.execute(_grouped(job_id, *_SKIPPED, *by, _CAUSE)):
        yield bool(site), bool(as_page), "skipped", str(cause), int(count)


def _grouped(
    job_id: int, state: TextClause | ColumnElement[bool], index: str, *by: ColumnElement[Any]
) -> Select[tuple[Any, ...]]:
    named = [one.label(f"by_{at}") for at, one in enumerate(by)]
    # SQLite has no statistics to choose an index by
    found = select(*named).select_from(_OF_HOST).with_hint(pages, f"INDEXED BY {index}", "sqlite")
    mine = found.where(pages.c.job_id == job_id, state, _COUNTED).subquery()
    return select(*mine.c, func.count()).group_by(*mine.c)


def _is_site(settings: Settings) -> ColumnElement[bool]:
    """Whether a host is of the site; of a list all are."""
    return true() if settings.seed else hosts.c.site_paths != ""


def _is_page(settings: Settings) -> ColumnElement[bool]:
    """Whether links admit a page, as `Scope.as_page` has it."""
    near = pages.c.link_hops < FAR if settings.level is None else pages.c.link_hops <= settings.level
    where = true() if settings.offsite_links else pages.c.on_site
    return or_(pages.c.link_hops == 0, and_(near, pages.c.included, where))


def _hosts(db: Database, job_id: int, settings: Settings) -> tuple[tuple[str, ...], int]:
    """The first hosts of the site, and how many others have pages of the job."""
    mine, site = hosts.c.job_id == job_id, _is_site(settings)
    named = select(hosts.c.name).where(mine, site, hosts.c.name != "").order_by(hosts.c.id).limit(_MOST_NAMED)
    names = tuple(str(name) for name in db.connection.execute(named).scalars())
    if settings.seed:
        return names, 0
    has_pages = select(pages.c.host_id).where(pages.c.job_id == job_id, _COUNTED)
    others = select(func.count()).select_from(hosts).where(mine, ~site, hosts.c.id.in_(has_pages))
    return names, int(db.connection.execute(others).scalar_one())


def keep_facts(db: Database, job_id: int, facts: RunFacts | None) -> None:
    """Keep what a run of a directory leaves behind; None when one begins."""
    written = msgspec.json.encode(facts).decode() if facts is not None else ""
    with db.transaction():
        db.connection.execute(jobs.update().where(jobs.c.id == job_id).values(summary=written))


def job_summary(db: Database, job_id: int) -> JobSummary:
    """The summary of a job, as of now; of one that never ran in a directory, all its answers."""
    job = load_job(db, job_id)
    written = db.connection.execute(select(jobs.c.summary).where(jobs.c.id == job_id)).scalar_one()
    facts = msgspec.json.decode(written, type=RunFacts) if written else None
    urls, totals = url_counts(db, job_id), totals_of(db, job_id)
    sums = totals.sums
    failed = _failed(db, job_id) if _any(urls, "failed") else {}
    silent = _silent(db, job_id) if failed or urls.skipped else ()
    if facts is None:
        codes = {code: count for code, count in failed.items() if not code.isdigit()}
        facts = RunFacts(answers=_answers(db, job_id), errors=codes)
    return JobSummary(
        outcome=_outcome(job, facts),
        reason=facts.reason,
        exit=facts.exit,
        seconds=facts.seconds,
        site=urls.site,
        other=urls.other,
        requests=sums.requests,
        rows=sums.index_rows,
        answers=facts.answers,
        errors=facts.errors,
        skipped=urls.skipped,
        failed=failed,
        retryable=given_up(db, job_id),
        bytes=ByteSums(totals.payload_bytes, sums.received_bytes, facts.stored),
        warc_files=facts.warc_files,
        crowded=Crowding(sums.crowded_pages, sums.links_dropped),
        nofollow=Unfollowed(sums.nofollow_pages, sums.nofollow_links),
        rendering=RenderCounts(sums.rendered, sums.wanted_rendering, sums.failed_rendering),
        silent_hosts=silent,
    )


def _outcome(job: Job, facts: RunFacts) -> str:
    if job.state == JobState.FINISHED.value:
        return "failed" if job.outcome == "failed" else "finished"
    if job.state == JobState.ABORTED.value:
        return "failed" if job.outcome == "failed" else "stopped"
    return "stopped" if facts.exit else "running"


def _any(urls: UrlCounts, word: str) -> bool:
    parts: list[PageCounts] = [urls.site.pages, urls.site.requisites, urls.other.pages, urls.other.requisites]
    return any(getattr(part, word) for part in parts)


def _failed(db: Database, job_id: int) -> dict[str, int]:
    """What failed, by code, or by status where there was an answer; most first."""
    why = select(attempts.c.error, attempts.c.status, func.count()).select_from(pages.outerjoin(attempts, IS_LATEST))
    found = why.where(pages.c.job_id == job_id, pages.c.tally.in_(_FAILED))
    counts: Counter[str] = Counter()
    for error, status, count in db.connection.execute(found.group_by(attempts.c.error, attempts.c.status)):
        # a page that was given up without a try of its own has none
        counts[str(error).partition(":")[0] if error else str(status) if status else _DEAD] += int(count)
    return dict(counts.most_common())


def _answers(db: Database, job_id: int) -> dict[str, int]:
    whole = attempts.c.status > 0, attempts.c.error == ""
    of_page = and_(pages.c.job_id == attempts.c.job_id, pages.c.id == attempts.c.page_id, _COUNTED)
    found = select(attempts.c.status, func.count()).select_from(attempts.join(pages, of_page))
    counted = found.where(attempts.c.job_id == job_id, *whole)
    rows = db.connection.execute(counted.group_by(attempts.c.status).order_by(func.count().desc(), attempts.c.status))
    return {str(status): int(count) for status, count in rows}


def _silent(db: Database, job_id: int) -> tuple[SilentHost, ...]:
    by_host: dict[str, Counter[str]] = {}
    for host, code, count in silent_hosts(db, job_id):
        by_host.setdefault(host, Counter())[code] += count
    most = sorted(by_host.items(), key=lambda one: (-one[1].total(), one[0]))[:_MOST_SILENT]
    return tuple(SilentHost(host, dict(errors.most_common())) for host, errors in most)
