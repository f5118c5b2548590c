"""What fills the catalogue: rows of indexes and of WARC files of other tools, in columns from end to end."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
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
from muniment.replay.choice import NO_JOB
from muniment.replay.url_keys import MACROS

__all__ = ["CatalogIntake"]

_AT_ONCE = 10_000
_REFRESH_S = 2.0
_TRIES = 3
_COLUMNS = (
    "url", "host", "status", "content_type", "digest", "warc_file", "warc_offset", "warc_length", "error",
    "record_type", "started_at", "found_as", "depth", "redirect_to", "method", "attempt", "body_length", "truncated",
)  # fmt: skip
_ROWS: pa.Schema = pa.schema([SCHEMA.field(name) for name in _COLUMNS])
_FOREIGN: pa.Schema = _ROWS.append(pa.field("body", pa.string()))
_PLACED: pa.Schema = _FOREIGN.append(pa.field("place", pa.int32()))
_TABLE = """
CREATE TABLE captures (
    source INTEGER, place INTEGER, taken BIGINT, url VARCHAR, host VARCHAR, status INTEGER, kind VARCHAR,
    digest VARCHAR, type VARCHAR, whole BOOLEAN, page BOOLEAN, start BOOLEAN, redirect VARCHAR, pos BIGINT,
    method VARCHAR, attempt INTEGER, job INTEGER, length BIGINT, packed BIGINT, body VARCHAR,
    exact UBIGINT, path UBIGINT, payload UBIGINT
)
"""
_INSERT = """
INSERT INTO captures
SELECT $source, place, started_at, url, host, status, content_type, digest, record_type,
    error = '' AND truncated = '',
    status = 200 AND error = '' AND depth >= 0 AND found_as <> 'robots' AND method = 'GET'
        AND regexp_matches(content_type, $html, 'i'),
    found_as = 'start' OR (found_as = 'redirect' AND depth = 0),
    redirect_to, warc_offset, method, attempt, $job, body_length, warc_length, body,
    exact_key(url), path_key(url), hash(digest)
FROM fresh
WHERE warc_length IS NOT NULL AND found_as <> $again AND regexp_matches(url, '^[A-Za-z][A-Za-z0-9+.-]*://')
"""
"""Without what was made of pages, as `urn:view:URL`: it has no address and is not a capture of the page."""
_Source = tuple[Path, str]


class CatalogIntake:
    """Takes in output directories, which are looked at again while they grow, and WARC files of other tools.

    Only `exact` has an index, built when the first rows are there: what is asked seldom is found by a scan of a million
    numbers, which takes milliseconds.
    """

    def __init__(
        self, db: duckdb.DuckDBPyConnection, directories: Sequence[Path], foreign: Sequence[Container]
    ) -> None:
        self._db, self._directories = db, directories
        self.containers: list[Container | WarcFile] = list(foreign)
        self._places: dict[_Source, int] = {}
        self._seen: dict[_Source, tuple[int, tuple[int, int]]] = {}
        """Of each source of rows: its number, and its size and time when it was read."""
        self._sources, self._checked, self._lock = 0, 0.0, threading.Lock()
        for statement in (*MACROS, _TABLE):
            db.execute(statement)
        with db.cursor() as cursor:
            for place, container in enumerate(foreign):
                rows = _placed(_foreign_rows(container), {container.name: place}.__getitem__)
                _insert(cursor, 0, NO_JOB, rows)
        self._first_look()
        db.execute("CREATE INDEX captures_by_url ON captures (exact)")

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
        gone = self._seen.keys() - present.keys()
        changed = [
            key for key, (_, _, state) in present.items() if key not in self._seen or self._seen[key][1] != state
        ]
        if gone or changed:
            with self._db.cursor() as cursor:
                taken = self._swap(cursor, gone, {key: present[key][:2] for key in changed})
            self._seen = {key: known for key, known in self._seen.items() if key not in gone}
            self._seen |= {key: (number, present[key][2]) for key, number in taken.items()}

    def _swap(
        self, cursor: duckdb.DuckDBPyConnection, gone: Iterable[_Source], fresh: dict[_Source, tuple[Path, RowSource]]
    ) -> dict[_Source, int]:
        """Take in sources and forget others at once: rows that move from one to another are never missing, or twice.

        The numbers of those taken in. Raises ArchiveError and FileNotFoundError, and then nothing has changed.
        """
        taken: dict[_Source, int] = {}
        cursor.begin()
        try:
            for key, (directory, source) in fresh.items():
                self._sources += 1
                taken[key] = self._sources
                beside = directory if directory.is_dir() else directory.parent
                rows = _placed(batches(source, _COLUMNS), partial(self._place, beside))
                _insert(cursor, taken[key], self._directories.index(directory), rows)
        except BaseException:
            cursor.rollback()
            raise
        for key in (*gone, *fresh):
            if key in self._seen:
                cursor.execute("DELETE FROM captures WHERE source = ?", [self._seen[key][0]])
        cursor.commit()
        return taken

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
        numbers = pa.array([place(name) if name else None for name in names.dictionary.to_pylist()], pa.int32())
        bodies = [] if "body" in batch.schema.names else [pa.nulls(batch.num_rows, pa.string())]
        yield pa.RecordBatch.from_arrays([*batch.columns, *bodies, numbers.take(names.indices)], schema=_PLACED)


def _insert(cursor: duckdb.DuckDBPyConnection, source: int, job: int, rows: Iterator[pa.RecordBatch]) -> None:
    """Stream rows into the table. Raises ArchiveError for damage, and FileNotFoundError."""
    failures: list[Exception] = []

    def guarded() -> Iterator[pa.RecordBatch]:
        try:
            yield from rows
        except (ArchiveError, FileNotFoundError) as error:
            failures.append(error)

    cursor.register("fresh", pa.RecordBatchReader.from_batches(_PLACED, guarded()))
    cursor.execute(_INSERT, {"source": source, "job": job, "html": f"^{HTML.pattern}", "again": LISTED_AGAIN})
    cursor.unregister("fresh")
    if failures:
        raise failures[0]


def _foreign_rows(container: Container) -> Iterator[pa.RecordBatch]:
    found = captures_in(container)
    while some := list(islice(found, _AT_ONCE)):
        columns = zip(*(_row(container.name, one) for one in some), strict=True)
        arrays = [pa.array(column, field.type) for column, field in zip(columns, _FOREIGN, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, schema=_FOREIGN)


def _row(name: str, one: FoundCapture) -> tuple[str | int | None, ...]:
    url = normalise(one.url) or one.url  # other tools write some as they stood in a page
    return (
        url, host_of(url), one.status, one.content_type, one.digest, name, one.offset, 0, "", one.record_type,
        one.started_at, "", 0, one.redirect_to, one.method, 1, one.length, "" if one.whole else "unspecified", one.body,
    )  # fmt: skip
