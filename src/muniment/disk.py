"""Waiting for the disk: what is synced is there after a power cut, on every system."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

__all__ = ["sync", "sync_data", "sync_directory"]

_THROUGH = getattr(fcntl, "F_FULLFSYNC", None)
"""On macOS fsync(2) leaves what was written in the disk's own memory; this call empties that, too."""


def sync(descriptor: int) -> None:
    """Wait until the disk has the bytes of a file, or the names of a directory. Raises OSError."""
    if _THROUGH is None or not _synced_through(descriptor, _THROUGH):
        os.fsync(descriptor)


def sync_data(descriptor: int) -> None:
    """As `sync`, without what nobody needs to read the bytes again, such as the time of the change."""
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
