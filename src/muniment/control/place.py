"""Where the tracker of an output directory lies: in it, or where its pointer says (decision 0080)."""

from __future__ import annotations

import os
from pathlib import Path

from muniment.archive.durable import archive_error, sync_directory
from muniment.errors import UsageError

__all__ = ["POINTER", "TRACKER", "keep_place", "tracker_directory"]

TRACKER = "tracker.sqlite"
POINTER = "tracker.place"
"""A file in an output directory whose tracker lies elsewhere; it holds the absolute path of that directory."""


def tracker_directory(out: Path, given: Path | None) -> Path:
    """The directory of a tracker, which `--state` names or an earlier run noted; raises UsageError when they differ."""
    kept = _kept(out)
    if given is None:
        return kept or out
    if kept is not None and kept.resolve() != given.resolve():
        raise UsageError(
            f"the tracker of {out} lies in {kept}: leave --state out (if you moved it there, remove {out / POINTER})"
        )
    if kept is None and given.resolve() != out.resolve() and (out / TRACKER).exists():
        raise UsageError(f"{out} holds its tracker itself: leave --state out")
    return given


def keep_place(out: Path, state: Path) -> bool:
    """Note that the tracker of `out` lies in `state`; whether that was known. The caller holds the lock on `state`.

    Raises UsageError when another run was faster with another directory.
    """
    if tracker_directory(out, state).resolve() == out.resolve() or _kept(out) is not None:
        return True
    try:
        # whoever makes the file has the directory: its filesystem may have no locks
        descriptor = os.open(out / POINTER, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
    except FileExistsError:
        return keep_place(out, state)
    except OSError as error:
        raise archive_error(error, out / POINTER) from error
    with os.fdopen(descriptor, "wb") as file:
        file.write(os.fsencode(state.resolve()) + b"\n")
        file.flush()
        os.fsync(file.fileno())
    sync_directory(out)
    return False


def _kept(out: Path) -> Path | None:
    try:
        text = os.fsdecode((out / POINTER).read_bytes().rstrip(b"\n"))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UsageError(f"{out / POINTER} cannot be read: {error.strerror}") from None
    if not text:
        raise UsageError(f"{out / POINTER} is empty, because a run was killed: remove it and give the command again")
    return Path(text)
