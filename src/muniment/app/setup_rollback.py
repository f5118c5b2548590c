"""Rollback of a setup: what a run makes before it is known whether it may run; a refused one takes that back."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from muniment.errors import MunimentError
from muniment.model.place import TRACKER
from muniment.procs.lock import FileLock, lock_both, make_directory
from muniment.tracker.processes.sqlite import PROCESSES_FILE

__all__ = ["SetupRollback", "unless_refused"]


class SetupRollback:
    """The directories of a run, their locks, and what was in them before."""

    def __init__(self) -> None:
        self._made: list[Path] = []
        """Directories that were missing, those within others first."""
        self._locks: list[FileLock] = []
        self._there: dict[Path, set[str]] = {}
        """What was in each of them when it was locked."""
        self._events = 0
        """Bytes of the event log."""

    def make_directory(self, path: Path) -> None:
        """Make a directory, unless it is there. Raises UsageError."""
        self._made[:0] = [one for one in (path, *path.parents) if not one.exists()]
        make_directory(path)

    def lock(self, out: Path, state: Path) -> list[int]:
        """Lock the directories of a run until it ends, as `lock_both` does; what is made from here on is its own."""
        self._locks = lock_both(out, state)
        self._events = os.fstat(self._locks[0].descriptor).st_size
        self._there = {path: {entry.name for entry in path.iterdir()} for path in (out, state)}
        return [lock.descriptor for lock in self._locks]

    def take_back(self) -> None:
        """Remove what was made, unless the run has begun."""
        if self._locks and os.fstat(self._locks[0].descriptor).st_size == self._events:
            for path, there in self._there.items():
                _remove(path, _names() - there - _beside(there))
            for lock in self._locks:
                lock.remove_if_new()
        for path in self._made:
            with suppress(OSError):
                path.rmdir()

    def close(self) -> None:
        """Unlock the directories."""
        for lock in self._locks:
            os.close(lock.descriptor)


def _names() -> set[str]:
    """What a run makes in its directories before its first event, the files of their locks aside."""
    from muniment.app.inputs.seed_list import SPOOLED  # noqa: PLC0415
    from muniment.control.tracker_location import POINTER  # noqa: PLC0415  (a run that may run needs none of it)

    return {*_database(TRACKER), POINTER, SPOOLED, *_database(PROCESSES_FILE), "processes"}


def _database(name: str) -> set[str]:
    return {name + end for end in ("", "-wal", "-shm", "-journal")}


def _beside(there: set[str]) -> set[str]:
    """The files of the databases that were there: what others read of them may lie in a log that is younger."""
    return {name for database in (TRACKER, PROCESSES_FILE) if database in there for name in _database(database)}


def _remove(directory: Path, names: set[str]) -> None:
    for path in [directory / name for name in names]:
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


@contextmanager
def unless_refused() -> Iterator[SetupRollback]:
    """What is made within is taken back when an error or Ctrl-C ends it before it begins; then all is unlocked."""
    traces = SetupRollback()
    try:
        yield traces
    except (MunimentError, KeyboardInterrupt):
        with suppress(OSError):
            traces.take_back()
        raise
    finally:
        traces.close()
