"""Files that survive a crash: growing files with a synced length, and renames that are on the disk when they return."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from pathlib import Path

from muniment.disk import rename_new, sync, sync_data, sync_directory
from muniment.errors import ArchiveError, DiskFullError
from muniment.model.failure import NO_ROOM, Failure, advice

__all__ = [
    "GrowingFile",
    "archive_error",
    "body_error",
    "remove",
    "rename",
    "scratch_error",
    "seal",
    "sync_path",
    "taken",
]

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
_FLUSH_AT = 4 << 20
_MOST_AT_ONCE = 1024
"""Parts that one writev(2) takes, on every system (IOV_MAX)."""


def archive_error(error: OSError, path: Path) -> ArchiveError:
    """The error of our tree for what the operating system said about a file."""
    kind = DiskFullError if error.errno in _FULL else ArchiveError
    return kind(f"{path.name}: {error.strerror or error}{advice(error.errno)}")


def scratch_error(error: OSError, directory: Path | str) -> ArchiveError:
    """The error of our tree for a temporary file that could not be written."""
    kind = DiskFullError if error.errno in _FULL else ArchiveError
    return kind(f"{directory}: {error.strerror or error}; set TMPDIR to a disk with more room")


def body_error(failure: Failure) -> ArchiveError:
    """The error of our tree for a large body that could not be kept."""
    if failure == NO_ROOM:
        return DiskFullError(f"a large body: {failure.text}")
    return ArchiveError(f"a large body: {failure.text}{advice(errno.EIO)}")


def sync_path(path: Path) -> None:
    """Make the bytes of a closed file durable."""
    fd = os.open(path, os.O_RDONLY)
    try:
        sync(fd)
    finally:
        os.close(fd)


def rename(source: Path, target: Path) -> None:
    """Rename within one directory, replacing what is there, durable on return."""
    source.replace(target)
    sync_directory(target.parent)


def seal(source: Path, target: Path) -> None:
    """Give a file its final name, durable on return. Raises ArchiveError, and changes nothing, when it is taken."""
    try:
        rename_new(source, target)
    except FileExistsError:
        raise taken(source, target) from None
    sync_directory(target.parent)


def taken(source: Path, target: Path) -> ArchiveError:
    """The error for a file whose final name another one has."""
    return ArchiveError(
        f"{target.name} exists already and is not replaced: the captures are in {source.name}; move "
        f"{target.name} away and give the same command again"
    )


def remove(path: Path) -> None:
    """Remove a file, which may be gone already; durable on return."""
    path.unlink(missing_ok=True)
    sync_directory(path.parent)


class GrowingFile:
    """A new file that is only appended to, buffered; when a write fails, its owner cuts it back to what it vouches for.

    Not safe for two threads at once; every method may block. An `OSError` never leaves it: it is raised as
    `DiskFullError` or `ArchiveError`.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.length = 0
        """Bytes appended, those still in the buffer included."""
        self.synced = 0
        """Bytes known to be on the disk."""
        self._pending: list[bytes] = []
        self._written = 0
        try:
            self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise archive_error(error, path) from error

    def append(self, data: bytes) -> None:
        """Add bytes at the end; they reach the file when the buffer is full, or at `sync`."""
        self._pending.append(data)
        self.length += len(data)
        if self.length - self._written >= _FLUSH_AT:
            self._guarded(sync=False)

    def sync(self) -> None:
        """Write what is in the buffer and wait until the disk has it; cheap when nothing was added."""
        if self.length != self.synced:
            self._guarded(sync=True)
            self.synced = self.length

    def cut(self, length: int) -> None:
        """Forget everything after `length`, in the buffer and in the file; a file that cannot be cut is closed."""
        if length < self._written:
            self._truncate(length)
            self._written = length
            self._pending.clear()
        elif length < self.length:
            kept = b"".join(self._pending)[: length - self._written]
            self._pending = [kept]
        self.length = length
        self.synced = min(self.synced, length)

    def close(self) -> None:
        """Give back the descriptor without writing anything more; safe to call twice."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _truncate(self, length: int) -> None:
        try:
            os.ftruncate(self._fd, length)
            os.lseek(self._fd, length, os.SEEK_SET)
        except OSError as error:
            self.close()
            raise archive_error(error, self.path) from error

    def _guarded(self, *, sync: bool) -> None:
        try:
            self._flush()
            if sync:
                sync_data(self._fd)
        except OSError as error:
            raise archive_error(error, self.path) from error

    def _flush(self) -> None:
        pending, self._pending = self._pending, []
        for start in range(0, len(pending), _MOST_AT_ONCE):
            self._write_all(pending[start : start + _MOST_AT_ONCE])

    def _write_all(self, parts: Sequence[bytes]) -> None:
        """Write parts as they are, without putting them together first; what a short write left is."""
        left = sum(map(len, parts))
        count = os.writev(self._fd, parts)
        self._written += count
        if count == left:
            return
        rest = memoryview(b"".join(parts))[count:]
        while rest:
            count = os.write(self._fd, rest)
            self._written += count
            rest = rest[count:]
