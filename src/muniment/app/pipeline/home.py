"""The directory of a pipeline: its lock, the tracker that it works for, its event log, directories of jobs."""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

from muniment.archive.durable import archive_error
from muniment.archive.event_log import EventLog
from muniment.archive.index.journal import PARTS
from muniment.control.tracker_location import POINTER
from muniment.disk import sync, sync_directory
from muniment.errors import BusyError, UsageError
from muniment.procs.lock import make_directory

__all__ = ["PipelineHome", "opened_home"]

LOCK, PLACE, EVENTS = "pipeline.lock", "pipeline.place", "pipeline.jsonl"
_JOB = re.compile(r"[1-9][0-9]*")


class PipelineHome(Struct, frozen=True):
    """A directory that this process alone works in."""

    directory: Path
    log: EventLog

    def claim(self, tracker_id: str, url: str) -> None:
        """Note the tracker that the directory belongs to; raises UsageError when it is another one's."""
        path = self.directory / PLACE
        kept = _text_of(path)
        if kept and kept != tracker_id:
            raise UsageError(
                f"{self.directory} belongs to another tracker than that of {url}: choose another directory with -o"
            )
        if not kept:
            write_whole(path, f"{tracker_id}\n")

    def job_directory(self, job: int, url: str) -> Path:
        """The output directory of a job, made if it is not there, with a note of its server."""
        out = self.directory / str(job)
        make_directory(out)
        wanted = f"{url}\n{job}\n"
        if _text_of(out / POINTER) != wanted.strip():
            write_whole(out / POINTER, wanted)
        return out

    def unjoined(self) -> dict[int, Path]:
        """The output directories with files that their index does not have yet, by job."""
        found = (path for path in self.directory.iterdir() if _JOB.fullmatch(path.name) and (path / PARTS).is_dir())
        return {int(path.name): path for path in sorted(found, key=lambda path: int(path.name))}


@contextmanager
def opened_home(directory: Path) -> Iterator[PipelineHome]:
    """The directory of a pipeline, made and locked until the block ends. Raises UsageError."""
    make_directory(directory)
    if (directory / "crawl.jsonl").exists() or (directory / "tracker.sqlite").exists():
        raise UsageError(f"{directory} holds a crawl or a tracker: choose another directory with -o")
    lock = os.open(directory / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        _lock(lock, directory)
        events = os.open(directory / EVENTS, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            yield PipelineHome(directory, EventLog(events, directory / EVENTS))
        finally:
            os.close(events)
    finally:
        os.close(lock)


def _lock(descriptor: int, directory: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise BusyError(
            f"{directory} is in use by another pipeline; stop it first or choose another directory with -o"
        ) from None
    except OSError as error:
        raise UsageError(
            f"the filesystem of {directory} cannot lock files ({error.strerror}); choose another"
        ) from None


def _text_of(path: Path) -> str:
    try:
        return path.read_text("utf-8").strip()
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read: {getattr(error, 'strerror', None) or 'it is damaged'}") from None


def write_whole(path: Path, text: str) -> None:
    """Write a small file that is whole or not there. Raises ArchiveError."""
    aside = path.with_name(f".{path.name}.new")
    try:
        with aside.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            sync(file.fileno())
        aside.replace(path)
        sync_directory(path.parent)
    except OSError as error:
        raise archive_error(error, path) from error
