"""Which URLs of a job are known: the table `page_keys`, which on SQLite follows the pages in bulk (decision 0140).

Keys are hashes, so that each new one lies elsewhere in the table. Written with its page, every key costs a block of the
log; written together, in their order, thousands share their blocks. What is not there yet is remembered, and after a
kill it is what the last pages have.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import BigInteger, bindparam, cast, exists, func, literal_column, select

from muniment.tracker.engine import Database, Lookup, Prepared, Row
from muniment.tracker.tables import page_keys, pages

__all__ = ["PageKeys"]

_TOGETHER = 50_000
"""How many keys are remembered before they are written: some 10 MB, and then a tenth of a second."""

_KNOW = page_keys.insert().values(job_id=bindparam("job"), key=bindparam("k"), page_id=bindparam("page"))
_ALONE = Prepared(_KNOW, "job", "k", "page")
_BESIDE_OTHERS = Prepared(_KNOW.prefix_with("OR IGNORE", dialect="sqlite"), "job", "k", "page")

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

_before = pages.alias("before")
_LAST_WRITTEN = (
    select(_before.c.id)
    .where(
        _before.c.job_id == bindparam("job"),
        exists().where(page_keys.c.job_id == _before.c.job_id, page_keys.c.key == _before.c.key),
    )
    .order_by(_before.c.id.desc())
    .limit(literal_column("1"))
    .scalar_subquery()
)
_NOT_WRITTEN = Prepared(
    select(pages.c.key, pages.c.id).where(
        pages.c.job_id == bindparam("job"), pages.c.id > func.coalesce(_LAST_WRITTEN, literal_column("0"))
    ),
    "job",
    "job",
)


class PageKeys:
    """The known URLs of one job; every method runs within the caller's transaction, or reads."""

    def __init__(self, db: Database, job_id: int) -> None:
        self._db, self._job_id = db, job_id
        self.begin()

    def begin(self) -> None:
        """Read which keys are still to be written: those of the pages after the last one that is written."""
        rows = self._db.rows(_NOT_WRITTEN, (self._job_id, self._job_id)) if self._db.in_bulk else []
        self._remembered: dict[bytes, int] = dict(rows)

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
        """The known among keys, in no order: the key, its page, and the hops of that as half a word (`seen.pack`)."""
        remembered = [self._remembered[key] for key in keys if key in self._remembered]
        asked = [key for key in keys if key not in self._remembered] if remembered else keys
        found = self._db.lookup(_WRITTEN, self._job_id, asked)
        return found + self._db.lookup(_REMEMBERED, self._job_id, remembered)

    def _write(self) -> None:
        first = next(iter(self._remembered.values()))
        self._db.connection.execute(_WRITE, {"job": self._job_id, "first": first})
        self._remembered.clear()
