"""The seed list of a fetch: its lines become pages, and how far it was read is kept in the same transaction."""

from __future__ import annotations

from collections import Counter

from msgspec import Struct, structs
from sqlalchemy import bindparam, literal_column, null, select

from muniment.model.seed import SeedBatch, SeedLine, SeedPlace
from muniment.tracker.admission import Admission
from muniment.tracker.engine import Database, Lookup, Prepared, one_transaction
from muniment.tracker.tables import pages, seed_lists, seeds

__all__ = ["ListRead", "SeedBook", "begin_list"]

_SEED_COLUMNS = ("job_id", "page_id", "line", "digest", "etag", "last_modified", "captured_at", "meta_json")
_SEED = Prepared(
    seeds.insert().prefix_with("OR IGNORE", dialect="sqlite").values({name: bindparam(name) for name in _SEED_COLUMNS}),
    *_SEED_COLUMNS,
)
_HOPS = Lookup(select(pages.c.id, pages.c.seed_id, pages.c.attempts_remaining), pages.c.job_id, pages.c.id)
_ADOPT = Prepared(
    pages.update()
    .where(pages.c.job_id == bindparam("job"), pages.c.id == bindparam("page"))
    .values(seed_id=null(), redirects=literal_column("0")),
    "job",
    "page",
)
_COUNTS = ("place_offset", "place_number", "lines", "bad", "duplicates", "ended")
_READ = Prepared(
    seed_lists.update()
    .where(seed_lists.c.job_id == bindparam("job"))
    .values({name: bindparam(value) for name, value in zip(_COUNTS, "onlbde", strict=True)}),
    *"onlbde",
    "job",
)


class ListRead(Struct, frozen=True):
    """How far a list was read, and what was in it."""

    place: SeedPlace
    lines: int
    """URLs taken, duplicates included."""
    bad: int
    duplicates: int
    ended: bool


def begin_list(db: Database, job_id: int) -> None:
    """Note that a job works off a list; within the transaction that makes the job."""
    db.connection.execute(seed_lists.insert().values(job_id=job_id))


class SeedBook:
    """Takes the lines of one job's list in."""

    def __init__(self, db: Database, job_id: int, admission: Admission) -> None:
        self._db, self._job_id, self._admission = db, job_id, admission
        self._begin()
        db.when_undone(self._begin)

    def _begin(self) -> None:
        columns = [seed_lists.c[name] for name in _COUNTS]
        row = self._db.connection.execute(select(*columns).where(seed_lists.c.job_id == self._job_id)).one()
        self.read = ListRead(SeedPlace(row[0], row[1]), row[2], row[3], row[4], bool(row[5]))

    @one_transaction
    def admit(self, batch: SeedBatch) -> Counter[int]:
        """Take in a batch, in one transaction; returns pages newly pending per host number."""
        with self._db.transaction():
            listed = self._admission.add_listed([(line.url, line.found_as) for line in batch.lines])
            told = zip(listed.pages, batch.lines, strict=True)
            self._db.many(_SEED, [self._row(page, line) for page, line in told if not line.plain])
            duplicates = self._adopt(listed.pages, listed.known)
            before = self.read
            self._note(
                ListRead(
                    place=batch.end,
                    lines=before.lines + len(batch.lines),
                    bad=before.bad + len(batch.bad),
                    duplicates=before.duplicates + duplicates,
                    ended=False,
                )
            )
        return listed.pending

    @one_transaction
    def end(self) -> None:
        """Note that the whole list was read."""
        with self._db.transaction():
            self._note(structs.replace(self.read, ended=True))

    def _note(self, read: ListRead) -> None:
        row = (read.place.offset, read.place.number, read.lines, read.bad, read.duplicates, read.ended, self._job_id)
        self._db.many(_READ, [row])
        self.read = read

    def _row(self, page_id: int, line: SeedLine) -> tuple[object, ...]:
        prior = line.prior
        return (
            self._job_id, page_id, line.number, prior.digest, prior.etag, prior.last_modified, prior.captured_at,
            line.meta_json,
        )  # fmt: skip

    def _adopt(self, found: list[int], known: int) -> int:
        """Count the lines of a batch that name a page of an earlier line.

        A page that only redirects had led to becomes the line's own; one that was fetched stays as it is.
        """
        again = Counter(found)
        before = [page_id for page_id in again if page_id <= known]
        hops = [
            (page_id, left)
            for page_id, seed_id, left in self._db.lookup(_HOPS, self._job_id, before)
            if seed_id is not None
        ]
        self._db.many(_ADOPT, [(self._job_id, page_id) for page_id, left in hops if left > 0])
        return len(found) - (len(again) - len(before)) - len(hops)
