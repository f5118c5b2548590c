"""The lock on an output directory: one run at a time, orphans included.

The lock is on the open file description of `crawl.jsonl`, which workers inherit: a directory stays locked while any
process of the run lives (flock(2)).
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

__all__ = ["EVENTS_FILE", "THE_DIRECTORY", "TRACKER_LOCK", "Lock", "lock_both", "lock_directory", "make_directory"]

EVENTS_FILE = "crawl.jsonl"
THE_DIRECTORY = "."
"""What is locked where no run can have been: a lock file would make the directory look like one of a run."""
TRACKER_LOCK = "tracker.lock"
"""What is locked in a `--state` directory."""


class Lock(Struct, frozen=True):
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


def lock_directory(
    path: Path, file: str = EVENTS_FILE, patience_s: float = 2.0, *, locked_elsewhere: bool = False
) -> int:
    """Lock a directory for this run and return the inheritable descriptor that holds the lock.

    Workers of a run that was just killed need a moment to die, hence the patience. Raises BusyError, and UsageError for
    a filesystem without locks, unless the run is `locked_elsewhere`, too.
    """
    return _locked(path, file, patience_s, locked_elsewhere=locked_elsewhere).descriptor


def _locked(path: Path, file: str, patience_s: float, *, locked_elsewhere: bool = False) -> Lock:
    lock = _opened(path, file)
    give_up = time.monotonic() + patience_s
    while True:
        try:
            fcntl.flock(lock.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in {errno.EWOULDBLOCK, errno.EACCES}:
                if locked_elsewhere:
                    return lock
                os.close(lock.descriptor)
                raise UsageError(
                    f"the filesystem of {path} cannot lock files ({error.strerror}): give --state DIR with a directory "
                    "on a local disk"
                ) from None
        else:
            if _is_there(lock):
                return lock
            os.close(lock.descriptor)
            lock = _opened(path, file)
            continue
        if time.monotonic() > give_up:
            os.close(lock.descriptor)
            raise BusyError(
                f"{path} is in use by another run{_holder(path / file)}; stop it first or choose another directory"
            )
        time.sleep(0.05)


def _opened(path: Path, file: str) -> Lock:
    try:
        if file == THE_DIRECTORY:
            return Lock(path / file, os.open(path / file, os.O_RDONLY | os.O_CLOEXEC), made=False)
        # one that was there may be gone: a run that was refused takes back what it made
        path.mkdir(parents=True, exist_ok=True)
        how = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        try:
            return Lock(path / file, os.open(path / file, how | os.O_EXCL, 0o644), made=True)
        except FileExistsError:
            return Lock(path / file, os.open(path / file, how, 0o644), made=False)
    except OSError as error:
        raise UsageError(f"the directory {path} cannot be written: {error.strerror}") from None


def _is_there(lock: Lock) -> bool:
    """Whether a file is still that of its name: a run that was refused removes it, and its lock with it."""
    with suppress(FileNotFoundError):
        return os.path.samestat(lock.path.stat(), os.fstat(lock.descriptor))
    return False


def lock_both(out: Path, state: Path, patience_s: float = 2.0) -> list[Lock]:
    """Lock an output directory, and the directory of its tracker when that is another; the locks, `out`'s first.

    With a tracker elsewhere the filesystem of `out` need not have locks. Raises what `lock_directory` does.
    """
    apart = state.resolve() != out.resolve()
    locks = [_locked(out, EVENTS_FILE, patience_s, locked_elsewhere=apart)]
    try:
        if apart:
            locks.append(_locked(state, TRACKER_LOCK, patience_s))
    except UsageError:
        locks[0].remove_if_new()
        os.close(locks[0].descriptor)
        raise
    return locks


class _Started(Struct):
    pid: int


def _holder(events: Path) -> str:
    """` (process N)` from the last start event, for the message."""
    pid = 0
    if events.is_dir():
        return ""
    with events.open("rb") as lines:
        for line in lines:
            if b'"start"' in line:
                # a line of a killed run may be anything
                with suppress(msgspec.DecodeError):
                    pid = msgspec.json.decode(line, type=_Started).pid
    return f" (process {pid})" if pid else ""
