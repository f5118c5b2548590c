"""Which URLs of a job are known: the table `page_keys`, which on SQLite follows the pages in bulk (decision 0140).

Keys are hashes, so that each new one has its place elsewhere in the table. Written with its page, every key costs a
block of the log; written together, in their order, thousands share their blocks. Keys that are not written yet are
remembered; after a kill, they are read from the last pages.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import BigInteger, bindparam, cast, exists, literal_column, select

from muniment.tracker.db.database import BatchInsert, Database, Lookup, Prepared, Row
from muniment.tracker.schema.tables import page_keys, pages
from muniment.tracker.stores.id_blocks import last_page

__all__ = ["PageKeys"]

_TOGETHER = 20_000
"""How many keys are remembered before they are written. With more, a key costs less, and the pause is longer."""

_ALONE = BatchInsert(page_keys, "job_id", "key", "page_id")
_BESIDE_OTHERS = BatchInsert(page_keys, "job_id", "key", "page_id", conflict="IGNORE")

# by the database itself, in which a row costs a third of what it would from here
_WRITE = page_keys.insert().from_select(
    ["job_id", "key", "page_id"],
    select(pages.c.job_id, pages.c.key, pages.c.id)
    .where(pages.c.job_id == bindparam("job"), pages.c.id >= bindparam("first"))
    .order_by(pages.c.job_id, pages.c.key),
)

_HOPS = cast(pages.c.link_hops, BigInteger) * literal_column("65536") + pages.c.requisite_hops
_OF_KEY = pages.c.job_id == page_keys.c.job_id, pages.c.id == page_keys.c.page_id
# a sub-select: without statistics, PostgreSQL's planner would read a whole job for the join
_WRITTEN = Lookup(
    select(page_keys.c.key, page_keys.c.page_id, select(_HOPS).where(*_OF_KEY).scalar_subquery()),
    page_keys.c.job_id,
    page_keys.c.key,
)
_REMEMBERED = Lookup(select(pages.c.key, pages.c.id, _HOPS), pages.c.job_id, pages.c.id)

_IS_WRITTEN = exists().where(page_keys.c.job_id == pages.c.job_id, page_keys.c.key == pages.c.key)
_FROM = Prepared(
    select(pages.c.id, _IS_WRITTEN)
    .where(pages.c.job_id == bindparam("job"), pages.c.id >= bindparam("page"))
    .order_by(pages.c.id)
    .limit(literal_column("1")),
    "job", "page",
)  # fmt: skip
"""The first page from a number on, and whether its key is written."""
_AFTER = Prepared(
    select(pages.c.key, pages.c.id)
    .where(pages.c.job_id == bindparam("job"), pages.c.id > bindparam("page"))
    .order_by(pages.c.id),
    "job", "page",
)  # fmt: skip


class PageKeys:
    """The known URLs of one job; every method runs within the caller's transaction, or reads."""

    def __init__(self, db: Database, job_id: int) -> None:
        self._db, self._job_id = db, job_id
        self._begin()
        db.on_rollback(self._begin)

    def _begin(self) -> None:
        """Read which keys are still to be written: those of the pages after the last one that is written."""
        rows = self._db.rows(_AFTER, (self._job_id, self._last_written())) if self._db.in_bulk else []
        self._remembered: dict[bytes, int] = dict(rows)

    def _last_written(self) -> int:
        """The last page whose key is written. All before it are, too: it is found by halving."""
        written, missing = 0, last_page(self._db, self._job_id) + 1
        while missing - written > 1:
            middle = (written + missing) // 2
            page_id, is_written = self._db.rows(_FROM, (self._job_id, middle))[0]
            if is_written:
                written = page_id
            else:
                missing = middle
        return int(written)

    def add(self, rows: list[Row]) -> bool:
        """Make URLs known, (job, key, page) each; whether no other process did before."""
        if self._db.shared:
            # in order, so that processes with the same URLs never wait for each other in a circle
            return self._db.changed(_BESIDE_OTHERS, sorted(rows)) == len(rows)
        if not self._db.in_bulk:
            self._db.many(_ALONE, rows)
            return True
        # before, while all that are remembered have pages
        if len(self._remembered) >= _TOGETHER:
            self._write()
        self._remembered.update([row[1:] for row in rows])
        return True

    def find(self, keys: Sequence[bytes]) -> list[Row]:
        """The known among keys, in no order: the key, its page, and its hops as half a word (`seen_cache.pack`)."""
        remembered = [self._remembered[key] for key in keys if key in self._remembered]
        asked = [key for key in keys if key not in self._remembered] if remembered else keys
        found = self._db.lookup(_WRITTEN, self._job_id, asked)
        return found + self._db.lookup(_REMEMBERED, self._job_id, remembered)

    def _write(self) -> None:
        first = next(iter(self._remembered.values()))
        self._db.connection.execute(_WRITE, {"job": self._job_id, "first": first})
        self._remembered.clear()
