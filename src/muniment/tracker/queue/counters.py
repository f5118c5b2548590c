"""Counters of a job: what was captured, what failed. Each session adds to a row of its own, so that none waits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain
from operator import sub

from sqlalchemy import Column, bindparam, select

from muniment.model.network.counts import SUMS, TALLIES, JobSums
from muniment.model.page import Counted, ExchangeRow, PageOutcome, PageResult
from muniment.model.queue import RunSums, Totals
from muniment.rules.retry import is_failed
from muniment.tracker.db.database import BatchInsert, Database, Prepared, Row, retrying_transaction
from muniment.tracker.jobs.live import EntryLog
from muniment.tracker.schema.tables import RESPONSES, job_sums

__all__ = ["Counters", "kept_columns", "read_totals", "take_out", "totals_of"]

_KEPT = (
    job_sums.c.pages_captured, job_sums.c.pages_failed, job_sums.c.starts_captured, job_sums.c.requisites_captured,
    job_sums.c.payload_bytes, *(job_sums.c[f"responses_{name}"] for name in RESPONSES), job_sums.c.errors,
    *(job_sums.c[name] for name in TALLIES), *(job_sums.c[name] for name in SUMS),
)  # fmt: skip
_TALLIES_AT = len(_KEPT) - len(TALLIES) - len(SUMS)
_CAPTURED, _FAILED, _STARTS, _REQUISITES, _PAYLOAD = range(5)
_UNKNOWN, _ERRORS = _TALLIES_AT - 2, _TALLIES_AT - 1
_ROWS, _REQUESTS, _RECEIVED, _CROWDED, _DROPPED, _NOFOLLOW, _UNFOLLOWED, _RENDERED, _WANTED, _NOT_RENDERED = range(
    _TALLIES_AT + len(TALLIES), len(_KEPT)
)
"""Where each is among `_KEPT`."""
_BEGUN = BatchInsert(job_sums, "job_id", "session", conflict="IGNORE")
_OF_ALL = Prepared(select(job_sums.c.session, *_KEPT).where(job_sums.c.job_id == bindparam("job")), "job")
_SAVE = Prepared(
    job_sums.update()
    .where(job_sums.c.job_id == bindparam("job"), job_sums.c.session == bindparam("mine"))
    .values({column.name: bindparam(column.name) for column in _KEPT}),
    *(column.name for column in _KEPT),
    "job",
    "mine",
)
_OF_OUTCOME = {PageOutcome.CAPTURED: _CAPTURED, PageOutcome.REQUISITE: _REQUISITES, PageOutcome.FAILED: _FAILED}
_CLASSES = {number: _PAYLOAD + number for number in range(1, 6)}
_MOST = 1 << 62
"""Of each sum."""
_UNSENT = frozenset(
    {"dns", "refused", "unreachable", "tls", "timeout-connect", "robots", "scheme", "dead-host", "private-address"}
    | {"limit", "disk"}
)
"""Codes of tries in which nothing was sent."""


def take_out(db: Database, job_id: int, pages: Counter[Counted], starts: int) -> None:
    """Take pages out of the counters they were added to; within the caller's transaction.

    They are subtracted in the row of this session, whichever added them: only the sum over all rows is read.
    """
    db.many(_BEGUN, [(job_id, db.session)])
    fewer = [0] * len(_KEPT)
    _subtract(fewer, pages)
    fewer[_STARTS] -= starts
    mine = job_sums.c.job_id == job_id, job_sums.c.session == db.session
    changed = {column: column + count for column, count in zip(_KEPT, fewer, strict=True) if count}
    if changed:
        db.connection.execute(job_sums.update().where(*mine).values(changed))


def _subtract(values: list[int], pages: Counter[Counted]) -> None:
    for counted, count in pages.items():
        if counted.outcome in _OF_OUTCOME:
            values[_OF_OUTCOME[PageOutcome(counted.outcome)]] -= count
        if counted.tally:
            values[_TALLIES_AT + counted.tally - 1] -= count


def totals_of(db: Database, job_id: int) -> Totals:
    """The counters of a job as committed."""
    return read_totals(_summed(row[1:] for row in db.rows(_OF_ALL, (job_id,))))


def read_totals(values: Sequence[int]) -> Totals:
    """Totals by the sums of the columns of `kept_columns`."""
    sums_at = _TALLIES_AT + len(TALLIES)
    kept = *values[:_TALLIES_AT], tuple(values[_TALLIES_AT:sums_at]), JobSums(*values[sums_at:])
    return Totals(*kept)  # type: ignore[arg-type]


def kept_columns() -> tuple[Column[int], ...]:
    """The columns of `job_sums` that totals are made of, in order."""
    return _KEPT


def _summed(rows: Iterable[Row]) -> list[int]:
    return [int(sum(values)) for values in zip(*rows, strict=True)] or [0] * len(_KEPT)


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
        self._counts = _summed(row[1:] for row in rows)
        self._others = _summed(row[1:] for row in rows if row[0] != self._db.session)

    @property
    def totals(self) -> Totals:
        """Counters of the job: what this process added, and what others had when it began."""
        return read_totals(self._counts)

    def count(self, page: PageResult, *, as_page: bool, start: bool, tally: int) -> Counted:
        """Add a done page to its counters; returns which those are."""
        if is_failed(page.status, page.error):
            self._counts[_FAILED] += 1
            return self._tallied(PageOutcome.FAILED, tally)
        return self.count_captured(as_page=as_page, start=start, tally=tally)

    def count_captured(self, *, as_page: bool, start: bool, tally: int) -> Counted:
        """Add a page that has a complete capture; returns what it is counted as."""
        if as_page:
            self._counts[_CAPTURED] += 1
            self._counts[_STARTS] += start
            return self._tallied(PageOutcome.CAPTURED, tally)
        self._counts[_REQUISITES] += 1
        return self._tallied(PageOutcome.REQUISITE, tally)

    def _tallied(self, outcome: PageOutcome, tally: int) -> Counted:
        self.tally(tally)
        return Counted(int(outcome), tally)

    def tally(self, tally: int, count: int = 1) -> None:
        """Add pages to one of the twelve counts; to 0, nowhere."""
        if tally:
            self._counts[_TALLIES_AT + tally - 1] += count

    def move(self, moved: Counter[tuple[int, int]]) -> None:
        """Count pages elsewhere, by the counts that they leave and that they come to."""
        for (before, after), count in moved.items():
            self.tally(before, -count)
            self.tally(after, count)

    def add(self, pages: Sequence[PageResult], rows: Sequence[ExchangeRow], added: RunSums) -> None:
        """Add what pages brought, rows that came without one, and what the run has done."""
        self.add_rows(chain(*(page.exchanges for page in pages), rows))
        self._add_pages(pages)
        self.add_run(added)

    def add_rows(self, rows: Iterable[ExchangeRow]) -> None:
        """Add rows of the index; one without status and error is what a browser made of a page."""
        sums = self._counts
        for _, status, error, length, _ in rows:
            sums[_ROWS] += 1
            sums[_PAYLOAD] += length
            if error:
                sums[_ERRORS] += 1
            if status:
                sums[_REQUESTS] += 1
                sums[_CLASSES.get(status // 100, _UNKNOWN)] += 1
            elif error:
                sums[_UNKNOWN] += 1
                self._add_try(error)

    def _add_pages(self, pages: Iterable[PageResult]) -> None:
        """Add what pages say beside their rows."""
        sums = self._counts
        for page in pages:
            if page.unanswered:
                self._add_try(page.error)
            if page.dropped:
                sums[_CROWDED] += 1
                sums[_DROPPED] += page.dropped
            if page.unfollowed:
                sums[_NOFOLLOW] += 1
                sums[_UNFOLLOWED] += page.unfollowed

    def _add_try(self, error: str) -> None:
        self._counts[_REQUESTS] += error.partition(":")[0] not in _UNSENT

    def add_run(self, added: RunSums) -> None:
        """Add what a run has done since it said so last."""
        sums = self._counts
        sums[_RECEIVED] += added.received_bytes
        sums[_RENDERED] += added.rendered
        sums[_WANTED] += added.wanted_rendering
        sums[_NOT_RENDERED] += added.failed_rendering

    @retrying_transaction
    def keep_run(self, added: RunSums) -> None:
        """Count what a run has done since its last pages ended, in a transaction of its own."""
        with self._db.transaction():
            self.add_run(added)
            self.save(Counter())

    def write_log(self, pages: Sequence[PageResult], skipped: Sequence[tuple[str, str]]) -> None:
        """Write the log's entries of pages, and of what is left out; the last thing in a transaction."""
        if self.log is not None:
            self.log.write(pages, skipped)

    def told(self) -> None:
        """What was added last is committed."""
        if self.log is not None:
            self.log.commit(self.totals)

    def save(self, again: Counter[Counted]) -> None:
        """Write them; pages that are fetched again, by the counters that they were added to, are taken out first."""
        _subtract(self._counts, again)
        # what pipelines say may be nonsense, and is added up all the same
        mine = tuple([min(count, _MOST) for count in map(sub, self._counts, self._others)])
        self._db.many(_SAVE, [(*mine, self._job_id, self._db.session)])
