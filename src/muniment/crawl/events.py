"""`crawl.jsonl`: one JSON object a line, appended after what it tells is committed."""

from __future__ import annotations

import errno
import os
from typing import Any

import msgspec

from muniment.clock import iso_ms, now_ms
from muniment.errors import ArchiveError, DiskFullError
from muniment.model.change import Changed
from muniment.model.page import Finished

__all__ = ["EventLog", "page_event"]

_encoder = msgspec.json.Encoder()


class EventLog:
    """Appends events to the locked `crawl.jsonl`; a torn last line of a killed run is ended first."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor, self._broken = descriptor, False
        size = os.fstat(descriptor).st_size
        if size and os.pread(descriptor, 1, size - 1) != b"\n":
            os.write(descriptor, b"\n")

    def write(self, event: str, **fields: Any) -> None:
        """One event, now."""
        self.write_many([{"ts": iso_ms(now_ms()), "event": event, **fields}])

    def skipped(self, pages: list[tuple[str, str]]) -> None:
        """An event for each page that is left out: URL and reason."""
        ts = iso_ms(now_ms())
        self.write_many([{"ts": ts, "event": "skip", "url": url, "reason": reason} for url, reason in pages])

    def changed(self, who: str, changes: tuple[Changed, ...]) -> None:
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
        if not events or self._broken:
            return
        try:
            os.write(self._descriptor, _encoder.encode_lines(events))
        except OSError as error:
            # told once: the run ends over it, and what it says while ending is not worth another complaint
            self._broken = True
            full = error.errno in {errno.ENOSPC, errno.EDQUOT}
            kind = DiskFullError if full else ArchiveError
            raise kind(f"the event log cannot be written: {error.strerror}") from error


def page_event(ts: str, page: Finished, url: str) -> dict[str, Any]:
    """What became of a page, as an event."""
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
