"""The seed list of a fetch: its lines become pages, and how far it was read is kept in the same transaction."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from msgspec import structs
from sqlalchemy import bindparam, literal_column, null, select

from muniment.errors import PlaceError, UsageError
from muniment.model.page import PageState
from muniment.model.queue import RepeatedLine
from muniment.model.seed import ListProgress, Prior, SeedBatch, SeedLine, SeedPlace
from muniment.model.url import url_key
from muniment.tracker.db.database import BatchInsert, Database, Lookup, Prepared, Row, retrying_transaction
from muniment.tracker.queue.admission import Admission
from muniment.tracker.schema.seeds import seed_repeats
from muniment.tracker.schema.tables import pages, seed_lists, seeds

__all__ = ["SeedStore", "begin_list", "repeated_lines"]

_SEED_COLUMNS = ("job_id", "page_id", "line", "digest", "etag", "last_modified", "captured_at", "meta_json")
_SEED = BatchInsert(seeds, *_SEED_COLUMNS, conflict="IGNORE")
_REPEAT_COLUMNS = ("job_id", "line", "key", "meta_json")
_REPEAT = BatchInsert(seed_repeats, *_REPEAT_COLUMNS)
_HOPS = Lookup(
    select(pages.c.id, pages.c.seed_id, pages.c.attempts_remaining, pages.c.state), pages.c.job_id, pages.c.id
)
_NO_PRIOR = Prior()
_REPEATS = Prepared(
    select(seed_repeats.c.line, seed_repeats.c.key, seed_repeats.c.meta_json)
    .where(seed_repeats.c.job_id == bindparam("job"), seed_repeats.c.line > bindparam("after"))
    .order_by(seed_repeats.c.line)
    .limit(literal_column("10000")),
    "job",
    "after",
)
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


def begin_list(db: Database, job_id: int) -> None:
    """Note that a job works off a list; within the transaction that makes the job."""
    db.connection.execute(seed_lists.insert().values(job_id=job_id))


class SeedStore:
    """Takes the lines of one job's list in."""

    def __init__(self, db: Database, job_id: int, admission: Admission) -> None:
        self._db, self._job_id, self._admission = db, job_id, admission
        self._begin()
        db.on_rollback(self._begin)

    def _begin(self) -> None:
        columns = [seed_lists.c[name] for name in _COUNTS]
        row = self._db.connection.execute(select(*columns).where(seed_lists.c.job_id == self._job_id)).one()
        self.read = ListProgress(SeedPlace(row[0], row[1]), row[2], row[3], row[4], bool(row[5]))

    @retrying_transaction
    def admit_after(self, batch: SeedBatch, at: int, *, last: bool) -> None:
        """Take in a batch that begins after line `at`, in one transaction; `last`: the list ends with it.

        Raises PlaceError when the lines that came before end elsewhere, and UsageError when the list has ended.
        """
        with self._db.transaction() as connection:
            # locked: somebody else may send lines of the same list
            mine = select(seed_lists.c.job_id).where(seed_lists.c.job_id == self._job_id).with_for_update()
            connection.execute(mine)
            self._begin()
            if self.read.place.number != at:
                raise PlaceError(
                    f"the next line of the list is number {self.read.place.number}", self.read.place.number
                )
            if self.read.ended and (batch.lines or batch.bad):
                raise UsageError("the list has ended: make another job for more lines")
            self._admit(batch)
            if last:
                self._note(structs.replace(self.read, ended=True))

    @retrying_transaction
    def admit(self, batch: SeedBatch) -> Counter[int]:
        """Take in a batch, in one transaction; returns pages newly pending per host number."""
        with self._db.transaction():
            return self._admit(batch)

    def _admit(self, batch: SeedBatch) -> Counter[int]:
        listed = self._admission.add_listed([(line.url, line.found_as) for line in batch.lines])
        before_it = {page_id for page_id in listed.pages if page_id <= listed.known}
        hops = self._adopt(before_it)
        self._keep(listed.pages, batch.lines, before_it - {page_id for page_id, own in hops.items() if own})
        duplicates = len(batch.lines) - (len(set(listed.pages)) - len(before_it)) - len(hops)
        before = self.read
        self._note(
            ListProgress(
                place=batch.end,
                lines=before.lines + len(batch.lines),
                bad=before.bad + len(batch.bad),
                duplicates=before.duplicates + duplicates,
                ended=False,
            )
        )
        return listed.pending

    @retrying_transaction
    def end(self) -> None:
        """Note that the whole list was read."""
        with self._db.transaction():
            self._note(structs.replace(self.read, ended=True))

    def _note(self, read: ListProgress) -> None:
        row = (read.place.offset, read.place.number, read.lines, read.bad, read.duplicates, read.ended, self._job_id)
        self._db.many(_READ, [row])
        self.read = read

    def _keep(self, found: list[int], lines: list[SeedLine], known: set[int]) -> None:
        """Keep what lines say beyond their URL: for their pages, or beside them when an earlier line has the page."""
        own: list[Row] = []
        again: list[Row] = []
        for page_id, line in zip(found, lines, strict=True):
            if not line.plain:
                if page_id not in known:
                    own.append(self._row(page_id, line, line.meta_json))
                else:
                    if line.prior != _NO_PRIOR:
                        own.append(self._row(page_id, line, ""))
                    if line.meta_json:
                        again.append((self._job_id, line.number, url_key(line.url), line.meta_json))
            known.add(page_id)
        self._db.many(_SEED, own)
        self._db.many(_REPEAT, again)

    def _row(self, page_id: int, line: SeedLine, meta_json: str) -> Row:
        prior = line.prior
        return (
            self._job_id, page_id, line.number, prior.digest, prior.etag, prior.last_modified, prior.captured_at,
            meta_json,
        )  # fmt: skip

    def _adopt(self, known: set[int]) -> dict[int, bool]:
        """The pages among known ones that only redirects led to, and whether each becomes the line's own.

        One that was fetched, or is being fetched, stays as it is.
        """
        hops = {
            page_id: left > 0 and state != PageState.CLAIMED.value
            for page_id, seed_id, left, state in self._db.lookup(_HOPS, self._job_id, list(known))
            if seed_id is not None
        }
        self._db.many(_ADOPT, [(self._job_id, page_id) for page_id, own in hops.items() if own])
        return hops

    def repeats(self, after: int) -> list[RepeatedLine]:
        """The next lines after a line whose URL an earlier line has; empty when there are no more."""
        rows = self._db.rows(_REPEATS, (self._job_id, after))
        return [RepeatedLine(line, bytes(key), str(meta_json)) for line, key, meta_json in rows]


def repeated_lines(db: Database, job_id: int) -> Iterator[tuple[bytes, str]]:
    """The lines of a job whose URL an earlier line has: the URL's key and `meta_json`."""
    after = 0
    while rows := db.rows(_REPEATS, (job_id, after)):
        yield from ((bytes(key), str(meta_json)) for _, key, meta_json in rows)
        after = rows[-1][0]
