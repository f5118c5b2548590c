"""The disk: what is synced is there after a power cut, and a new name never replaces another file, on every system."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
from collections.abc import Callable
from pathlib import Path

__all__ = ["rename_new", "sync", "sync_data", "sync_directory"]

_THROUGH = getattr(fcntl, "F_FULLFSYNC", None)
"""On macOS fsync(2) leaves what was written in the disk's own memory; this call empties that, too."""

_HERE = -100
_NOT_OVER_ANOTHER = 1
_NOT_OVER_ANOTHER_MACOS = 4
_UNABLE = frozenset({errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP, errno.ENOTSUP})


def _exclusive_rename() -> Callable[[bytes, bytes], int] | None:
    """The system's call that renames only to a name that is free; Python has none."""
    system = ctypes.CDLL(None, use_errno=True)
    if (linux := getattr(system, "renameat2", None)) is not None:
        return lambda source, target: int(linux(_HERE, source, _HERE, target, _NOT_OVER_ANOTHER))
    if (macos := getattr(system, "renamex_np", None)) is not None:
        return lambda source, target: int(macos(source, target, _NOT_OVER_ANOTHER_MACOS))
    return None


_rename_exclusively = _exclusive_rename()


def rename_new(source: Path, target: Path) -> None:
    """Give a file a name that no other has; raises FileExistsError, or another OSError, and then changes nothing.

    Where the filesystem cannot check and rename in one step, another writer may come in between.
    """
    if _rename_exclusively is not None:
        if not _rename_exclusively(os.fsencode(source), os.fsencode(target)):
            return
        number = ctypes.get_errno()
        if number not in _UNABLE:
            raise OSError(number, os.strerror(number), str(source), None, str(target))
    if os.path.lexists(target):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target))
    source.rename(target)


def sync(descriptor: int) -> None:
    """Wait until the disk has the bytes of a file, or the names of a directory. Raises OSError."""
    if _THROUGH is None or not _synced_through(descriptor, _THROUGH):
        os.fsync(descriptor)


def sync_data(descriptor: int) -> None:
    """As `sync`, without metadata that is not needed to read the bytes again, such as the time of the change."""
    if _THROUGH is None or not _synced_through(descriptor, _THROUGH):
        getattr(os, "fdatasync", os.fsync)(descriptor)


def sync_directory(path: Path) -> None:
    """Make the names in a directory durable (fsync(2): a file's own sync does not cover its name)."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        sync(fd)
    finally:
        os.close(fd)


def _synced_through(descriptor: int, call: int) -> bool:
    """Whether the filesystem took the call: that of another machine may not. What fails is then said by fsync."""
    try:
        fcntl.fcntl(descriptor, call)
    except OSError:
        return False
    return True
