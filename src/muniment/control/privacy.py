"""Privacy: files that only their owner can read, once a secret was given for a job (decision 0168)."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from muniment.model.place import TRACKER
from muniment.procs.lock import EVENTS_FILE

__all__ = ["is_private", "keep_private", "make_private"]

_OTHERS = 0o077


def keep_private() -> None:
    """From here on this process, and those that it launches, make files for their owner alone."""
    os.umask(_OTHERS)


def is_private(out: Path) -> bool:
    """Whether a run with a secret was in the directory: its files are its owner's alone."""
    return any(not mode & _OTHERS for mode in _modes([out / EVENTS_FILE, *_archive(out)]))


def make_private(out: Path, state: Path) -> None:
    """Take what is there already from all but its owner: what this run goes on writing to, and what marks the job."""
    tracker = [state / (TRACKER + end) for end in ("", "-wal", "-shm")]
    for path in (out / EVENTS_FILE, *tracker, *_within(out / "parts")):
        with suppress(OSError):  # not there, or not ours: then it holds nothing of ours
            path.chmod(path.stat().st_mode & ~_OTHERS)


def _archive(out: Path) -> Iterator[Path]:
    with suppress(OSError):
        yield from (path for path in out.iterdir() if ".warc.gz" in path.name)


def _within(parts: Path) -> Iterable[Path]:
    with suppress(OSError):
        return [parts, *(path for path in parts.iterdir() if path.is_file())]
    return []


def _modes(paths: Iterable[Path]) -> Iterator[int]:
    for path in paths:
        with suppress(OSError):
            yield path.stat().st_mode
