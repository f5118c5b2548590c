"""Reading the tables of hooks, and holding the files that hooks left against them."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from muniment.archive.hooks.tables import HOOK_FILES, HOOKS
from muniment.errors import ArchiveError

__all__ = ["changed_files", "file_pieces", "file_rows", "hook_rows"]

_PIECE = 1 << 20
_AS_IT_IS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def hook_rows(out: Path, url: str | None = None) -> Iterator[dict[str, Any]]:
    """The tries of a directory, or of a page; none where no hook has run. Raises ArchiveError for a damaged table."""
    yield from _rows(out / HOOKS, "url", url)


def file_rows(out: Path, column: str, value: str) -> Iterator[dict[str, Any]]:
    """The files that hooks left which have a value in a column: of a page, or at a path. Raises ArchiveError."""
    yield from _rows(out / HOOK_FILES, column, value)


def file_pieces(out: Path, path: str) -> Iterator[bytes]:
    """The bytes of a file that hooks left; raises OSError for what is not a file within the directory."""
    place = (out / path).resolve(strict=True)
    if not place.is_relative_to(out.resolve()):
        raise FileNotFoundError(errno.ENOENT, "not in the directory", path)
    descriptor = os.open(place, _AS_IT_IS)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise FileNotFoundError(errno.ENOENT, "not a file", path)
    return _pieces(descriptor)


def _pieces(descriptor: int) -> Iterator[bytes]:
    with os.fdopen(descriptor, "rb") as file:
        while piece := file.read(_PIECE):
            yield piece


def changed_files(out: Path) -> Iterator[tuple[str, str]]:
    """Files that hooks left and that are missing or have other bytes by now: path and what is wrong."""
    for row in _rows(out / HOOK_FILES):
        if "\\x" not in row["path"] and (wrong := _wrong(out / row["path"], row)):
            yield row["path"], wrong


def _rows(path: Path, column: str = "", value: str | None = None) -> Iterator[dict[str, Any]]:
    if not path.exists():
        return
    try:
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches():
                wanted = batch if value is None else batch.filter(pc.equal(batch.column(column), pa.scalar(value)))
                yield from wanted.to_pylist()
    except (pa.ArrowException, OSError) as error:
        raise ArchiveError(f"{path.name}: damaged: not all rows can be read") from error


def _wrong(path: Path, row: dict[str, Any]) -> str:
    try:
        if row["link"]:
            return "" if os.readlink(path) == row["link"] else "leads elsewhere"  # noqa: PTH115  (as it is written)
        descriptor = os.open(path, _AS_IT_IS)
    except OSError:
        return "missing"
    with os.fdopen(descriptor, "rb") as file, suppress(OSError):
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            digest = hashlib.sha256()
            while piece := file.read(_PIECE):
                digest.update(piece)
            return "" if digest.hexdigest() == row["sha256"] else "has other bytes"
    return "cannot be read"
