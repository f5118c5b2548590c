"""Limits: pages, bytes, time and disk space that a run must not pass."""

from __future__ import annotations

import shutil
from pathlib import Path

from muniment.clock import monotonic
from muniment.settings import Settings
from muniment.tracker.frontier import Totals

__all__ = ["Limits"]

_MOST_RESERVED = 1 << 30
_PART_RESERVED = 20
"""The reserve is a twentieth of the filesystem, at most 1 GiB (contract, `--min-free`)."""


class Limits:
    """`--max-pages`, `--max-bytes`, `--max-time` and `--min-free` of one run."""

    def __init__(self, settings: Settings, out: Path) -> None:
        self._out = out
        self._started = monotonic()
        self.change(settings)

    def change(self, settings: Settings) -> None:
        """Go by the limits of these settings from now on."""
        self._pages, self._bytes, self._time = settings.max_pages, settings.max_bytes, settings.max_time
        reserve = settings.min_free
        self.min_free = (
            min(_MOST_RESERVED, shutil.disk_usage(self._out).total // _PART_RESERVED) if reserve is None else reserve
        )

    @property
    def counts(self) -> bool:
        """Whether pages are counted before they are handed out."""
        return self._pages is not None

    def room(self, totals: Totals, out: int, wanted: int) -> int:
        """How many of the wanted pages may be handed out while `out` are in hand."""
        if self._bytes is not None and totals.payload_bytes >= self._bytes:
            return 0
        return wanted if self._pages is None else max(0, min(wanted, self._pages - totals.captured - out))

    def reached(self, totals: Totals, *, idle: bool) -> str:
        """The option whose limit is reached; empty for none."""
        if self._pages is not None and totals.captured >= self._pages and idle:
            return "--max-pages"
        if self._bytes is not None and totals.payload_bytes >= self._bytes:
            return "--max-bytes"
        if self._time is not None and monotonic() - self._started >= self._time:
            return "--max-time"
        return ""
