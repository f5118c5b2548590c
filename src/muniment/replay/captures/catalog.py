"""The catalogue of what is replayed: one row for each capture, in a temporary database, kept up with running crawls."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
from msgspec import Struct, structs

from muniment.archive.export.gather import WarcFile
from muniment.archive.reading.containers import Container
from muniment.control.runs.counts import captured_pages
from muniment.model.url import host_of
from muniment.replay.captures.intake import CatalogIntake
from muniment.replay.captures.rows import ENTRY_FIELDS, key_of, loose_url_key, url_key
from muniment.replay.captures.url_keys import spelled
from muniment.replay.choice import Entry

__all__ = ["Catalog", "CatalogTotals", "Entry", "Search"]

_PAGE = 100
_COLUMNS = ", ".join(f'"{name}"' for name in ENTRY_FIELDS)
_SELECT = f"SELECT {_COLUMNS} FROM captures"
_NEWEST_FIRST = 'ORDER BY "at" DESC'


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
    documents: int
    """HTML answers with 200 of archives whose pages nobody has counted."""
    hosts: int
    first: int
    last: int
    pages: int = 0
    """Captured pages of our directories, as all faces count them."""


class Catalog:
    """Captures of output directories, which are looked at again while they grow, and of other files."""

    def __init__(self, scratch: Path, directories: Sequence[Path], foreign: Sequence[Container]) -> None:
        self._db = duckdb.connect(
            ":memory:", config={"memory_limit": "256MB", "threads": 2, "temp_directory": str(scratch)}
        )
        self._db.execute("SET enable_progress_bar = false")
        self._directories = directories
        self._intake = CatalogIntake(self._db, scratch, directories, foreign)

    def close(self) -> None:
        """Close the database."""
        self._db.close()

    def alike(self, url: str, at: int) -> list[Entry]:
        """The captures of a URL and of its other spellings in either scheme; of very many, complete and near ones."""
        self._intake.refresh()
        key = url_key(url)
        return [entry for rows in self._intake.sources for entry in rows.of_url(key, at)]

    def loosely_alike(self, url: str, at: int) -> list[Entry]:
        """The captures of URLs that may differ in the order of their arguments and in cache-busters."""
        self._intake.refresh()
        key = loose_url_key(url)
        return [entry for rows in self._intake.sources for entry in rows.of_loose_url(key, at)]

    def all_of(self, url: str, most: int = 500) -> list[Entry]:
        """The captures of a page, in either scheme and any spelling, oldest first; by HEAD if there are no others."""
        self._intake.refresh()
        key = url_key(url)
        found = [entry for rows in self._intake.sources for entry in rows.all_of_url(key)]
        same = sorted((one for one in found if spelled(one.url) == spelled(url)), key=lambda one: one.moment)
        return ([one for one in same if one.method == "GET"] or [one for one in same if one.method == "HEAD"])[:most]

    def elsewhere(self, url: str, path: str) -> list[Entry]:
        """Captures with the same path and query on other hosts."""
        return self._rows(
            f"{_SELECT} WHERE host <> $own AND whole AND ends_with(url, $path) {_NEWEST_FIRST} LIMIT 10",
            own=host_of(url), path=path,
        )  # fmt: skip

    def stored_with(self, digest: str, at: int) -> Entry | None:
        """The stored answer with a payload digest, complete if there is one, and nearest to a time."""
        key = key_of(digest)
        found = (entry for rows in self._intake.sources for entry in rows.of_payload(key, at) if entry.digest == digest)
        return min(found, key=lambda one: (not one.whole, abs(one.at - at), -one.at, one.record), default=None)

    def totals(self) -> CatalogTotals:
        """The sums."""
        self._intake.refresh()
        counted = {at: count for at, out in enumerate(self._directories) if (count := captured_pages(out)) is not None}
        pages = "count(*) FILTER (page AND NOT list_contains($counted, job))"
        sums = f'count(*), {pages}, count(DISTINCT host), coalesce(min("at"), 0), coalesce(max("at"), 0)'
        found: list[Any] = [*self._all(f"SELECT {sums} FROM captures", counted=list(counted))[0]]
        return structs.replace(CatalogTotals(*found), pages=sum(counted.values()))

    def start_pages(self) -> list[Entry]:
        """Captures of start URLs; where none are known, the first pages."""
        order = 'ORDER BY "at" LIMIT 50'
        return self._rows(f"{_SELECT} WHERE start AND whole AND page {order}") or self._rows(
            f"{_SELECT} WHERE whole AND page {order}"
        )

    def hosts(self) -> list[tuple[str, int]]:
        """The hosts with the most captures."""
        sql = "SELECT host, count(*) AS n FROM captures GROUP BY host ORDER BY n DESC, host LIMIT 12"
        return [(str(host), int(str(n))) for host, n in self._all(sql)]

    def search(self, wanted: Search) -> tuple[list[Entry], bool]:
        """One page of captures, newest first, and whether there are more."""
        self._intake.refresh()
        tests, values = _tests(wanted)
        found = self._rows(
            f"{_SELECT} WHERE {' AND '.join(tests) or 'true'} "
            f"{_NEWEST_FIRST}, url LIMIT {_PAGE + 1} OFFSET {wanted.page * _PAGE}",
            **values,
        )
        return found[:_PAGE], len(found) > _PAGE

    def _rows(self, sql: str, **values: object) -> list[Entry]:
        found = self._all(sql, **values)
        return [Entry(**dict(zip(ENTRY_FIELDS, row, strict=True))) for row in found]  # type: ignore[arg-type]

    def _all(self, sql: str, **values: object) -> list[tuple[object, ...]]:
        with self._db.cursor() as cursor:
            cursor.register("captures", self._intake.table)
            return cursor.execute(sql, values or None).fetchall()

    def container(self, place: int) -> Container:
        """The WARC file of an entry, where it is now."""
        found = self._intake.containers[place]
        if isinstance(found, WarcFile):
            path = found.path
            return Container(found.name, path, 0, path.stat().st_size, packed=True)
        return found


def _tests(wanted: Search) -> tuple[list[str], dict[str, object]]:
    status = f"{wanted.status}%" if wanted.status.isdigit() else ""
    given = {
        "q": ("contains(lower(url), lower($q))", wanted.q),
        "host": ("host = $host", wanted.host.lower()),
        "status": ("CAST(status AS VARCHAR) LIKE $status", status),
        "kind": ("contains(lower(kind), lower($kind))", wanted.type),
        "since": ('"at" >= $since', wanted.since),
        "until": ('"at" < $until', wanted.until),
    }
    asked = {name: one for name, one in given.items() if one[1] not in ("", None)}
    return [test for test, _ in asked.values()], {name: value for name, (_, value) in asked.items()}
