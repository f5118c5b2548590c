"""Runs in directories: which there are, their numbers, and whether a process works at one."""

from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from muniment.clock import monotonic
from muniment.errors import NotFoundError, UsageError
from muniment.procs.lock import EVENTS_FILE

__all__ = ["RunFolder", "is_run", "is_running"]

_LOOK_S = 1.0
"""New runs appear within two seconds."""
_FIRST_BYTES = 200


def is_run(path: Path) -> bool:
    """Whether a directory is the output of a run."""
    return (path / EVENTS_FILE).is_file()


def is_running(out: Path) -> bool:
    """Whether a process holds the directory of a run."""
    try:
        log = os.open(out / EVENTS_FILE, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(log, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(log)
    return False


class RunFolder:
    """The runs below some paths, each with a number for as long as this lives. Any thread may ask.

    Runs that are there at first are numbered by their age, so that a restart gives most of them the same numbers.
    """

    def __init__(self, paths: Sequence[Path], known: Callable[[], Iterable[Path]]) -> None:
        """Without paths, `known` says which directories to look at. Raises UsageError for a path without runs."""
        self._paths, self._known = paths, known
        self._numbers: dict[Path, int] = {}
        self._looked = -_LOOK_S
        self._turn = threading.Lock()
        for path in paths:
            if not path.is_dir():
                raise UsageError(f"{path} is not a directory; give an output directory, or a folder of them")

    @property
    def home(self) -> Path:
        """Where new runs are made."""
        if not self._paths:
            return Path.cwd()
        first = self._paths[0]
        return first.parent if is_run(first) else first

    def runs(self) -> dict[int, Path]:
        """All runs that are there now, by number."""
        with self._turn:
            if monotonic() - self._looked >= _LOOK_S:
                self._look()
            return {number: out for out, number in self._numbers.items()}

    def find(self, number: int) -> Path:
        """The run of a number; raises NotFoundError."""
        found = self.runs().get(number)
        if found is None:
            raise NotFoundError(f"there is no job {number}")
        return found

    def number_of(self, out: Path) -> int:
        """The number of a run."""
        with self._turn:
            self._look()
            return self._numbers[out.resolve()]

    def _look(self) -> None:
        self._looked = monotonic()
        seen = {out.resolve() for out in self._directories()}
        fresh = sorted((_begun(out), str(out), out) for out in seen - set(self._numbers))
        highest = max(self._numbers.values(), default=0)
        self._numbers.update((out, highest + at) for at, (_, _, out) in enumerate(fresh, 1))
        for gone in [out for out in self._numbers if out not in seen and not is_run(out)]:
            del self._numbers[gone]

    def _directories(self) -> Iterable[Path]:
        for path in self._paths or self._known():
            with suppress(OSError):
                if is_run(path):
                    yield path
                elif self._paths:
                    yield from (Path(one.path) for one in os.scandir(path) if one.is_dir() and is_run(Path(one.path)))


def _begun(out: Path) -> str:
    """The time in the first line of a log."""
    try:
        with (out / EVENTS_FILE).open("rb") as log:
            return log.read(_FIRST_BYTES).partition(b'"ts":"')[2].partition(b'"')[0].decode("ascii", "replace")
    except OSError:
        return ""
