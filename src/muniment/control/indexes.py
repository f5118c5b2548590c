"""Finding the index: paths and patterns of a command line become one table of captures, flat in memory."""

from __future__ import annotations

import glob
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from muniment.archive.index.journal import SUFFIX
from muniment.archive.index.parquet import CAPTURES, SCHEMA, open_parquet
from muniment.archive.index.read import RowSource, batches, sources
from muniment.errors import ArchiveError, UsageError

if TYPE_CHECKING:
    import pyarrow.dataset as ds

__all__ = ["captures_under", "check_indexes", "paths_of"]

_PARQUET = frozenset({".parquet", ".pq"})


def paths_of(patterns: Sequence[str]) -> list[Path]:
    """The output directories and index files that the patterns name, each once; raises UsageError for no path."""
    found: dict[Path, Path] = {}
    for pattern in patterns:
        for path in _matches(pattern):
            found.setdefault(path.resolve(), path)
    # an index is part of its directory, which may have been named as well
    return [path for whole, path in found.items() if whole.name != CAPTURES or whole.parent not in found]


def _matches(pattern: str) -> list[Path]:
    path = Path(pattern)
    if path.is_dir() or (path.suffix in _PARQUET and path.exists()):
        return [path]
    if path.exists():
        raise UsageError(f"{pattern} is neither an output directory nor a captures.parquet")
    if not glob.has_magic(pattern):
        raise UsageError(f"{pattern} does not exist")
    found = map(Path, sorted(glob.glob(pattern, recursive=True)))  # noqa: PTH207 (Path.glob takes no absolute ones)
    matches = [path for path in found if path.is_dir() or path.suffix in _PARQUET]
    if not matches:
        raise UsageError(f"{pattern} matches no output directory and no captures.parquet")
    return matches


def captures_under(paths: Sequence[Path]) -> ds.Dataset:
    """All rows of directories (finished, running or crashed) and index files, read when they are asked for.

    Raises UsageError when there are none, ArchiveError for a file that is not an index.
    """
    import pyarrow.dataset as ds  # noqa: PLC0415  (half of the start of a command, and few need it)

    files: list[str] = []
    rest: list[pa.RecordBatch] = []
    for source in _present(paths):
        if source.path.name.endswith(SUFFIX):
            rest += batches(source)  # of an open WARC file alone
        else:
            files.append(str(source.path))
    parts = [ds.dataset(pa.Table.from_batches(rest, SCHEMA))] if rest else []
    return ds.dataset([*parts, *([ds.dataset(files, schema=SCHEMA, format="parquet")] if files else [])])


def check_indexes(paths: Sequence[Path]) -> None:
    """Raise UsageError when directories and index files have no captures, or one of them is not an archive's."""
    _present(paths)


def _present(paths: Sequence[Path]) -> list[RowSource]:
    found = list(_sources(paths))
    if not any(not source.path.name.endswith(SUFFIX) or next(batches(source), None) is not None for source in found):
        raise UsageError(f"no captures in {', '.join(map(str, paths))} yet")
    return found


def _sources(paths: Sequence[Path]) -> Iterator[RowSource]:
    for path in paths:
        found = sources(path) if path.is_dir() else [RowSource("", path)]
        for source in found:
            if not source.path.name.endswith(SUFFIX):
                try:
                    open_parquet(source.path).close()
                except FileNotFoundError:
                    raise ArchiveError(
                        f"{source.path}: the index changed while it was read; give the command again"
                    ) from None
                except ArchiveError as error:
                    raise UsageError(f"{path} is not a capture index: {error}") from None
            yield source
