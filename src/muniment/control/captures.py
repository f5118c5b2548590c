"""Searching captures in the indexes of many directories: Parquet files, parts and journals, in one question."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from muniment.archive.index.journal import SUFFIX
from muniment.archive.index.parquet import SCHEMA
from muniment.archive.index.read import batches, sources
from muniment.archive.names import OPEN_SUFFIX
from muniment.archive.names import SUFFIX as WARC_SUFFIX
from muniment.archive.warc.inflate import DamageError
from muniment.archive.warc.stored import member_pieces, read_message, read_record
from muniment.errors import ArchiveError, NotFoundError, TrackerError
from muniment.model.capture import LISTED_AGAIN
from muniment.model.network.captures import PER_PAGE, CaptureFilter, CaptureRow, TimeBucket

__all__ = [
    "capture_count",
    "host_sums",
    "payload_of",
    "recent_urls",
    "record_of",
    "search_captures",
    "stored_pieces",
    "time_buckets",
]

_READS = 3
"""A crawl joins its index now and then: what was listed is then gone, and is listed again."""
_COLUMNS = (
    "url", "host", "status", "fetched_at", "content_type", "body_length", "error", "warc_file", "warc_offset",
    "record_type", "attempt", "duration_ms",
)  # fmt: skip
_MOST_BUCKETS = 60


def search_captures(directories: Sequence[tuple[int, Path]], wanted: CaptureFilter) -> list[CaptureRow]:
    """The newest captures that fit, a page of them and one more; raises UsageError for an invalid status.

    Directories come with the numbers of their jobs, of which one may have several.
    """
    clauses, values = _conditions(wanted)
    sql = (
        f"SELECT job, {', '.join(_COLUMNS)} FROM captures WHERE {' AND '.join(clauses)} "
        "ORDER BY fetched_at DESC, url LIMIT ? OFFSET ?"
    )
    found = _asked(directories, sql, *values, PER_PAGE + 1, wanted.page * PER_PAGE)
    return [CaptureRow(*row) for row in found]


def _conditions(wanted: CaptureFilter) -> tuple[list[str], list[object]]:
    clauses: list[str] = ["found_as <> ?"]
    values: list[object] = [LISTED_AGAIN]
    given: list[tuple[str, Any]] = [
        ("contains(url, ?)", wanted.q),
        ("host = ?", wanted.host.lower()),
        ("status BETWEEN ? AND ?", wanted.statuses()),
        ("starts_with(lower(content_type), ?)", wanted.type.lower()),
        ("starts_with(error, ?)", wanted.error),
        ("fetched_at >= ?", wanted.since),
        ("fetched_at < ?", wanted.until),
    ]
    for clause, value in given:
        if value not in (None, ""):
            clauses.append(clause)
            values += value if isinstance(value, tuple) else (value,)
    return clauses, values


def capture_count(out: Path) -> int:
    """How many rows the index of a directory has."""
    return int(_asked([(0, out)], "SELECT count(*) FROM captures")[0][0])


def recent_urls(out: Path, most: int) -> list[str]:
    """The URLs of the last captures."""
    return [
        str(row[0]) for row in _asked([(0, out)], "SELECT url FROM captures ORDER BY fetched_at DESC LIMIT ?", most)
    ]


def time_buckets(out: Path) -> tuple[int, list[TimeBucket]]:
    """What came in, over time: the length of a bucket in ms, and sums by bucket, class of status and host.

    Hosts are the five with most rows; the others are one, without a name.
    """
    [(first, last)] = _asked([(0, out)], "SELECT min(fetched_at), max(fetched_at) FROM captures")
    if first is None:
        return 0, []
    span = max(1000, -(-(last - first + 1) // _MOST_BUCKETS))
    sql = """
        WITH most AS (SELECT host FROM captures GROUP BY host ORDER BY count(*) DESC, host LIMIT 5)
        SELECT (fetched_at - ?) // ? AS bucket, least(status // 100, 6) AS class,
            CASE WHEN host IN (SELECT host FROM most) THEN host ELSE '' END AS named, count(*)
        FROM captures GROUP BY bucket, class, named ORDER BY bucket
    """
    found = _asked([(0, out)], sql, first, span)
    return span, [TimeBucket(first + int(bucket) * span, int(kind), host, count) for bucket, kind, host, count in found]


def host_sums(out: Path, names: Sequence[str]) -> dict[str, tuple[int, int]]:
    """How many rows hosts have, and how many of these have an error or a status from 400 on."""
    sql = (
        "SELECT host, count(*), count(*) FILTER (error <> '' OR status >= 400) FROM captures "
        "WHERE host IN (SELECT unnest(?)) GROUP BY host"
    )
    return {str(host): (int(rows), int(bad)) for host, rows, bad in _asked([(0, out)], sql, list(names))}


def _asked(directories: Sequence[tuple[int, Path]], sql: str, *values: object) -> list[tuple[Any, ...]]:
    for turn in range(_READS):
        try:
            with _opened(directories) as db:
                return db.execute(sql, values or None).fetchall()
        except (ArchiveError, OSError, duckdb.IOException) as error:
            if turn == _READS - 1:
                raise TrackerError(
                    f"the index cannot be read: {str(error).splitlines()[0]}; look again in a moment"
                ) from error
        except duckdb.Error as error:
            raise TrackerError(
                f"the index cannot be searched: {str(error).splitlines()[0]}; make the search narrower"
            ) from error
    return []


@contextmanager
def _opened(directories: Sequence[tuple[int, Path]]) -> Iterator[duckdb.DuckDBPyConnection]:
    """A database with one view of all rows."""
    files: list[tuple[str, int]] = []
    rest: list[pa.Table] = []
    for number, out in directories:
        for source in sources(out):
            if not source.path.name.endswith(SUFFIX):
                files.append((str(source.path), number))
            elif rows := list(batches(source)):  # of an open WARC file alone
                table = pa.Table.from_batches(rows, SCHEMA)
                rest.append(table.append_column("job", pa.array([number] * len(table), pa.int32())))
    names = (*_COLUMNS, "found_as")
    with duckdb.connect(config={"threads": 2, "memory_limit": "512MB"}) as db:
        db.execute("SET enable_progress_bar = false")
        parts = []
        if files:
            numbers = pa.table(
                {"path": [path for path, _ in files], "job": pa.array([n for _, n in files], pa.int32())}
            )
            db.register("numbers", numbers)
            listed = ", ".join(_quoted(path) for path, _ in files)
            parts.append(
                f"SELECT n.job, {', '.join(f'c.{name}' for name in names)} "
                f"FROM read_parquet([{listed}], filename = true, union_by_name = true) c "
                "JOIN numbers n ON n.path = c.filename"
            )
        db.register("open_rows", pa.concat_tables(rest) if rest else _EMPTY)
        parts.append(f"SELECT job, {', '.join(names)} FROM open_rows")
        db.execute(f"CREATE TEMP VIEW captures AS {' UNION ALL '.join(parts)}")
        yield db


def _quoted(path: str) -> str:
    """The path of a file as a text of SQL in which nothing is a pattern."""
    return "'" + re.sub(r"[*?\[]", r"[\g<0>]", path).replace("'", "''") + "'"


_EMPTY = SCHEMA.empty_table().append_column("job", pa.array([], pa.int32()))


# -- bytes


def record_of(out: Path, file: str, offset: int) -> Iterator[bytes]:
    """The record at a place of a WARC file, as it is stored; raises NotFoundError."""
    return _whole(stored_pieces(out, file, offset))


def payload_of(out: Path, file: str, offset: int) -> Iterator[bytes]:
    """The payload of the response at a place: without transfer coding, content coding kept; raises NotFoundError."""
    try:
        _, block = read_record(stored_pieces(out, file, offset))
        _, payload = read_message(block)
    except (DamageError, OSError) as error:
        raise NotFoundError(f"the record at {offset} of {file} cannot be read: {error}") from None
    return _whole(payload)


def stored_pieces(out: Path, file: str, offset: int) -> Iterator[bytes]:
    """A WARC file from a place on, in pieces; raises NotFoundError when it has no such place."""
    if "/" in file or "\0" in file or not file.endswith(WARC_SUFFIX) or file.startswith("."):
        raise NotFoundError(f"{file[:100]!r} is not a WARC file of this job")
    path = out / file
    if not path.exists():
        path = path.with_name(file + OPEN_SUFFIX)
    try:
        if not 0 <= offset < path.stat().st_size:
            raise NotFoundError(f"there is no record at {offset} of {file}")
    except OSError as error:
        raise NotFoundError(f"{file} cannot be read: {error.strerror}") from None
    return member_pieces(path, offset)


def _whole(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Pieces up to where the record is damaged: what was sent before cannot be taken back."""
    try:
        yield from pieces
    except (DamageError, OSError):
        return
