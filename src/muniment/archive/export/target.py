"""The target of an export: written beside its place, synced, and renamed there once it is whole."""

from __future__ import annotations

import glob
import gzip
import hashlib
import json
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Protocol

from msgspec import Struct

from muniment.archive.durable import archive_error, sync_path
from muniment.disk import sync_directory

__all__ = ["BlockWriter", "FileSums", "TextWriter", "export_to", "export_whole"]

_SUFFIX = ".exporting"
_BLOCK = 3000
"""Lines in a gzip member of a compressed index."""


class FileSums(Struct, frozen=True):
    """The sums of a written file: its size, and its SHA-256 in lower-case hex."""

    bytes: int
    sha256: str


class TextWriter(Protocol):
    """Takes the lines of a file."""

    def write(self, line: str) -> None:
        """Add a line, its end included."""

    def close(self) -> FileSums:
        """Finish the file."""


class _Counted:
    """Bytes on their way to a file, counted and digested."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self._digest, self.length = file, hashlib.sha256(), 0

    def write(self, data: bytes) -> None:
        self._file.write(data)
        self._digest.update(data)
        self.length += len(data)

    def sums(self) -> FileSums:
        self._file.flush()
        return FileSums(self.length, self._digest.hexdigest())


class LineWriter:
    """Lines as they are."""

    def __init__(self, file: IO[bytes]) -> None:
        self._to = _Counted(file)

    def write(self, line: str) -> None:
        """Add a line, its end included."""
        self._to.write(line.encode())

    def close(self) -> FileSums:
        """Finish the file."""
        return self._to.sums()


class BlockWriter:
    """Lines in gzip members of 3,000, and an index of these by the first line of each."""

    def __init__(self, file: IO[bytes], index: IO[bytes], name: str) -> None:
        self._to, self._index, self._lines = _Counted(file), index, list[str]()
        index.write(f"!meta 0 {json.dumps({'format': 'cdxj-gzip-1.0', 'filename': name})}\n".encode())

    def write(self, line: str) -> None:
        """Add a line, its end included."""
        self._lines.append(line)
        if len(self._lines) == _BLOCK:
            self._flush()

    def _flush(self) -> None:
        if not self._lines:
            return
        member = gzip.compress("".join(self._lines).encode(), 6, mtime=0)
        key = " ".join(self._lines[0].split(" ", 2)[:2])
        where = {"offset": self._to.length, "length": len(member)}
        self._index.write(f"{key} {json.dumps(where)}\n".encode())
        self._to.write(member)
        self._lines.clear()

    def close(self) -> FileSums:
        """Finish the file."""
        self._flush()
        return self._to.sums()


@contextmanager
def export_to(file: str) -> Iterator[TextWriter]:
    """Write the lines of a file, standard output for `-`; the file is there, whole, when the context ends.

    A name with the ending .gz gets lines in compressed blocks, and the index of these beside it (`FILE.idx`). When
    the context fails, what was there before is there still. Raises ArchiveError and DiskFullError.
    """
    if file == "-":
        yield LineWriter(sys.stdout.buffer)
        sys.stdout.buffer.flush()
        return
    path = Path(file)
    with _in_place_of([path, path.with_name(path.name + ".idx")] if path.suffix == ".gz" else [path]) as made:
        yield from _written(path, made)


@contextmanager
def export_whole(file: str) -> Iterator[IO[bytes]]:
    """Write a file that can be read and sought meanwhile; it is there, whole, when the context ends.

    When the context fails, what was there before is there still. Raises ArchiveError and DiskFullError.
    """
    with _in_place_of([Path(file)]) as made, made[0].open("x+b") as opened:
        yield opened


@contextmanager
def _in_place_of(wanted: Sequence[Path]) -> Iterator[list[Path]]:
    """Names beside files, which take their places once they are written and synced."""
    made = [one.with_name(f".{one.name}.{os.getpid()}{_SUFFIX}") for one in wanted]
    try:
        for one in wanted:
            _remove_left_behind(one)
        yield made
        for one in made:
            sync_path(one)
        for source, target in zip(made, wanted, strict=True):
            source.replace(target)
        sync_directory(wanted[0].absolute().parent)
    except OSError as error:
        raise archive_error(error, wanted[0]) from error
    finally:
        for one in made:
            one.unlink(missing_ok=True)


def _remove_left_behind(target: Path) -> None:
    """Remove what exports to the same file left that were killed."""
    for path in target.parent.glob(f".{glob.escape(target.name)}.*{_SUFFIX}"):
        number = path.name.removesuffix(_SUFFIX).rpartition(".")[2]
        if number.isdigit() and not Path(f"/proc/{number}").exists():
            path.unlink(missing_ok=True)


def _written(path: Path, made: Sequence[Path]) -> Iterator[TextWriter]:
    with made[0].open("xb") as file:
        if len(made) == 1:
            yield LineWriter(file)
            return
        with made[1].open("xb") as index:
            yield BlockWriter(file, index, path.name)
