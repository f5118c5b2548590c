"""Reading the index of a finished, running or crashed directory, without locks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
from msgspec import Struct

from muniment.archive.index.journal import PART_SUFFIX, PARTS, SUFFIX, journal_path
from muniment.archive.index.parquet import (
    CAPTURES,
    file_batches,
    journal_batches,
    merged_names,
    open_parquet,
    part_path,
)
from muniment.errors import ArchiveError

__all__ = ["RowSource", "batches", "rows", "sources"]


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


def batches(source: RowSource, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
    """The rows of one file, about ten thousand at a time; all columns unless some are named.

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
            yield from file_batches(file, columns)
    except FileNotFoundError as error:
        raise ArchiveError(f"{path.name}: the index changed while it was read; give the command again") from error
    except (pa.ArrowException, OSError) as error:
        raise ArchiveError(f"{path.name}: damaged: not all rows can be read") from error


def rows(out: Path, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
    """Every row of a directory, in batches; flat in memory."""
    for source in sources(out):
        yield from batches(source, columns)
