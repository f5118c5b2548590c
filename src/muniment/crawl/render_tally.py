"""What the browsers of all workers do, and have done: by the reports of each, those that have ended included."""

from __future__ import annotations

from muniment.crawl.protocol import RenderReport
from muniment.model.event import OpenTab, RenderSums

__all__ = ["RenderTally"]


class RenderTally:
    """Adds up what workers report."""

    def __init__(self) -> None:
        self._latest: dict[int, RenderReport] = {}
        self._before = RenderSums()

    def take(self, worker: int, report: RenderReport) -> None:
        """The latest report of a worker."""
        self._latest[worker] = report

    def ended(self, worker: int) -> None:
        """A worker has ended, and with it all that was open in its browsers."""
        self._before += self._latest.pop(worker, RenderReport()).sums

    @property
    def tabs(self) -> tuple[OpenTab, ...]:
        """What is open, the oldest first."""
        tabs = [tab for report in self._latest.values() for tab in report.tabs]
        return tuple(sorted(tabs, key=lambda tab: -tab.age_s))

    @property
    def sums(self) -> RenderSums:
        """What was done in this run."""
        return sum((report.sums for report in self._latest.values()), self._before)
