"""The lock on an output directory: one run at a time, orphans included (decision 0162).

The locks are on the open file descriptions of the directory itself and of `crawl.jsonl`, which workers inherit: a
directory stays locked while any process of the run lives (flock(2)). Not every filesystem can lock a directory, and
earlier versions lock the file alone.
"""

from __future__ import annotations

import errno
import fcntl
import os
import time
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec import Struct

from muniment.errors import BusyError, UsageError

__all__ = ["EVENTS_FILE", "TRACKER_LOCK", "FileLock", "lock_both", "lock_directory", "make_directory"]

EVENTS_FILE = "crawl.jsonl"
TRACKER_LOCK = "tracker.lock"
"""What is locked in a `--state` directory."""
_ITSELF = "."


class FileLock(Struct, frozen=True):
    """A locked file."""

    path: Path
    descriptor: int
    """Inheritable; it holds the lock."""
    made: bool
    """Whether this process made the file."""

    def remove_if_new(self) -> None:
        """Remove a file that this process made and nothing was written to; the lock goes with it."""
        if self.made and not os.fstat(self.descriptor).st_size:
            self.path.unlink(missing_ok=True)


def make_directory(path: Path) -> None:
    """Make an output directory and see that it can be written, or raise UsageError with one line that says why not."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise UsageError(f"{path} is a file; give a directory with -o") from None
    except OSError as error:
        raise UsageError(f"the directory {path} cannot be made: {error.strerror}") from None
    if not os.access(path, os.W_OK | os.X_OK):
        raise UsageError(f"the directory {path} cannot be written; choose another with -o or change its permissions")


def lock_directory(path: Path, file: str = EVENTS_FILE, patience_s: float = 2.0) -> list[int]:
    """Lock a directory for this run and return the descriptors that hold the locks, that of `file` first.

    Without a `file` only the directory itself is locked, so that nothing is made in it. Workers of a run that was just
    killed need a moment to die, hence the patience. Raises BusyError, and UsageError for a filesystem without locks.
    """
    return [lock.descriptor for lock in _locked(path, file, patience_s)]


def _locked(path: Path, file: str, patience_s: float, *, locked_elsewhere: bool = False) -> list[FileLock]:
    """The locks on a file of a directory and on the directory; it need not have locks when it is `locked_elsewhere`."""
    give_up = time.monotonic() + patience_s
    while True:
        locks: list[FileLock] = []
        try:
            refusals = [_add(locks, path, name, give_up) for name in (_ITSELF, file) if name]
            if all(map(_is_there, locks)):
                _see(path, "" if locked_elsewhere else refusals[-1])
                return locks[::-1]
        except UsageError:
            _let_go(locks)
            raise
        # made in a directory that a refused run took back; it is not ours to leave
        for lock in locks:
            lock.remove_if_new()
        _let_go(locks)


def _see(path: Path, refusal: str) -> None:
    if refusal:
        raise UsageError(
            f"the filesystem of {path} cannot lock files ({refusal}): give --state DIR with a directory on a local disk"
        )


def _add(locks: list[FileLock], path: Path, name: str, give_up: float) -> str:
    """Add the lock on the directory or on a file of it, when it is free; what the filesystem says against a lock.

    A file is added without a lock on filesystems without locks. Raises UsageError.
    """
    lock = _opened_directory(path) if name == _ITSELF else _opened(path, name)
    if lock is None:
        return "it cannot be opened"
    locks.append(lock)
    while True:
        try:
            fcntl.flock(lock.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno != errno.EWOULDBLOCK and (name == _ITSELF or error.errno != errno.EACCES):
                if name == _ITSELF:
                    _let_go([locks.pop()])
                return error.strerror or str(error)
        else:
            return ""
        if time.monotonic() > give_up:
            raise BusyError(
                f"{path} is in use by another run{_holder(path / (EVENTS_FILE if name == _ITSELF else name))}; "
                "stop it first or choose another directory"
            )
        time.sleep(0.05)


def _let_go(locks: list[FileLock]) -> None:
    for lock in locks:
        os.close(lock.descriptor)


def _opened_directory(path: Path) -> FileLock | None:
    """A directory itself; None where it cannot be read or is not there, which whoever makes a file in it will say."""
    with suppress(OSError):
        path.mkdir(parents=True, exist_ok=True)
        return FileLock(path, os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC), made=False)
    return None


def _opened(path: Path, file: str) -> FileLock:
    try:
        # one that was there may be gone: a run that was refused takes back what it made
        path.mkdir(parents=True, exist_ok=True)
        how = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        try:
            return FileLock(path / file, os.open(path / file, how | os.O_EXCL, 0o644), made=True)
        except FileExistsError:
            return FileLock(path / file, os.open(path / file, how, 0o644), made=False)
    except OSError as error:
        raise UsageError(f"the directory {path} cannot be written: {error.strerror}") from None


def _is_there(lock: FileLock) -> bool:
    """Whether a file is still that of its name: a run that was refused removes it, and its lock with it."""
    with suppress(FileNotFoundError):
        return os.path.samestat(lock.path.stat(), os.fstat(lock.descriptor))
    return False


def lock_both(out: Path, state: Path, patience_s: float = 2.0) -> list[FileLock]:
    """Lock an output directory, and the directory of its tracker when that is another; that of `crawl.jsonl` first.

    With a tracker elsewhere the filesystem of `out` need not have locks. Raises what `lock_directory` does.
    """
    apart = not (out.exists() and state.exists() and out.samefile(state)) and state.resolve() != out.resolve()
    locks = _locked(out, EVENTS_FILE, patience_s, locked_elsewhere=apart)
    try:
        if apart:
            locks += _locked(state, TRACKER_LOCK, patience_s)
    except UsageError:
        locks[0].remove_if_new()
        _let_go(locks)
        raise
    return locks


class _Started(Struct):
    pid: int


def _holder(events: Path) -> str:
    """` (process N)` from the last start event, for the message."""
    pid = 0
    if not events.is_file():
        return ""
    with events.open("rb") as lines:
        for line in lines:
            if b'"start"' in line:
                # a line of a killed run may be anything
                with suppress(msgspec.DecodeError):
                    pid = msgspec.json.decode(line, type=_Started).pid
    return f" (process {pid})" if pid else ""
