"""The catalogue of what is replayed: one row for each capture, in a temporary database, kept up with running crawls."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import duckdb
from msgspec import Struct

from muniment.archive.export.gather import WarcFile
from muniment.archive.reading.containers import Container
from muniment.model.url import host_of
from muniment.replay.intake import CatalogIntake

__all__ = ["Catalog", "CatalogTotals", "Entry", "Search"]

_PAGE = 100
_FIELDS = "url, taken, status, kind, digest, type, whole, page, redirect, place, pos"
_SELECT = f"SELECT {_FIELDS} FROM captures"
_EXACT = "exact = exact_key($url) AND rest(url) = rest($url)"
_LOOSE = "path = path_key($url) AND arguments(url) = arguments($url)"
_STORED = "type = 'response' AND status <> 304"
_NEWEST = 1 << 62


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
        self._db = duckdb.connect(str(scratch / "catalog.duckdb"), config={"memory_limit": "256MB", "threads": 2})
        self._db.execute("SET enable_progress_bar = false")
        self._intake = CatalogIntake(self._db, directories, foreign)

    def close(self) -> None:
        """Close the database."""
        self._db.close()

    def nearest(self, url: str, at: int | None) -> tuple[Entry | None, bool]:
        """The capture of a URL nearest to a time (the newest without one), and whether it was matched loosely.

        Complete captures go before others, then the URL's own scheme.
        """
        self._intake.refresh()
        for test in (_EXACT, _LOOSE):
            order = "ORDER BY NOT whole, abs(taken - $at), url <> $url, taken DESC, place, pos LIMIT 1"
            if found := self._rows(f"{_SELECT} WHERE {test} {order}", url=url, at=at if at is not None else _NEWEST):
                return found[0], test == _LOOSE
        return None, False

    def entry(self, place: int, offset: int, at: int) -> Entry | None:
        """The capture at a place."""
        sql = f"{_SELECT} WHERE taken = $at AND place = $place AND pos = $offset LIMIT 1"
        found = self._rows(sql, at=at, place=place, offset=offset)
        return found[0] if found else None

    def all_of(self, url: str, most: int = 500) -> list[Entry]:
        """The captures of a URL in either scheme, oldest first."""
        self._intake.refresh()
        return self._rows(f"{_SELECT} WHERE {_EXACT} ORDER BY taken LIMIT {most}", url=url)

    def elsewhere(self, url: str, path: str) -> list[Entry]:
        """Captures with the same path and query on other hosts."""
        return self._rows(
            f"{_SELECT} WHERE host <> $own AND whole AND ends_with(url, $path) ORDER BY taken DESC LIMIT 10",
            own=host_of(url), path=path,
        )  # fmt: skip

    def original(self, digest: str, at: int) -> Entry | None:
        """The stored response with a payload digest, nearest to a time."""
        if not digest:
            return None
        order = "ORDER BY abs(taken - $at), taken DESC, place, pos LIMIT 1"
        found = self._rows(f"{_SELECT} WHERE digest = $digest AND {_STORED} {order}", digest=digest, at=at)
        return found[0] if found else None

    def earlier(self, url: str, at: int | None, before: int) -> Entry | None:
        """The stored response of a URL that a revisit names: at its date, or the nearest one before."""
        order = "ORDER BY NOT whole, taken > $before, abs(taken - $near), place, pos LIMIT 1"
        near = before if at is None else at
        found = self._rows(f"{_SELECT} WHERE {_EXACT} AND {_STORED} {order}", url=url, before=before, near=near)
        return found[0] if found else None

    def totals(self) -> CatalogTotals:
        """The sums."""
        self._intake.refresh()
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
        self._intake.refresh()
        tests, values = _tests(wanted)
        found = self._rows(
            f"{_SELECT} WHERE {' AND '.join(tests) or 'true'} "
            f"ORDER BY taken DESC, url LIMIT {_PAGE + 1} OFFSET {wanted.page * _PAGE}",
            **values,
        )
        return found[:_PAGE], len(found) > _PAGE

    def _rows(self, sql: str, **values: object) -> list[Entry]:
        return [Entry(*row) for row in self._all(sql, **values)]  # type: ignore[arg-type]

    def _all(self, sql: str, **values: object) -> list[tuple[object, ...]]:
        with self._db.cursor() as cursor:
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
        "since": ("taken >= $since", wanted.since),
        "until": ("taken < $until", wanted.until),
    }
    asked = {name: one for name, one in given.items() if one[1] not in ("", None)}
    return [test for test, _ in asked.values()], {name: value for name, (_, value) in asked.items()}
