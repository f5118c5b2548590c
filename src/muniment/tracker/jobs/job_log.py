"""The log of a job of a server: rows that are written in the transactions whose entries they are.

Its numbers are taken last in a transaction, so that writers beside each other wait for no more than a commit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from sqlalchemy import Text, bindparam, func, literal_column, select, update

from muniment.model.host import origin_within
from muniment.model.network.live import LogEntry
from muniment.model.page import PageResult
from muniment.model.queue import Totals
from muniment.model.url import host_of, origin_of
from muniment.rules.skip_causes import DEAD, INSIDE
from muniment.tracker.db.database import BatchInsert, Database, Lookup, Prepared, retrying_transaction
from muniment.tracker.jobs.audit import changes_of
from muniment.tracker.schema.live import job_log, live_jobs
from muniment.tracker.schema.tables import hosts, pages

__all__ = [
    "BEGUN",
    "EntryText",
    "LogRows",
    "add_entries",
    "add_lines",
    "entries_after",
    "is_shown",
    "say_changes",
    "tails",
]

BEGUN = BatchInsert(live_jobs, "job_id", "started_at", conflict="IGNORE")
"""Redis shows a job from a time on (Unix ms)."""
_INSERT = BatchInsert(job_log, "job_id", "seq", "entry")
_SHOWN = Prepared(select(live_jobs.c.job_id).where(live_jobs.c.job_id == bindparam("job")), "job")
_AFTER = Prepared(
    select(job_log.c.entry)
    .where(job_log.c.job_id == bindparam("job"), job_log.c.seq > bindparam("after"), job_log.c.seq <= bindparam("end"))
    .order_by(job_log.c.seq),
    "job", "after", "end",
)  # fmt: skip


_PAGES = Lookup(select(pages.c.id, pages.c.url, pages.c.host_id), pages.c.job_id, pages.c.id)
_NAMES = Lookup(select(hosts.c.id, hosts.c.name), hosts.c.job_id, hosts.c.id)
_SPACE = literal_column("' '", Text())
_GIVEN_UP = Prepared(
    update(hosts)
    .where(
        hosts.c.job_id == bindparam("job"),
        hosts.c.id == bindparam("host"),
        _SPACE.concat(hosts.c.given_up).concat(_SPACE).not_like(bindparam("known", type_=Text())),
    )
    .values(given_up=func.trim(hosts.c.given_up.concat(_SPACE).concat(bindparam("origin", type_=Text())))),
    "origin", "job", "host", "known",
)  # fmt: skip


_FINAL = f"{DEAD}: ", f"{INSIDE}: "


class EntryText(Protocol):
    """How entries are written."""

    def of_pages(
        self, pages: Sequence[PageResult], skipped: Sequence[tuple[str, str]], *, reports: bool
    ) -> list[LogEntry]:
        """The entries of pages, and with `reports` those of what patterns left out."""

    def encoded(self, seq: int, entry: LogEntry) -> bytes:
        """An entry with its number."""


class LogRows:
    """Writes the log of one job with its pages."""

    def __init__(self, db: Database, job_id: int, text: EntryText) -> None:
        self._db, self._job_id, self._text = db, job_id, text
        self.reports = False
        """Whether it lists URLs that patterns leave out."""

    def write(self, pages: Sequence[PageResult], skipped: Sequence[tuple[str, str]] = ()) -> None:
        """Write what became of pages, and what is left out, within the caller's transaction."""
        made = self._text.of_pages(pages, skipped, reports=self.reports)
        add_entries(self._db, self._job_id, [*made, *_given_up(self._db, self._job_id, pages)], self._text)

    def say(self, lines: Sequence[LogEntry]) -> None:
        """Write lines for operators within the caller's transaction."""
        add_entries(self._db, self._job_id, lines, self._text)

    @retrying_transaction
    def list_skipped(self, skipped: Sequence[tuple[str, str]]) -> None:
        """Write URL and reason of what newer rules leave out."""
        with self._db.transaction():
            self.write((), skipped)

    def commit(self, totals: Totals) -> None:
        """Nothing: who reads it reads what is committed."""


def _given_up(db: Database, job_id: int, results: Sequence[PageResult]) -> list[LogEntry]:
    """A line for each origin that these pages are the first to give up, within the caller's transaction."""
    why = {page.page_id: page for page in results if (page.refused or page.error).startswith(_FINAL)}
    if not why:
        return []
    found = sorted(db.lookup(_PAGES, job_id, sorted(why)))
    names: dict[int, str] = dict(db.lookup(_NAMES, job_id, sorted({host_id for _, _, host_id in found})))
    # of several pages the first says it
    first = {(host_id, origin_within(names[host_id], url)): (page_id, url) for page_id, url, host_id in found[::-1]}
    # hosts in order, so that two servers never wait for each other
    return [
        _given_up_entry(origin_of(url), why[page_id])
        for (host_id, origin), (page_id, url) in sorted(first.items())
        if db.changed(_GIVEN_UP, [(origin, job_id, host_id, f"% {origin} %")])
    ]


def _given_up_entry(origin: str, page: PageResult) -> LogEntry:
    return LogEntry(page.finished_at, f"Pause of {host_of(origin)}: {origin}: {page.refused or page.error}.")


def add_entries(db: Database, job_id: int, entries: Sequence[LogEntry], text: EntryText) -> None:
    """Add entries to a log, within the caller's transaction; they begin it, if there is none."""
    if not entries:
        return
    answers = [entry for entry in entries if entry.status is not None]
    unknown = sum(bool(entry.status) and not 100 <= (entry.status or 0) < 600 for entry in answers)
    robots = sum(entry.text.endswith("/robots.txt") for entry in answers)
    c = live_jobs.c
    numbered = (
        update(live_jobs)
        .where(c.job_id == job_id)
        .values(log_score=c.log_score + len(entries), unknown=c.unknown + unknown, robots=c.robots + robots)
        .returning(c.log_score)
    )
    last = db.connection.execute(numbered).scalar()
    if last is None:
        db.many(BEGUN, [(job_id, entries[0].at)])
        last = db.connection.execute(numbered).scalar_one()
    first = int(last) - len(entries) + 1
    db.many(_INSERT, [(job_id, seq, text.encoded(seq, entry)) for seq, entry in enumerate(entries, first)])


@retrying_transaction
def add_lines(db: Database, job_id: int, lines: Sequence[LogEntry], text: EntryText) -> None:
    """Add lines for operators."""
    with db.transaction():
        add_entries(db, job_id, lines, text)


@retrying_transaction
def say_changes(db: Database, job_id: int, text: EntryText) -> None:
    """Add a line for each change of the job that its log does not have yet."""
    c = live_jobs.c
    with db.transaction():
        said = int(db.connection.execute(select(c.said).where(c.job_id == job_id).with_for_update()).scalar_one())
        made = changes_of(db, job_id, said)
        lines = [
            LogEntry(one.at, f"{one.who or 'somebody'} changed {one.what}: {one.before or '-'} -> {one.after or '-'}")
            for one in made
        ]
        add_entries(db, job_id, lines, text)
        if made:
            db.connection.execute(update(live_jobs).where(c.job_id == job_id).values(said=made[-1].age))


def is_shown(db: Database, job_id: int) -> bool:
    """Whether Redis shows a job, so that it has a log."""
    return bool(db.rows(_SHOWN, (job_id,)))


def entries_after(db: Database, job_id: int, after: int, end: int) -> list[bytes]:
    """The entries of a log after a number, up to another."""
    return [bytes(entry) for (entry,) in db.rows(_AFTER, (job_id, after, end))]


def tails(db: Database, ends: Mapping[int, tuple[int, int]]) -> dict[int, list[bytes]]:
    """By job: the entries of its log after a number, up to another."""
    found = db.several([(_AFTER, (job_id, after, end)) for job_id, (after, end) in ends.items()])
    return {job_id: [bytes(entry) for (entry,) in rows] for job_id, rows in zip(ends, found, strict=True)}
