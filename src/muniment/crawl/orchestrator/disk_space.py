"""The disk desk: no pages are handed out while less than `--min-free` is free."""

from __future__ import annotations

import shutil
from pathlib import Path

from muniment.crawl.events import EventLog
from muniment.crawl.orchestrator.limits import Limits
from muniment.errors import ArchiveError

__all__ = ["DiskDesk"]


class DiskDesk:
    """Watches the output directory's filesystem."""

    def __init__(self, out: Path, limits: Limits, events: EventLog) -> None:
        self._out, self._limits, self._events = out, limits, events
        self.paused = False

    def tick(self) -> None:
        """Look again, and tell what has changed. Raises ArchiveError when the directory is gone."""
        try:
            short = shutil.disk_usage(self._out).free < self._limits.min_free
        except FileNotFoundError:
            raise ArchiveError(f"{self._out} is gone: put it back and give the same command again") from None
        if short != self.paused:
            self.paused = short
            self._events.write("pause" if short else "resume", reason="disk")

    @property
    def note(self) -> str:
        """What keeps the crawl waiting, for the display; empty for nothing."""
        return f"paused: less than {self._limits.min_free} bytes are free on the disk" if self.paused else ""
