"""Reading the index of a finished, running or crashed directory, without locks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from msgspec import Struct

from muniment.archive.index.journal import PART_SUFFIX, PARTS, SUFFIX, journal_path
from muniment.archive.index.parquet import (
    CAPTURES,
    file_batches,
    groups_with,
    journal_batches,
    merged_names,
    open_parquet,
    part_path,
)
from muniment.errors import ArchiveError

__all__ = ["RowSource", "batches", "rows", "rows_with", "sources"]


class RowSource(Struct, frozen=True):
    """One file of the index."""

    name: str
    """The WARC whose rows it holds, or the empty string for `captures.parquet`, which holds many."""
    path: Path


def sources(out: Path) -> list[RowSource]:
    """The files that together hold every row of a directory exactly once, at this moment."""
    captures, parts = out / CAPTURES, out / PARTS
    found: list[RowSource] = []
    seen: set[str] = set()
    if captures.exists():
        seen |= merged_names(captures)
        found.append(RowSource("", captures))
    # Journals are listed before parts: one that turns into a part in between is then seen at least once.
    names = {path.name.removesuffix(SUFFIX) for path in parts.glob("*" + SUFFIX)}
    done = {path.name.removesuffix(PART_SUFFIX) for path in parts.glob("*" + PART_SUFFIX)}
    found += [RowSource(name, part_path(parts, name)) for name in sorted(done - seen)]
    found += [RowSource(name, journal_path(parts, name)) for name in sorted(names - done - seen)]
    return found


def batches(
    source: RowSource, columns: Sequence[str] | None = None, having: tuple[str, Sequence[str]] | None = None
) -> Iterator[pa.RecordBatch]:
    """The rows of one file, about ten thousand at a time; all columns unless some are named.

    With a column and values of it, rows far from those that have one may be left out.

    Raises `ArchiveError` when the file went into a join since it was listed, or is damaged.
    """
    if source.path.name.endswith(SUFFIX) and source.path.exists():
        for batch in journal_batches(source.path):
            yield batch.select(list(columns)) if columns is not None else batch
        return
    path = source.path
    if path.name.endswith(SUFFIX):
        path = part_path(path.parent, source.name)  # it was sealed and indexed meanwhile: the same rows, and the last
    try:
        with open_parquet(path) as file:
            yield from file_batches(file, columns, groups_with(file, *having) if having else None)
    except FileNotFoundError as error:
        raise ArchiveError(f"{path.name}: the index changed while it was read; give the command again") from error
    except (pa.ArrowException, OSError) as error:
        raise ArchiveError(f"{path.name}: damaged: not all rows can be read") from error


def rows(out: Path, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
    """Every row of a directory, in batches; flat in memory."""
    for source in sources(out):
        yield from batches(source, columns)


def rows_with(out: Path, column: str, values: Sequence[str], columns: Sequence[str]) -> Iterator[dict[str, Any]]:
    """The rows of a directory that have one of some values in a column; of most others that column alone is read."""
    import pyarrow.compute as pc  # noqa: PLC0415  (slow to import, and for whole tables not needed)

    for source in sources(out):
        for batch in batches(source, columns, (column, values)):
            yield from batch.filter(pc.is_in(batch.column(column), value_set=pa.array(values))).to_pylist()
