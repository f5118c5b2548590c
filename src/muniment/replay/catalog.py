"""The catalogue of what is replayed: one row for each capture, in a temporary database, kept up with running crawls."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path

import duckdb
import pyarrow as pa
from msgspec import Struct

from muniment.archive.export.gather import WarcFile
from muniment.archive.export.pages import is_page, is_start
from muniment.archive.index.read import RowSource, batches, sources
from muniment.archive.reading.containers import Container
from muniment.archive.reading.foreign import captures_in
from muniment.clock import monotonic
from muniment.errors import ArchiveError
from muniment.model.capture import LISTED_AGAIN
from muniment.model.url import host_of
from muniment.replay.lookup import exact_key, loose_key

__all__ = ["Catalog", "CatalogTotals", "Entry", "Search"]

_AT_ONCE = 20_000
_REFRESH_S = 2.0
_PAGE = 100
_COLUMNS = (
    "url", "host", "status", "content_type", "digest", "warc_file", "warc_offset", "warc_length", "error",
    "record_type", "started_at", "found_as", "depth", "redirect_to",
)  # fmt: skip
_TABLE = """
CREATE TABLE captures (
    source INTEGER, place INTEGER, taken BIGINT, url VARCHAR, host VARCHAR, status INTEGER, kind VARCHAR,
    digest VARCHAR, type VARCHAR, whole BOOLEAN, page BOOLEAN, start BOOLEAN, redirect VARCHAR, pos BIGINT,
    exact BIGINT, loose BIGINT
)
"""
_SCHEMA: pa.Schema = pa.schema([
    ("source", pa.int32()), ("place", pa.int32()), ("taken", pa.int64()), ("url", pa.string()), ("host", pa.string()),
    ("status", pa.int32()), ("kind", pa.string()), ("digest", pa.string()), ("type", pa.string()),
    ("whole", pa.bool_()), ("page", pa.bool_()), ("start", pa.bool_()), ("redirect", pa.string()),
    ("pos", pa.int64()), ("exact", pa.int64()), ("loose", pa.int64()),
])  # type: ignore[arg-type]  # fmt: skip
_FIELDS = "url, taken, status, kind, digest, type, whole, page, redirect, place, pos"
_SELECT = f"SELECT {_FIELDS} FROM captures"


class Entry(Struct, frozen=True):
    """A capture that can be shown."""

    url: str
    at: int
    """Unix microseconds."""
    status: int
    kind: str
    """The Content-Type as sent."""
    digest: str
    record_type: str
    whole: bool
    """A complete capture."""
    page: bool
    redirect_to: str
    place: int
    """The number of the WARC file."""
    offset: int


class Search(Struct, frozen=True, kw_only=True):
    """A search of captures; what is empty does not count."""

    q: str = ""
    host: str = ""
    status: str = ""
    type: str = ""
    since: int | None = None
    until: int | None = None
    page: int = 0


class CatalogTotals(Struct, frozen=True):
    """The sums of the catalogue."""

    captures: int
    pages: int
    hosts: int
    first: int
    last: int


class Catalog:
    """Captures of output directories, which are looked at again while they grow, and of other files."""

    def __init__(self, scratch: Path, directories: Sequence[Path], foreign: Sequence[Container]) -> None:
        self._directories = directories
        self.containers: list[Container | WarcFile] = list(foreign)
        self._places: dict[tuple[Path, str], int] = {}
        self._seen: dict[tuple[Path, str], tuple[int, tuple[int, int]]] = {}
        """Of each source of rows: its number, and its size and time when it was read."""
        self._sources, self._checked, self._lock = 0, -_REFRESH_S, threading.Lock()
        self._db = duckdb.connect(str(scratch / "catalog.duckdb"), config={"memory_limit": "512MB", "threads": 2})
        self._db.execute("SET enable_progress_bar = false")
        self._db.execute(_TABLE)
        for place, container in enumerate(foreign):
            self._load(0, _foreign_rows(place, container))
        self._refresh()
        self._db.execute("CREATE INDEX by_exact ON captures (exact)")
        self._db.execute("CREATE INDEX by_time ON captures (taken)")
        self._db.execute("CREATE INDEX by_loose ON captures (loose)")

    def close(self) -> None:
        """Close the database."""
        self._db.close()

    # -- what is asked

    def nearest(self, url: str, at: int | None) -> tuple[Entry | None, bool]:
        """The capture of a URL nearest to a time (the newest without one), and whether it was matched loosely.

        Complete captures go before others, then the URL's own scheme.
        """
        self.refresh()
        for column, key in (("exact", exact_key(url)), ("loose", loose_key(url))):
            found = self._rows(
                f"{_SELECT} WHERE {column} = ? ORDER BY NOT whole, abs(taken - ?), url <> ? LIMIT 1",
                key, at if at is not None else 1 << 62, url,
            )  # fmt: skip
            if found:
                return found[0], column == "loose"
        return None, False

    def entry(self, place: int, offset: int, at: int) -> Entry | None:
        """The capture at a place."""
        sql = f"{_SELECT} WHERE taken = ? AND place = ? AND pos = ? LIMIT 1"
        found = self._rows(sql, at, place, offset)
        return found[0] if found else None

    def all_of(self, url: str, most: int = 500) -> list[Entry]:
        """The captures of a URL in either scheme, oldest first."""
        self.refresh()
        return self._rows(
            f"{_SELECT} WHERE exact = ? ORDER BY taken LIMIT {most}",
            exact_key(url),
        )

    def elsewhere(self, url: str, path: str) -> list[Entry]:
        """Captures with the same path and query on other hosts."""
        own = host_of(url)
        return self._rows(
            f"{_SELECT} WHERE host <> ? AND whole AND ends_with(url, ?) ORDER BY taken DESC LIMIT 10",
            own, path,
        )  # fmt: skip

    def original(self, digest: str, at: int) -> Entry | None:
        """The stored response with a payload digest, nearest to a time."""
        if not digest:
            return None
        found = self._rows(
            f"{_SELECT} WHERE digest = ? AND type = 'response' AND status <> 304 "
            "ORDER BY abs(taken - ?) LIMIT 1", digest, at,
        )  # fmt: skip
        return found[0] if found else None

    def earlier(self, url: str, at: int | None, before: int) -> Entry | None:
        """The stored response of a URL that a revisit names: at its date, or the nearest one before."""
        near = before if at is None else at
        found = self._rows(
            f"{_SELECT} WHERE exact = ? AND type = 'response' AND status <> 304 "
            "ORDER BY NOT whole, taken > ?, abs(taken - ?) LIMIT 1", exact_key(url), before, near,
        )  # fmt: skip
        return found[0] if found else None

    def totals(self) -> CatalogTotals:
        """The sums."""
        self.refresh()
        sums = (
            "count(*), count(*) FILTER (page), count(DISTINCT host), coalesce(min(taken), 0), coalesce(max(taken), 0)"
        )
        return CatalogTotals(*self._all(f"SELECT {sums} FROM captures")[0])  # type: ignore[arg-type]

    def start_pages(self) -> list[Entry]:
        """Captures of start URLs; where none are known, the first pages."""
        order = "ORDER BY taken LIMIT 50"
        return self._rows(f"{_SELECT} WHERE start AND whole AND page {order}") or self._rows(
            f"{_SELECT} WHERE whole AND page {order}"
        )

    def hosts(self) -> list[tuple[str, int]]:
        """The hosts with the most captures."""
        sql = "SELECT host, count(*) AS n FROM captures GROUP BY host ORDER BY n DESC, host LIMIT 12"
        return [(str(host), int(str(n))) for host, n in self._all(sql)]

    def search(self, wanted: Search) -> tuple[list[Entry], bool]:
        """One page of captures, newest first, and whether there are more."""
        self.refresh()
        tests, values = _tests(wanted)
        found = self._rows(
            f"{_SELECT} WHERE {' AND '.join(tests) or 'true'} "
            f"ORDER BY taken DESC, url LIMIT {_PAGE + 1} OFFSET {wanted.page * _PAGE}",
            *values,
        )
        return found[:_PAGE], len(found) > _PAGE

    def _rows(self, sql: str, *values: object) -> list[Entry]:
        return [Entry(*row) for row in self._all(sql, *values)]  # type: ignore[arg-type]

    def _all(self, sql: str, *values: object) -> list[tuple[object, ...]]:
        with self._db.cursor() as cursor:
            return cursor.execute(sql, values or None).fetchall()

    # -- how it is filled

    def refresh(self) -> None:
        """Take in what running crawls have added, at most every two seconds."""
        if monotonic() - self._checked > _REFRESH_S and self._lock.acquire(blocking=False):
            try:
                self._refresh()
            finally:
                self._lock.release()

    def _refresh(self) -> None:
        present = {}
        for directory in self._directories:
            for source in _sources(directory):
                try:
                    state = source.path.stat()
                except FileNotFoundError:
                    continue
                present[source.path, source.name] = directory, source, (state.st_size, state.st_mtime_ns)
        for key in self._seen.keys() - present.keys():
            self._forget(self._seen.pop(key)[0])
        for key, (directory, source, state_now) in present.items():
            known = self._seen.get(key)
            if known is None or known[1] != state_now:
                self._take(key, directory, source, state_now)
        self._checked = monotonic()

    def _take(self, key: tuple[Path, str], directory: Path, source: RowSource, state: tuple[int, int]) -> None:
        before = self._seen.get(key)
        self._sources += 1
        try:
            self._load(self._sources, self._own_rows(directory, source))
        except (ArchiveError, FileNotFoundError):
            self._forget(self._sources)  # it went into a join meanwhile, which the next look finds
            return
        self._seen[key] = self._sources, state
        if before:
            self._forget(before[0])

    def _forget(self, source: int) -> None:
        self._db.execute("DELETE FROM captures WHERE source = ?", [source])

    def _load(self, source: int, rows: Iterable[tuple[object, ...]]) -> None:
        rows = iter(rows)
        with self._db.cursor() as cursor:
            while some := list(islice(rows, _AT_ONCE)):
                columns = [[source] * len(some), *map(list, zip(*some, strict=True))]
                arrays = [pa.array(column, field.type) for column, field in zip(columns, _SCHEMA, strict=True)]
                cursor.register("fresh", pa.Table.from_arrays(arrays, schema=_SCHEMA))
                cursor.execute("INSERT INTO captures SELECT * FROM fresh")

    def _own_rows(self, directory: Path, source: RowSource) -> Iterator[tuple[object, ...]]:
        for batch in batches(source, _COLUMNS):
            for url, host, status, kind, digest, name, pos, length, error, record, at, found_as, depth, redirect in zip(
                *(batch.column(column).to_pylist() for column in _COLUMNS), strict=True
            ):
                if not name or found_as == LISTED_AGAIN or length is None:
                    continue
                page = is_page(status, error, depth, found_as, kind)
                start = is_start(depth, found_as)
                place = self._place(directory if directory.is_dir() else directory.parent, name)
                yield (
                    place, at, url, host, status, kind, digest, record, not error, page, start, redirect, pos,
                    exact_key(url), loose_key(url),
                )  # fmt: skip

    def _place(self, directory: Path, name: str) -> int:
        place = self._places.get((directory, name))
        if place is None:
            place = self._places[directory, name] = len(self.containers)
            self.containers.append(WarcFile(directory, name, 0, name))
        return place

    def container(self, place: int) -> Container:
        """The WARC file of an entry, where it is now."""
        found = self.containers[place]
        if isinstance(found, WarcFile):
            path = found.path
            return Container(found.name, path, 0, path.stat().st_size, packed=True)
        return found


def _sources(directory: Path) -> list[RowSource]:
    if not directory.is_dir():
        return [RowSource("", directory)]
    try:
        return sources(directory)
    except FileNotFoundError:
        return []


def _foreign_rows(place: int, container: Container) -> Iterator[tuple[object, ...]]:
    for one in captures_in(container):
        page = is_page(one.status, "", 0, "", one.content_type) and not one.truncated
        yield (
            place, one.started_at, one.url, host_of(one.url), one.status, one.content_type, one.digest, one.record_type,
            not one.truncated, page, False, one.redirect_to, one.offset, exact_key(one.url), loose_key(one.url),
        )  # fmt: skip


def _tests(wanted: Search) -> tuple[list[str], list[object]]:
    tests: list[str] = []
    values: list[object] = []
    for test, value in (
        ("contains(lower(url), lower(?))", wanted.q),
        ("host = ?", wanted.host.lower()),
        ("CAST(status AS VARCHAR) LIKE ?", f"{wanted.status}%" if wanted.status.isdigit() else ""),
        ("contains(lower(kind), lower(?))", wanted.type),
        ("taken >= ?", wanted.since),
        ("taken < ?", wanted.until),
    ):
        if value not in ("", None):
            tests.append(test)
            values.append(value)
    return tests, values
