"""`inspect`: what a directory holds, in numbers. Reads finished, running and crashed ones."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import duckdb
import pyarrow as pa
from msgspec import Struct

from muniment.archive.read import rows
from muniment.errors import UsageError
from muniment.model.capture import Capture

__all__ = ["HostTotal", "Inspection", "inspect_paths"]


class HostTotal(Struct, frozen=True):
    """What one host gave."""

    host: str
    captures: int
    payload_bytes: int


class Inspection(Struct, frozen=True, kw_only=True):
    """The index in numbers."""

    rows: int
    complete: int
    revisits: int
    unchanged: int
    """Captures that are what the seed list knows of them; most are among the revisits."""
    payload_bytes: int
    stored_bytes: int
    first_ms: int
    last_ms: int
    statuses: tuple[tuple[int, int], ...]
    """(status, rows), most first; 0 is no response."""
    errors: tuple[tuple[str, int], ...]
    """(code, rows), most first."""
    types: tuple[tuple[str, int], ...]
    hosts: tuple[HostTotal, ...]
    sample: tuple[tuple[int, int, str, str], ...]
    """(status, payload bytes, URL, error) of the last rows."""


def inspect_paths(paths: Sequence[Path], sample: int, hosts: int = 10) -> Inspection:
    """Sum up output directories and index files."""
    with duckdb.connect() as connection:
        connection.register("captures", _reader(paths))
        connection.execute("CREATE TEMP TABLE c AS SELECT * FROM captures")
        return _inspect(connection, sample, hosts)


def _reader(paths: Sequence[Path]) -> pa.RecordBatchReader:
    batches = [batch for path in paths for batch in _batches(path)]
    if not batches:
        raise UsageError(f"no captures in {', '.join(map(str, paths))} yet")
    return pa.RecordBatchReader.from_batches(batches[0].schema, batches)


def _batches(path: Path) -> list[pa.RecordBatch]:
    if path.is_dir():
        return list(rows(path))
    if path.suffix in {".parquet", ".pq"}:
        import pyarrow.parquet as pq  # noqa: PLC0415  (needed for single files only)

        try:
            return list(pq.read_table(path, columns=list(Capture.__struct_fields__)).to_batches())
        except (OSError, KeyError, pa.ArrowInvalid) as error:
            raise UsageError(f"{path} is no capture index: {str(error).partition(chr(10))[0]}") from None
    raise UsageError(f"{path} is neither an output directory nor a captures.parquet")


def _inspect(db: duckdb.DuckDBPyConnection, sample: int, hosts: int) -> Inspection:
    def pairs(sql: str) -> tuple[tuple[object, ...], ...]:
        return tuple(db.execute(sql).fetchall())

    total, complete, revisits, unchanged, payload, stored, first, last = db.execute(
        "SELECT count(*), count(*) FILTER (error = ''), count(*) FILTER (record_type = 'revisit'), "
        "count(*) FILTER (unchanged), "
        "coalesce(sum(body_length), 0)::BIGINT, coalesce(sum(warc_length), 0)::BIGINT, "
        "coalesce(min(fetched_at), 0), coalesce(max(fetched_at), 0) FROM c"
    ).fetchall()[0]
    return Inspection(
        rows=total,
        complete=complete,
        revisits=revisits,
        unchanged=unchanged,
        payload_bytes=payload,
        stored_bytes=stored,
        first_ms=first,
        last_ms=last,
        statuses=pairs("SELECT status, count(*) AS n FROM c GROUP BY status ORDER BY n DESC, status"),  # type: ignore[arg-type]
        errors=pairs(
            "SELECT split_part(error, ':', 1) AS code, count(*) AS n FROM c WHERE error <> '' "
            "GROUP BY code ORDER BY n DESC, code"
        ),  # type: ignore[arg-type]
        types=pairs(
            "SELECT lower(trim(split_part(content_type, ';', 1))) AS t, count(*) AS n FROM c WHERE status > 0 "
            "GROUP BY t ORDER BY n DESC LIMIT 10"
        ),  # type: ignore[arg-type]
        hosts=tuple(
            HostTotal(*row)
            for row in db.execute(
                "SELECT host, count(*) AS n, sum(body_length)::BIGINT FROM c "
                "GROUP BY host ORDER BY n DESC, host LIMIT ?",
                [hosts],
            ).fetchall()
        ),
        sample=tuple(
            db.execute(
                "SELECT status, body_length, url, error FROM c ORDER BY fetched_at DESC LIMIT ?", [sample]
            ).fetchall()
        ),
    )
