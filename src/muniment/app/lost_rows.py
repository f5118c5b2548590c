"""Lost rows are made again: with the values that only the tracker has, not the records."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import structs

from muniment.archive.index.parquet import index_rows, part_path, rows_of_part
from muniment.archive.index.rows import failure_row
from muniment.control.missing_rows import missing_pages
from muniment.model.capture import Capture, PageContext
from muniment.model.failure import Failure
from muniment.model.link import FoundAs
from muniment.model.url import url_key
from muniment.rules.session_ids import page_key
from muniment.tracker.db.database import Database
from muniment.tracker.jobs import store as jobs
from muniment.tracker.queue.page_facts import FailedPage, PageFacts, failed_pages, page_facts

__all__ = ["complete_rows", "lost_failures"]


def complete_rows(db: Database, job: jobs.Job, parts: Path, names: Sequence[str]) -> None:
    """Give the rows that were rebuilt from the records of some files what the tracker knows of their pages.

    May be killed at any instant and repeated.
    """
    listed = bool(jobs.settings_of(job).seed)
    key_of = url_key if listed else page_key
    for name in names:
        if not part_path(parts, name).exists():
            continue
        rows = rows_of_part(parts, name)
        facts = page_facts(db, job.job_id, list({key_of(row.url) for row in rows}))
        completed = [
            row if (known := facts.get(key_of(row.url))) is None else _completed(row, known, listed=listed)
            for row in rows
        ]
        if completed != rows:
            index_rows(parts, name, completed)


def _completed(row: Capture, facts: PageFacts, *, listed: bool) -> Capture:
    # what came before an account was sent is of the same try, and began earlier
    later = [number for at, number in facts.started if at >= row.started_at // 1000]
    return structs.replace(
        row,
        meta_json=facts.meta_json,
        seed_url=facts.seed_url if listed else "",
        found_as=FoundAs(facts.found_as).label,
        depth=facts.depth if row.depth < 0 else row.depth,
        attempt=later[0] if later else row.attempt,
    )


def lost_failures(db: Database, job: jobs.Job, out: Path) -> tuple[int, Iterator[Capture]]:
    """The number of done pages without a row, and the rows of those that left no record."""
    missing = missing_pages(db, job.job_id, out)
    listed = bool(jobs.settings_of(job).seed)
    return len(missing), (_failed(page, listed=listed) for page in failed_pages(db, job.job_id, missing))


def _failed(page: FailedPage, *, listed: bool) -> Capture:
    code, _, text = page.error.partition(": ")
    context = PageContext(
        via="",
        depth=page.facts.depth,
        found_as=FoundAs(page.facts.found_as).label,
        attempt=page.attempt,
        seed_url=page.facts.seed_url if listed else "",
        meta_json=page.facts.meta_json,
        redirect_to="",
    )
    row = failure_row(page.url, Failure(code, text), context, page.started_at * 1000, None)  # type: ignore[arg-type]
    took = max(0, page.finished_at - page.started_at)
    return structs.replace(row, fetched_at=page.started_at + took, duration_ms=took)
