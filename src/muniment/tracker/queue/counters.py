"""Counters of a job: what was captured, what failed. Each session adds to a row of its own, so that none waits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from operator import sub

from msgspec import Struct, structs
from sqlalchemy import bindparam, select

from muniment.model.page import ExchangeRow, PageOutcome, PageResult
from muniment.model.queue import Totals
from muniment.rules.retry import is_failed
from muniment.tracker.db.database import BatchInsert, Database, Prepared
from muniment.tracker.jobs.live import EntryLog
from muniment.tracker.schema.tables import RESPONSES, job_sums

__all__ = ["Counters", "take_out", "totals_of"]

_SUMS = (
    job_sums.c.pages_captured, job_sums.c.pages_failed, job_sums.c.starts_captured, job_sums.c.requisites_captured,
    job_sums.c.payload_bytes, *(job_sums.c[f"responses_{name}"] for name in RESPONSES), job_sums.c.errors,
)  # fmt: skip
"""In the order of `_Counts`."""
_BEGUN = BatchInsert(job_sums, "job_id", "session", conflict="IGNORE")
_OF_ALL = Prepared(select(job_sums.c.session, *_SUMS).where(job_sums.c.job_id == bindparam("job")), "job")
_SAVE = Prepared(
    job_sums.update()
    .where(job_sums.c.job_id == bindparam("job"), job_sums.c.session == bindparam("mine"))
    .values({column.name: bindparam(column.name) for column in _SUMS}),
    *(column.name for column in _SUMS),
    "job",
    "mine",
)


_CLASSES = {number: f"responses_{number}xx" for number in range(1, 6)}


class _Counts(Struct):
    """`Totals` while they grow."""

    captured: int = 0
    failed: int = 0
    starts_captured: int = 0
    requisites: int = 0
    payload_bytes: int = 0
    responses_1xx: int = 0
    responses_2xx: int = 0
    responses_3xx: int = 0
    responses_4xx: int = 0
    responses_5xx: int = 0
    responses_unknown: int = 0
    errors: int = 0


def take_out(db: Database, job_id: int, pages: Counter[int], starts: int) -> None:
    """Take pages out of the counters they were added to, by `pages.counted`; within the caller's transaction.

    They are subtracted in the row of this session, whichever added them: only the sum over all rows is read.
    """
    db.many(_BEGUN, [(job_id, db.session)])
    mine = job_sums.c.job_id == job_id, job_sums.c.session == db.session
    fewer = {
        job_sums.c.pages_captured: job_sums.c.pages_captured - pages[PageOutcome.CAPTURED],
        job_sums.c.requisites_captured: job_sums.c.requisites_captured - pages[PageOutcome.REQUISITE],
        job_sums.c.pages_failed: job_sums.c.pages_failed - pages[PageOutcome.FAILED],
        job_sums.c.starts_captured: job_sums.c.starts_captured - starts,
    }
    db.connection.execute(job_sums.update().where(*mine).values(fewer))


def totals_of(db: Database, job_id: int) -> Totals:
    """The counters of a job as committed."""
    return Totals(*map(sum, zip(*(row[1:] for row in db.rows(_OF_ALL, (job_id,))), strict=True)))


class Counters:
    """The counters of one job; changes happen within the caller's transaction."""

    def __init__(self, db: Database, job_id: int) -> None:
        self._db, self._job_id = db, job_id
        self.log: EntryLog | None = None
        """Has an entry for each exchange; None while nobody listens."""
        self._load()
        db.on_rollback(self._load)

    def _load(self) -> None:
        if self._db.session:
            self._db.many(_BEGUN, [(self._job_id, self._db.session)])
        # in one statement: what others commit between two of them would be subtracted from our own row
        rows = self._db.rows(_OF_ALL, (self._job_id,))
        self._counts = _Counts(*map(sum, zip(*(row[1:] for row in rows), strict=True)))
        self._others = _Counts(*map(sum, zip(*(row[1:] for row in rows if row[0] != self._db.session), strict=True)))

    @property
    def totals(self) -> Totals:
        """Counters of the job: what this process added, and what others had when it began."""
        return Totals(*structs.astuple(self._counts))

    def count(self, page: PageResult, *, as_page: bool, start: bool) -> PageOutcome:
        """Add a done page to its counter; returns which one that is (`pages.counted`)."""
        if is_failed(page.status, page.error):
            self._counts.failed += 1
            return PageOutcome.FAILED
        return self.count_captured(as_page=as_page, start=start)

    def count_captured(self, *, as_page: bool, start: bool) -> PageOutcome:
        """Add a page that has a complete capture; returns what it is counted as."""
        totals = self._counts
        if as_page:
            totals.captured += 1
            totals.starts_captured += start
            return PageOutcome.CAPTURED
        totals.requisites += 1
        return PageOutcome.REQUISITE

    def add_rows(self, rows: Iterable[ExchangeRow]) -> None:
        """Add rows of the index."""
        sums = self._counts
        for _, status, error, length, _ in rows:
            sums.payload_bytes += length
            if error:
                sums.errors += 1
            if 200 <= status < 300:
                sums.responses_2xx += 1
            else:
                kind = _CLASSES.get(status // 100, "responses_unknown")
                setattr(sums, kind, getattr(sums, kind) + 1)

    def write_log(self, pages: Sequence[PageResult], skipped: Sequence[tuple[str, str]]) -> None:
        """Write the log's entries of pages, and of what is left out; the last thing in a transaction."""
        if self.log is not None:
            self.log.write(pages, skipped)

    def told(self) -> None:
        """What was added last is committed."""
        if self.log is not None:
            self.log.commit(self.totals)

    def save(self, again: Counter[int]) -> None:
        """Write them; pages that are fetched again, by the counter that they were added to, are taken out first."""
        self._counts.captured -= again[PageOutcome.CAPTURED]
        self._counts.requisites -= again[PageOutcome.REQUISITE]
        self._counts.failed -= again[PageOutcome.FAILED]
        mine = tuple(map(sub, structs.astuple(self._counts), structs.astuple(self._others)))
        self._db.many(_SAVE, [(*mine, self._job_id, self._db.session)])
