"""Payloads already kept in this directory: what a revisit record may refer to.

Digests are as good as random. Where rows are kept back (`Database.in_bulk`), the newest payloads are in a table of
their own, in the order in which they came, and are moved to `payloads` many at a time (decision 0140).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sqlalchemy import bindparam, func, select

from muniment.model.capture import EarlierCapture
from muniment.model.page import PageResult
from muniment.tracker.db.database import BatchInsert, Database, Lookup, Prepared, Row
from muniment.tracker.schema.tables import fresh_payloads, pages, payloads

__all__ = ["Payloads"]

_TOGETHER = 20_000
"""How many newest payloads are remembered before they are moved (`page_keys`)."""
_COLUMNS = ("job_id", "digest", "page_id", "captured_at", "record_id", "url")
_OF_NO_PAGE = 0
_KEEP = BatchInsert(payloads, *_COLUMNS, conflict="IGNORE")
_FRESH_COLUMNS = (*_COLUMNS[:-1], "number", "url")
_NUMBER = _FRESH_COLUMNS.index("number")
_KEEP_FRESH = BatchInsert(fresh_payloads, *_FRESH_COLUMNS)
_FRESH = Prepared(
    select(*(fresh_payloads.c[name] for name in _FRESH_COLUMNS))
    .where(fresh_payloads.c.job_id == bindparam("job"))
    .order_by(fresh_payloads.c.number),
    "job",
)
_MOVE = (
    payloads.insert()
    .prefix_with("OR IGNORE")
    .from_select(
        _COLUMNS,
        select(*(fresh_payloads.c[name] for name in _COLUMNS))
        .where(fresh_payloads.c.job_id == bindparam("job"))
        .order_by(fresh_payloads.c.job_id, fresh_payloads.c.digest),
    )
)
_MOVED = Prepared(fresh_payloads.delete().where(fresh_payloads.c.job_id == bindparam("job")), "job")
_FORGET_FRESH = Prepared(
    fresh_payloads.delete().where(
        fresh_payloads.c.job_id == bindparam("job"), fresh_payloads.c.number == bindparam("number")
    ),
    "job", "number",
)  # fmt: skip
_FORGET = Prepared(
    payloads.delete().where(
        payloads.c.job_id == bindparam("job"),
        payloads.c.digest == bindparam("d"),
        payloads.c.record_id == bindparam("r"),
    ),
    "job", "d", "r",
)  # fmt: skip
# no join: of a table that was not analysed yet, PostgreSQL would read all pages of the job for each
_URL = (
    select(pages.c.url).where(pages.c.job_id == payloads.c.job_id, pages.c.id == payloads.c.page_id).scalar_subquery()
)
_KNOWN = Lookup(
    select(payloads.c.digest, func.coalesce(payloads.c.url, _URL), payloads.c.captured_at, payloads.c.record_id),
    payloads.c.job_id,
    payloads.c.digest,
)
_URLS = Lookup(select(pages.c.id, pages.c.url), pages.c.job_id, pages.c.id)
_ANY = Prepared(select(payloads.c.job_id).where(payloads.c.job_id == bindparam("job")).limit(1), "job")
_BITS = 22
"""Of a digest, by which a new one is known to be new: of a million, four in five need no look-up."""


class Payloads:
    """The payloads of one job by digest."""

    def __init__(self, db: Database, job_id: int) -> None:
        self._db, self._job_id = db, job_id
        self._met: bytearray | None = None
        """A byte for each beginning of a digest: 1 when one was kept. None where others or an earlier run kept some.

        Without bytes until the first comes: a server has many jobs at hand, whose payloads their pipelines know.
        """
        self._begin()
        if not (db.shared or self._fresh or db.rows(_ANY, (job_id,))):
            self._met = bytearray()
        db.on_rollback(self._begin)

    def _begin(self) -> None:
        rows = self._db.rows(_FRESH, (self._job_id,)) if self._db.in_bulk else []
        self._fresh: dict[bytes, Row] = {row[1]: row for row in rows}
        self._last = rows[-1][_NUMBER] if rows else 0

    def remember(self, finished: Iterable[PageResult], others: Iterable[tuple[bytes, EarlierCapture]] = ()) -> None:
        """Keep the first capture of each payload; within the caller's transaction.

        `others` are captures that were asked for by an open page, by digest.
        """
        job = self._job_id
        rows: list[Row] = [
            (job, digest, _OF_NO_PAGE, one.captured_at, one.record_id, one.url) for digest, one in others
        ]
        rows += [(job, f.payload, f.page_id, f.started_at, f.record_id, None) for f in finished if f.payload]
        if self._met is not None and rows:
            self._met = self._met or bytearray(1 << _BITS)
            for row in rows:
                self._met[_beginning(row[1])] = 1
        if self._db.in_bulk:
            self._remember_fresh(rows)
        else:
            # in order, so that sessions never wait for each other in a circle
            self._db.many(_KEEP, sorted(rows, key=_digest_first))

    def _remember_fresh(self, rows: list[Row]) -> None:
        first = {row[1]: row for row in reversed(rows) if row[1] not in self._fresh}
        numbered = enumerate(first.items(), self._last + 1)
        fresh = {digest: (*row[:-1], number, row[-1]) for number, (digest, row) in numbered}
        self._db.many(_KEEP_FRESH, list(fresh.values()))
        self._fresh.update(fresh)
        self._last += len(fresh)
        if len(self._fresh) >= _TOGETHER:
            self._db.connection.execute(_MOVE, {"job": self._job_id})
            self._db.many(_MOVED, [(self._job_id,)])
            self._fresh.clear()

    def known(self, digests: Iterable[bytes]) -> dict[bytes, EarlierCapture]:
        """The earlier capture of each digest that has one."""
        met = self._met
        asked = list(digests) if met is None else [digest for digest in digests if met and met[_beginning(digest)]]
        fresh = [self._fresh[digest] for digest in asked if digest in self._fresh]
        pages_of = [row[2] for row in fresh if row[-1] is None]
        urls = {row[0]: row[1] for row in self._db.lookup(_URLS, self._job_id, pages_of)}
        rows = [(digest, url or urls[page], at, record) for _, digest, page, at, record, _, url in fresh]
        # last, so that they win: they were captured before
        rows += self._db.lookup(_KNOWN, self._job_id, asked)
        return {digest: EarlierCapture(url, captured_at, record_id) for digest, url, captured_at, record_id in rows}

    def forget(self, lost: Sequence[tuple[bytes, bytes]]) -> None:
        """Let no later revisit refer to records that are lost: digest and record id of each."""
        fresh = [self._fresh[digest] for digest, record in lost if digest in self._fresh]
        records = set(lost)
        gone = {row[1]: row[_NUMBER] for row in fresh if (row[1], row[4]) in records}
        self._db.many(_FORGET_FRESH, [(self._job_id, number) for number in gone.values()])
        self._db.many(_FORGET, [(self._job_id, *one) for one in lost])
        for digest in gone:
            del self._fresh[digest]


def _digest_first(row: Row) -> tuple[bytes, int]:
    return row[1], row[3]


def _beginning(digest: bytes) -> int:
    return int.from_bytes(digest[:4], "big") >> (32 - _BITS)
