"""Gathering the files that an export hands on, and their rows: a snapshot of directories, also while a crawl writes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from muniment.archive.index.journal import CAPTURES, PARTS, entries, journal_path, names_in_parts
from muniment.archive.index.parquet import indexed_names
from muniment.archive.index.read import RowSource, batches, sources
from muniment.archive.names import OPEN_SUFFIX
from muniment.archive.names import SUFFIX as WARC_SUFFIX
from muniment.errors import ArchiveError

__all__ = ["ArchiveSnapshot", "WarcFile", "directory_of", "path_now", "row_sources", "snapshot"]

_BATCH = 10_000


class WarcFile(Struct, frozen=True):
    """A WARC file as an export hands it on."""

    directory: Path
    name: str
    """Its final name, in its directory."""
    length: int
    """Bytes that are whole: of an open file those that its row journal vouches for."""
    entry: str
    """The name that it is handed on by."""

    @property
    def path(self) -> Path:
        """Where it is now."""
        return path_now(self.directory, self.name)


def path_now(directory: Path, name: str) -> Path:
    """Where a WARC file is now: it may be sealed at any moment."""
    sealed, still_open = directory / name, directory / (name + OPEN_SUFFIX)
    return still_open if not sealed.exists() and still_open.exists() else sealed


class ArchiveSnapshot:
    """The files of directories at one moment, and the rows of the records in them."""

    def __init__(self, indexes: Sequence[Path], files: Iterable[WarcFile], missing: Sequence[Path]) -> None:
        self._indexes, self._missing = indexes, {(path.parent, path.name) for path in missing}
        self.files = sorted(files, key=lambda file: file.entry)
        """In the order of their entries."""

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The rows with a record in these files, `warc_file` being the entry; other columns as asked for.

        Raises ArchiveError when a file is missing, or when the index changed meanwhile.
        """
        for index in self._indexes:
            directory = directory_of(index)
            known = {file.name: file for file in self.files if file.directory == directory}
            for source in row_sources(index):
                for batch in batches(source, columns):
                    yield from self._kept(batch, directory, known)

    def _kept(self, batch: pa.RecordBatch, directory: Path, known: dict[str, WarcFile]) -> Iterator[pa.RecordBatch]:
        for start in range(0, batch.num_rows, _BATCH):
            part = batch.slice(start, _BATCH)
            names = part.column("warc_file")
            for name in filter(None, pc.unique(names).to_pylist()):
                if (directory, name) in self._missing:
                    raise ArchiveError(f"{directory / name}: missing, though the index lists captures in it")
            kept = self._within(part, known)
            if kept.num_rows:
                at = kept.schema.get_field_index("warc_file")
                entries_ = [known[str(name)].entry for name in kept.column(at).to_pylist()]
                yield kept.set_column(at, "warc_file", pa.array(entries_, pa.string()))

    @staticmethod
    def _within(part: pa.RecordBatch, known: dict[str, WarcFile]) -> pa.RecordBatch:
        """The rows whose record was whole at the moment of the snapshot."""
        names, ends = part.column("warc_file"), pc.add(part.column("warc_offset"), part.column("warc_length"))
        last = [known[name].length if name in known else -1 for name in names.to_pylist()]
        return part.filter(pc.less_equal(ends, pa.array(last, pa.int64())))


def snapshot(indexes: Sequence[Path]) -> ArchiveSnapshot:
    """The WARC files of output directories, and those beside index files."""
    found: list[tuple[Path, str, int]] = []
    missing: list[Path] = []
    for index in indexes:
        directory = directory_of(index)
        for name in sorted(_names(index)):
            length = _length(directory, name)
            if length is None:
                missing.append(directory / name)
            elif length:
                found.append((directory, name, length))
    return ArchiveSnapshot(indexes, _with_entries(found), missing)


def directory_of(index: Path) -> Path:
    """Where the WARC files of an index are."""
    return index if index.is_dir() else index.parent


def row_sources(index: Path) -> list[RowSource]:
    """The files that hold the rows of an index: of a directory several, perhaps."""
    return sources(index) if index.is_dir() else [RowSource("", index)]


def _names(index: Path) -> frozenset[str]:
    """The names of the files that an index knows. Parts are listed first: what is joined meanwhile is seen twice."""
    in_parts = names_in_parts(index / PARTS) if index.is_dir() else frozenset()
    captures = index / CAPTURES if index.is_dir() else index
    joined = indexed_names(captures) if captures.exists() else {}
    return in_parts | joined.keys()


def _length(directory: Path, name: str) -> int | None:
    """The length of what is whole; None for a file that is not there."""
    sealed, still_open = directory / name, directory / (name + OPEN_SUFFIX)
    for path in (sealed, still_open, sealed):  # it may be sealed in between
        try:
            size = path.stat().st_size
            return size if path is sealed else _vouched(journal_path(directory / PARTS, name), size)
        except FileNotFoundError:
            continue
    return None


def _vouched(journal: Path, size: int) -> int:
    length = 0
    for entry in entries(journal):
        if entry.warc_length <= size:
            length = entry.warc_length
    return length


def _with_entries(found: Sequence[tuple[Path, str, int]]) -> Iterator[WarcFile]:
    """Names as they are; where two directories have the same name, after the directory's name."""
    count = Counter(name for _, name, _ in found)
    taken = {name for name, number in count.items() if number == 1}
    for directory, name, length in found:
        entry = name
        if count[name] > 1:
            entry = _free(f"{directory.resolve().name or 'archive'}-{name}", taken)
        yield WarcFile(directory, name, length, entry)


def _free(wanted: str, taken: set[str]) -> str:
    stem, number, entry = wanted.removesuffix(WARC_SUFFIX), 1, wanted
    while entry in taken:
        number += 1
        entry = f"{stem}-{number}{WARC_SUFFIX}"
    taken.add(entry)
    return entry
