"""`crawl.jsonl` and `pipeline.jsonl`: one JSON object a line, appended after what it says is committed."""

from __future__ import annotations

import fcntl
import logging
import os
from contextlib import suppress
from pathlib import Path

import msgspec

from muniment.archive.durable import archive_error
from muniment.clock import iso_ms
from muniment.model.event import EventBatch, LogEvent, PageEvent
from muniment.model.network.pipeline_events import PipelineEvent

__all__ = ["EventLog", "put_back"]

_encoder = msgspec.json.Encoder()
_log = logging.getLogger(__name__)


class EventLog:
    """Appends events to the locked log of a directory; a torn last line of a killed run is ended first.

    When the file was moved away, a new one is begun. Raises DiskFullError or ArchiveError when the file cannot be
    written; it then ends with a whole line.
    """

    def __init__(self, descriptor: int, path: Path) -> None:
        self._descriptor, self._path, self._broken = descriptor, path, False
        size = os.fstat(descriptor).st_size
        if size and os.pread(descriptor, 1, size - 1) != b"\n":
            self._append(b"\n")

    def take(self, batch: EventBatch) -> None:
        """Append a line for each event that has one, in one write."""
        lines: list[LogEvent | PipelineEvent] = []
        for event in batch.events:
            if isinstance(event, PageEvent):
                lines.append(event.line)
            elif isinstance(event, LogEvent | PipelineEvent):
                lines.append(event)
        if lines and not self._broken:
            if put_back(self._path, self._descriptor):
                _log.warning("%s was moved away: the run writes a new one", self._path)
            self._append(_with_time(batch.at, _encoder.encode_lines(lines)))

    def _append(self, lines: bytes) -> None:
        rest = memoryview(lines)
        try:
            # a disk that is nearly full takes a part of it
            while rest:
                rest = rest[os.write(self._descriptor, rest) :]
        except OSError as error:
            # raised once: the run ends over it, and what follows while it ends is not worth another complaint
            self._broken = True
            with suppress(OSError):
                os.ftruncate(self._descriptor, os.fstat(self._descriptor).st_size - (len(lines) - len(rest)))
            raise archive_error(error, self._path) from error


def _with_time(at: int, lines: bytes) -> bytes:
    """Lines of JSON objects with a time before their first field; a newline within a text is escaped."""
    begins = b'{"ts":"' + iso_ms(at).encode() + b'",'
    return begins + lines[1:].replace(b"\n{", b"\n" + begins)


def put_back(path: Path, descriptor: int) -> bool:
    """Have a locked file that was moved away at its place again, as a new one; whether that was so.

    The descriptor then stands for the new file. One that cannot be made leaves all as it is.
    """
    try:
        if os.path.samestat(path.stat(), os.fstat(descriptor)) or not path.is_file():
            return False
    except FileNotFoundError:
        pass
    except OSError:
        return False
    try:
        fresh = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK, 0o644)
    except OSError:
        return False
    try:
        # for earlier versions; the directory is locked
        with suppress(OSError):
            fcntl.flock(fresh, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.dup2(fresh, descriptor, inheritable=False)
    finally:
        os.close(fresh)
    return True
