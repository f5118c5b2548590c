"""Missing rows: the tracker against the index. A page that is done must have a row, or be fetched again."""

from __future__ import annotations

from contextlib import suppress
from itertools import islice
from pathlib import Path

import pyarrow as pa

from muniment.archive.check.fault_list import Fault
from muniment.archive.check.ids import IdHeaps, IdJudge
from muniment.archive.index.journal import PARTS
from muniment.archive.index.read import rows
from muniment.archive.index.repeated_lines import write_again
from muniment.control.tracker_location import tracker_place
from muniment.errors import ArchiveError, TrackerError, TrackerLostError, UsageError
from muniment.model.place import TRACKER
from muniment.model.url import without_route
from muniment.tracker.connect import tracker_at, tracker_to_read
from muniment.tracker.db.database import Database
from muniment.tracker.jobs import store as jobs
from muniment.tracker.jobs.reports import done_pages, page_urls
from muniment.tracker.queue.lost_captures import wait_again
from muniment.tracker.queue.seeds import repeated_lines

__all__ = ["fetch_again", "missing_pages", "pages_without_row", "tell_repeats"]

_DONE = 1
"""The field of the heaps: a page that is done uses its URL as a name of a row."""
_MOST_LISTED = 100


def pages_without_row(out: Path) -> tuple[list[Fault], str]:
    """The faults, and why the tracker could not be compared; nothing of both for a directory without one.

    Flat in memory. May be run beside a crawl, since rows are safe before a page is done.
    """
    try:
        place = tracker_place(out)
        if not place.database and not place.file.exists():
            return [], ""
        with tracker_to_read(place) as db:
            job = jobs.find_job(db)
            return (_faults(db, job.job_id, missing_pages(db, job.job_id, out)) if job else []), ""
    except (ArchiveError, TrackerLostError, UsageError) as error:
        return [], str(error)
    except TrackerError as error:
        return [Fault(TRACKER, -1, "tracker", str(error))], ""


def fetch_again(out: Path) -> int:
    """Let done pages without a row wait for their job's next run; how many. The caller holds the directory's lock.

    What cannot be compared is left as it is: `pages_without_row` says why.
    """
    try:
        place = tracker_place(out)
        if not place.database and not place.file.exists():
            return 0
        # to open an empty file for writing would make it a tracker that knows nothing
        with tracker_to_read(place) as db:
            job = jobs.find_job(db)
            missing = missing_pages(db, job.job_id, out) if job else []
        if job and missing:
            with tracker_at(place) as db:
                wait_again(db, job.job_id, missing, jobs.settings_of(job).tries)
        return len(missing)
    except (ArchiveError, TrackerError, UsageError):
        return 0


def tell_repeats(out: Path) -> None:
    """Give the next join the lines whose URL an earlier line has. The caller holds the directory's lock."""
    with suppress(ArchiveError, TrackerError, UsageError):
        place = tracker_place(out)
        if not place.database and not place.file.exists():
            return
        with tracker_to_read(place) as db:
            if (job := jobs.find_job(db)) is not None:
                write_again(out / PARTS, repeated_lines(db, job.job_id))


def missing_pages(db: Database, job_id: int, out: Path) -> list[int]:
    """The numbers of done pages of which no row has the URL."""
    with IdJudge() as judge:
        done = done_pages(db, job_id)
        while batch := list(islice(done, 10_000)):
            heaps = IdHeaps(0)
            for page_id, url in batch:
                heaps.used(_DONE, without_route(url), page_id)
            judge.add(heaps.packed())
        # rows after pages: beside a crawl, what is done now has its row by then
        for table in rows(out, ("url",)):
            judge.add(_urls(table))
        return [place.offset for _, place in judge.dangling()]


def _faults(db: Database, job_id: int, missing: list[int]) -> list[Fault]:
    urls = page_urls(db, job_id, missing[:_MOST_LISTED])
    faults = [Fault(TRACKER, -1, "tracker", f"the page is done and has no row: {url[:200]}") for url in urls]
    if len(missing) > len(urls):
        faults.append(Fault(TRACKER, -1, "more", f"{len(missing) - len(urls)} more pages are done and have no row"))
    return faults


def _urls(batch: pa.RecordBatch) -> list[bytes]:
    heaps = IdHeaps(0)
    for url in batch.column("url").to_pylist():
        heaps.named(str(url), 0, warcinfo=False)
    return heaps.packed()
