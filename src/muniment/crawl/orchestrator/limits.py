"""Limits: the pages, bytes, time and disk space of a run."""

from __future__ import annotations

import shutil
from pathlib import Path

from muniment.clock import monotonic
from muniment.crawl.ports import Events
from muniment.errors import ArchiveError, DiskFullError
from muniment.model.event import PauseEvent, ResumeEvent
from muniment.model.queue import Totals
from muniment.settings.option_table import Settings

__all__ = ["DiskSpace", "Limits", "no_room"]

_MOST_RESERVED = 1 << 30
_PART_RESERVED = 20
"""The reserve (`--min-free`) is a twentieth of the filesystem, at most 1 GiB."""


_ELBOW_ROOM = 16 << 20
"""Bytes that a run needs beside the index: the tracker's log, and a batch of pages for each worker."""


def no_room(error: DiskFullError, out: Path, state: Path, settings: Settings) -> DiskFullError:
    """The error with its remedy: which directory is full, what is free there, and how much the run needs."""
    full = min(out, state, key=lambda path: shutil.disk_usage(path).free)
    # the index is written anew beside the old one
    index = sum(path.stat().st_size for path in (*out.glob("*.parquet"), *out.glob("parts/*")))
    needed = _ELBOW_ROOM + Limits(settings, full).min_free + index
    return DiskFullError(
        f"the disk of {full} is full ({error}): {shutil.disk_usage(full).free:,} bytes are free and about {needed:,} "
        "needed; make room and give the same command again"
    )


class Limits:
    """`--max-pages`, `--max-bytes`, `--max-time` and `--min-free` of one run."""

    def __init__(self, settings: Settings, out: Path) -> None:
        self._out = out
        self._started = monotonic()
        self.held = False
        """No pages are handed out, whatever waits."""
        self.change(settings)

    def change(self, settings: Settings) -> None:
        """Apply the limits of these settings from now on."""
        self._pages, self._bytes, self._time = settings.max_pages, settings.max_bytes, settings.max_time
        reserve = settings.min_free
        self.min_free = (
            min(_MOST_RESERVED, shutil.disk_usage(self._out).total // _PART_RESERVED) if reserve is None else reserve
        )

    @property
    def short_of_room(self) -> bool:
        """Whether less is free on the disk than is to stay free. Raises ArchiveError when the directory is gone."""
        try:
            return shutil.disk_usage(self._out).free < self.min_free
        except FileNotFoundError:
            raise ArchiveError(f"{self._out} is gone: put it back and give the same command again") from None

    @property
    def counts(self) -> bool:
        """Whether pages are counted before they are handed out."""
        return self._pages is not None

    def room(self, totals: Totals, out: int, wanted: int) -> int:
        """How many of the wanted pages may be handed out while `out` pages are handed out already."""
        if self.held or (self._bytes is not None and totals.payload_bytes >= self._bytes):
            return 0
        return wanted if self._pages is None else max(0, min(wanted, self._pages - totals.captured - out))

    @property
    def note(self) -> str:
        """Why the crawl waits, for the display; empty for no wait."""
        return f"paused by an operator: muniment job resume -o {self._out} goes on" if self.held else ""

    def reached(self, totals: Totals, *, idle: bool) -> str:
        """The option whose limit is reached; empty for none."""
        if self._pages is not None and totals.captured >= self._pages and idle:
            return "--max-pages"
        if self._bytes is not None and totals.payload_bytes >= self._bytes:
            return "--max-bytes"
        if self._time is not None and monotonic() - self._started >= self._time:
            return "--max-time"
        return ""


class DiskSpace:
    """Watches the output directory's filesystem."""

    def __init__(self, limits: Limits, events: Events) -> None:
        self._limits, self._events = limits, events
        self.paused = False
        self.tick()  # no page is handed out before

    def tick(self) -> None:
        """Look again, and return what has changed. Raises ArchiveError when the directory is gone."""
        short = self._limits.short_of_room
        if short != self.paused:
            self.paused = short
            self._events.publish(PauseEvent(reason="disk") if short else ResumeEvent(reason="disk"))

    @property
    def note(self) -> str:
        """Why the crawl waits, for the display; empty for no wait."""
        return f"paused: less than {self._limits.min_free} bytes are free on the disk" if self.paused else ""
