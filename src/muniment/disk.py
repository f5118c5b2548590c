"""The disk: what is synced is there after a power cut, and what gets a name takes it from nobody."""

from __future__ import annotations

import ctypes
import errno
import os
from pathlib import Path

__all__ = ["rename_new", "sync", "sync_data", "sync_directory"]

_HERE = -100
_NOT_OVER_ANOTHER = 1
_UNABLE = frozenset({errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP, errno.ENOTSUP})
# Python has no name for the call, and some C libraries have none either
_renameat2 = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)


def rename_new(source: Path, target: Path) -> None:
    """Give a file a name that no other has; raises FileExistsError, or another OSError, and then changes nothing.

    Where the filesystem cannot tell at once, it is looked at first: whoever else writes there may be faster.
    """
    if _renameat2 is not None:
        if not _renameat2(_HERE, os.fsencode(source), _HERE, os.fsencode(target), _NOT_OVER_ANOTHER):
            return
        number = ctypes.get_errno()
        if number not in _UNABLE:
            raise OSError(number, os.strerror(number), str(source), None, str(target))
    if os.path.lexists(target):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target))
    source.rename(target)


def sync(descriptor: int) -> None:
    """Wait until the disk has the bytes of a file, or the names of a directory. Raises OSError."""
    os.fsync(descriptor)


def sync_data(descriptor: int) -> None:
    """As `sync`, without what nobody needs to read the bytes again, such as the time of the change."""
    os.fdatasync(descriptor)


def sync_directory(path: Path) -> None:
    """Make the names in a directory durable (fsync(2): a file's own sync does not cover its name)."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        sync(fd)
    finally:
        os.close(fd)
