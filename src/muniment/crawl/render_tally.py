"""What the browsers of all workers do, and have done: by the reports of each, those that have ended included."""

from __future__ import annotations

from muniment.crawl.protocol import RenderReport
from muniment.model.event import OpenTab, RenderSums
from muniment.model.queue import RunSums

__all__ = ["RenderTally"]


class RenderTally:
    """Adds up what workers report."""

    def __init__(self) -> None:
        self._latest: dict[int, RenderReport] = {}
        self._before = RenderSums()
        self._told = RenderSums()

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

    def take_new(self, received_bytes: int) -> RunSums:
        """What was done since the last call, with the bytes that came in since."""
        sums, told = self.sums, self._told
        self._told = sums
        return RunSums(
            received_bytes,
            sums.rendered - told.rendered,
            max(0, sums.needing - told.needing),
            sums.failed - told.failed,
        )

    @property
    def sums(self) -> RenderSums:
        """What was done in this run."""
        return sum((report.sums for report in self._latest.values()), self._before)
