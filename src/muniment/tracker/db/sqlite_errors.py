"""Errors of SQLite: the one place that turns them into errors of Muniment."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

from sqlalchemy.exc import SQLAlchemyError

from muniment.errors import DiskFullError, MunimentError, TrackerError, UsageError

__all__ = ["DriverError", "first_line", "is_locked", "opening_error", "tracker_error", "unfit"]

DriverError = (SQLAlchemyError, sqlite3.Error)
"""What the database's driver raises, by itself or through SQLAlchemy."""

_BUSY = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})
_NO_ROOM = 1 << 20
"""Bytes: with fewer free, an I/O error is one of the room. SQLite says so of files alone, not of shared memory."""
_DAMAGED = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
_UNFIT = frozenset(
    {
        sqlite3.SQLITE_PROTOCOL,
        sqlite3.SQLITE_NOLFS,
        sqlite3.SQLITE_IOERR_LOCK,
        sqlite3.SQLITE_IOERR_SHMLOCK,
        sqlite3.SQLITE_IOERR_SHMMAP,
        sqlite3.SQLITE_IOERR_SHMOPEN,
        sqlite3.SQLITE_IOERR_SHMSIZE,
    }
)
"""What a filesystem without locks or shared memory gives (https://www.sqlite.org/wal.html)."""


def is_locked(error: BaseException) -> bool:
    """Whether another program holds a lock on the database."""
    return _code(error) & 0xFF in _BUSY


def tracker_error(error: BaseException, path: Path) -> MunimentError:
    """The error that stopped a tracker in use."""
    if is_locked(error):
        return TrackerError(
            f"the tracker {path} is locked by another program: end that (a database shell, a backup) and give the same "
            "command again"
        )
    if _is_full(error, path):
        return DiskFullError(f"{path.name}: no room is left")
    if _code(error) & 0xFF == sqlite3.SQLITE_IOERR:
        return TrackerError(
            f"the tracker {path} cannot be written or read ({first_line(error)}): check the disk, then give the "
            "same command again"
        )
    return TrackerError(f"the tracker's database failed: {first_line(error)}")


def opening_error(error: BaseException, path: Path) -> MunimentError:
    """The error of opening a tracker; UsageError if its filesystem is unsuitable."""
    if is_locked(error) or _is_full(error, path):
        return tracker_error(error, path)
    if _code(error) in _UNFIT:
        return unfit(path, first_line(error))
    backup = "; put a backup in its place" if _code(error) & 0xFF in _DAMAGED else ""
    return TrackerError(f"the tracker {path} cannot be used: {first_line(error)}{backup}")


def unfit(path: Path, why: str) -> UsageError:
    """The refusal of a filesystem that cannot hold a tracker."""
    return UsageError(
        f"the filesystem of {path.parent} cannot hold a tracker ({why}): give --state DIR with a directory on a local "
        "disk"
    )


def _is_full(error: BaseException, path: Path) -> bool:
    code = _code(error) & 0xFF
    if code != sqlite3.SQLITE_IOERR:
        return code == sqlite3.SQLITE_FULL
    return shutil.disk_usage(path.parent).free < _NO_ROOM


def _code(error: BaseException) -> int:
    cause = getattr(error, "orig", None) or error
    return getattr(cause, "sqlite_errorcode", 0) or 0


def first_line(error: BaseException) -> str:
    """The driver's own words."""
    cause = getattr(error, "orig", None) or error
    return str(cause).partition("\n")[0]
