"""What fills the catalogue: rows of indexes and of WARC files of other tools, in columns from end to end."""

from __future__ import annotations

import threading
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain, count, islice
from pathlib import Path

import duckdb
import pyarrow as pa

from muniment.archive.export.gather import WarcFile
from muniment.archive.export.pages import HTML
from muniment.archive.index.parquet import SCHEMA
from muniment.archive.index.read import RowSource, batches, sources
from muniment.archive.reading.containers import Container
from muniment.archive.reading.foreign import FoundCapture, captures_in
from muniment.clock import monotonic
from muniment.errors import ArchiveError
from muniment.model.capture import LISTED_AGAIN
from muniment.model.url import host_of, normalise
from muniment.replay.captures.rows import KEY_MACROS, CaptureRows
from muniment.replay.choice import NO_JOB

__all__ = ["CatalogIntake"]

_AT_ONCE = 10_000
_REFRESH_S = 2.0
_TRIES = 3
_COLUMNS = (
    "url", "host", "status", "content_type", "digest", "warc_file", "warc_offset", "warc_length", "error",
    "record_type", "started_at", "found_as", "depth", "redirect_to", "method", "attempt", "body_length", "truncated",
)  # fmt: skip
_ROWS: pa.Schema = pa.schema([SCHEMA.field(name) for name in _COLUMNS])
_PLACED: pa.Schema = _ROWS.append(pa.field("body", pa.string())).append(pa.field("place", pa.int32()))
_ROW = """
SELECT url, started_at AS at, status, content_type AS kind, digest, record_type,
    error = '' AND truncated = '' AS whole,
    status = 200 AND error = '' AND depth >= 0 AND found_as <> 'robots' AND method = 'GET'
        AND regexp_matches(content_type, $html, 'i') AS page,
    redirect_to, place, warc_offset AS "offset", method, attempt, CAST($job AS INTEGER) AS job, body_length AS length,
    warc_length AS packed, body, host, found_as = 'start' OR (found_as = 'redirect' AND depth = 0) AS start,
    url_key(url) AS exact, loose_url_key(url) AS loose,
    CASE WHEN record_type <> 'revisit' AND status <> 304 AND digest <> '' THEN key_of(digest) END AS payload
FROM fresh
WHERE warc_length IS NOT NULL AND found_as <> $again AND instr(url, ':') = instr(url, '://') AND contains(url, '://')
"""
"""Without what was made of pages, as `urn:view:URL`: it has no address and is not a capture of the page."""
_Source = tuple[Path, str]


class CatalogIntake:
    """Takes in output directories, which are looked at again while they grow, and WARC files of other tools."""

    def __init__(
        self, db: duckdb.DuckDBPyConnection, scratch: Path, directories: Sequence[Path], foreign: Sequence[Container]
    ) -> None:
        self._db, self._scratch, self._directories = db, scratch, directories
        self.containers: list[Container | WarcFile] = list(foreign)
        self._places: dict[_Source, int] = {}
        self._seen: dict[_Source, tuple[CaptureRows, tuple[int, int]]] = {}
        """The rows of each source, and its size and time when it was read."""
        self._number, self._checked, self._lock = count(), 0.0, threading.Lock()
        for statement in KEY_MACROS:
            db.execute(statement)
        rows = chain.from_iterable(_foreign_rows(one, place) for place, one in enumerate(foreign))
        self._foreign = self._made(NO_JOB, rows)
        self.sources: tuple[CaptureRows, ...] = (self._foreign,)
        """All rows; a new tuple whenever they change."""
        self.table = self._foreign.table
        """The same in one table."""
        self._first_look()

    def refresh(self) -> None:
        """Take in what running crawls have added, at most every two seconds."""
        if monotonic() - self._checked > _REFRESH_S and self._lock.acquire(blocking=False):
            try:
                self._look()
            except (ArchiveError, FileNotFoundError):
                pass  # a file went into a join meanwhile; the next look finds its rows there
            finally:
                self._checked = monotonic()
                self._lock.release()

    def _first_look(self) -> None:
        for left in reversed(range(_TRIES)):
            try:
                self._look()
            except (ArchiveError, FileNotFoundError):
                if not left:
                    raise
            else:
                return

    def _look(self) -> None:
        present = {}
        for directory in self._directories:
            for source in _sources(directory):
                try:
                    state = source.path.stat()
                except FileNotFoundError:
                    continue
                present[source.path, source.name] = directory, source, (state.st_size, state.st_mtime_ns)
        fresh = {
            key: self._read(directory, source)
            for key, (directory, source, state) in present.items()
            if key not in self._seen or self._seen[key][1] != state
        }
        if fresh or self._seen.keys() - present.keys():
            kept = {key: known for key, known in self._seen.items() if key in present}
            self._seen = kept | {key: (rows, present[key][2]) for key, rows in fresh.items()}
            # at once: what moves from one source to another is never missing, or twice
            self.sources = (self._foreign, *(rows for rows, _ in self._seen.values()))
            self.table = pa.concat_tables(one.table for one in self.sources)

    def _read(self, directory: Path, source: RowSource) -> CaptureRows:
        """The rows of a source. Raises ArchiveError and FileNotFoundError."""
        beside = directory if directory.is_dir() else directory.parent
        rows = _placed(batches(source, _COLUMNS), partial(self._place, beside))
        return self._made(self._directories.index(directory), rows)

    def _made(self, job: int, rows: Iterator[pa.RecordBatch]) -> CaptureRows:
        """Rows with what the catalogue needs of them. Raises ArchiveError for damage, and FileNotFoundError."""
        failures: list[Exception] = []

        def guarded() -> Iterator[pa.RecordBatch]:
            try:
                yield from rows
            except (ArchiveError, FileNotFoundError) as error:
                failures.append(error)

        with self._db.cursor() as cursor:
            cursor.register("fresh", pa.RecordBatchReader.from_batches(_PLACED, guarded()))
            given = {"job": job, "html": f"^{HTML.pattern}", "again": LISTED_AGAIN}
            made = pa.RecordBatchReader.from_stream(cursor.sql(_ROW, params=given))
            found = CaptureRows(self._scratch / f"rows-{next(self._number)}", made)
            cursor.unregister("fresh")
        if failures:
            raise failures[0]
        return found

    def _place(self, directory: Path, name: str) -> int:
        place = self._places.get((directory, name))
        if place is None:
            place = self._places[directory, name] = len(self.containers)
            self.containers.append(WarcFile(directory, name, 0, name))
        return place


def _sources(directory: Path) -> list[RowSource]:
    if not directory.is_dir():
        return [RowSource("", directory)]
    try:
        return sources(directory)
    except FileNotFoundError:
        return []


def _placed(rows: Iterable[pa.RecordBatch], place: Callable[[str], int]) -> Iterator[pa.RecordBatch]:
    """The rows with the numbers of their WARC files."""
    for batch in rows:
        names = batch.column("warc_file").dictionary_encode()
        numbers = array("i", [place(name) if name else -1 for name in names.dictionary.to_pylist()])
        # of a list Arrow would ask whether it is one of pandas, which takes seconds to load
        places = pa.Array.from_buffers(pa.int32(), len(numbers), [None, pa.py_buffer(numbers)])
        bodies = pa.nulls(batch.num_rows, pa.string())
        yield pa.RecordBatch.from_arrays([*batch.columns, bodies, places.take(names.indices)], schema=_PLACED)


def _foreign_rows(container: Container, place: int) -> Iterator[pa.RecordBatch]:
    found = captures_in(container)
    while some := list(islice(found, _AT_ONCE)):
        columns = zip(*(_row(container.name, place, one) for one in some), strict=True)
        arrays = [pa.array(column, field.type) for column, field in zip(columns, _PLACED, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, schema=_PLACED)


def _row(name: str, place: int, one: FoundCapture) -> tuple[str | int | None, ...]:
    url = normalise(one.url) or one.url  # other tools write some as they stood in a page
    return (
        url, host_of(url), one.status, one.content_type, one.digest, name, one.offset, 0, "", one.record_type,
        one.started_at, "", 0, one.redirect_to, one.method, 1, one.length, "" if one.whole else "unspecified", one.body,
        place,
    )  # fmt: skip
