"""`crawl.jsonl`: one JSON object a line, appended after what it tells is committed."""

from __future__ import annotations

import os
from typing import Any

import msgspec

from muniment.clock import iso_ms, now_ms

__all__ = ["EventLog"]

_encoder = msgspec.json.Encoder()


class EventLog:
    """Appends events to the locked `crawl.jsonl`; a torn last line of a killed run is ended first."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        size = os.fstat(descriptor).st_size
        if size and os.pread(descriptor, 1, size - 1) != b"\n":
            os.write(descriptor, b"\n")

    def write(self, event: str, **fields: Any) -> None:
        """One event, now."""
        self.write_many([{"ts": iso_ms(now_ms()), "event": event, **fields}])

    def write_many(self, events: list[dict[str, Any]]) -> None:
        """Several events in one write."""
        if events:
            os.write(self._descriptor, _encoder.encode_lines(events))
