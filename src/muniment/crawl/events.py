"""`crawl.jsonl`: one JSON object a line, appended after what it tells is committed."""

from __future__ import annotations

import logging
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from muniment.archive.durable import archive_error
from muniment.clock import iso_ms, now_ms
from muniment.model.change import ChangeMade
from muniment.model.page import PageResult
from muniment.procs.lock import EVENTS_FILE, put_back

__all__ = ["EventLog"]

_encoder = msgspec.json.Encoder()
_log = logging.getLogger(__name__)


class EventLog:
    """Appends events to the locked `crawl.jsonl` of a directory; a torn last line of a killed run is ended first.

    When the file was moved away, a new one is begun. Raises DiskFullError or ArchiveError when the file cannot be
    written; it then ends with a whole line.
    """

    def __init__(self, descriptor: int, out: Path) -> None:
        self._descriptor, self._path, self._broken = descriptor, out / EVENTS_FILE, False
        size = os.fstat(descriptor).st_size
        if size and os.pread(descriptor, 1, size - 1) != b"\n":
            self._append(b"\n")

    def write(self, event: str, **fields: Any) -> None:
        """One event, now."""
        self.write_many([{"ts": iso_ms(now_ms()), "event": event, **fields}])

    def skipped(self, pages: list[tuple[str, str]]) -> None:
        """An event for each page that is left out: URL and reason."""
        ts = iso_ms(now_ms())
        self.write_many([{"ts": ts, "event": "skip", "url": url, "reason": reason} for url, reason in pages])

    def finished(self, pages: list[tuple[str, PageResult]]) -> None:
        """An event for each try that has ended: URL and what became of it; another where links were dropped."""
        ts = iso_ms(now_ms())
        told = [_finished(ts, url, page) for url, page in pages]
        told += [{"ts": ts, "event": "drop", "url": url, "links": page.dropped} for url, page in pages if page.dropped]
        self.write_many(told)

    def changed(self, who: str, changes: tuple[ChangeMade, ...]) -> None:
        """An event for each thing that somebody changed."""
        ts = iso_ms(now_ms())
        self.write_many(
            [
                {"ts": ts, "event": "change", "who": who, "what": one.what, "from": one.before, "to": one.after}
                for one in changes
            ]
        )

    def write_many(self, events: list[dict[str, Any]]) -> None:
        """Several events in one write."""
        if events and not self._broken:
            if put_back(self._path, self._descriptor):
                _log.warning("%s was moved away: the run writes a new one", self._path)
            self._append(_encoder.encode_lines(events))

    def _append(self, lines: bytes) -> None:
        rest = memoryview(lines)
        try:
            # a disk that is nearly full takes a part of it
            while rest:
                rest = rest[os.write(self._descriptor, rest) :]
        except OSError as error:
            # told once: the run ends over it, and what it says while ending is not worth another complaint
            self._broken = True
            with suppress(OSError):
                os.ftruncate(self._descriptor, os.fstat(self._descriptor).st_size - (len(lines) - len(rest)))
            raise archive_error(error, self._path) from error


def _finished(ts: str, url: str, page: PageResult) -> dict[str, Any]:
    if page.refused:
        return {"ts": ts, "event": "skip", "url": url, "reason": page.refused}
    if page.error:
        return {
            "ts": ts,
            "event": "fail",
            "url": url,
            "reason": page.error,
            "attempt": page.attempt,
            "final": page.done,
        }
    return {"ts": ts, "event": "capture", "url": url, "status": page.status, "bytes": page.body_length}
