"""The orchestrator's calls of the queue: they are numbered, and what they change is passed on."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from itertools import count
from typing import Any

from muniment.clock import now_ms, steady_ms
from muniment.crawl.ports import Queue
from muniment.model.capture import Capture
from muniment.model.change import Change
from muniment.model.page import FinishBatch
from muniment.model.queue import (
    ChangeOutcome,
    ChangeRequest,
    ClaimOutcome,
    ClaimRequest,
    FinishOutcome,
    FinishRequest,
    HostRecord,
    QueueChanges,
    QueueState,
    UpkeepOutcome,
    UpkeepRequest,
)
from muniment.model.seed import SeedBatch

__all__ = ["QueueClient"]


class QueueClient:
    """Knows how the job stood after the last call; `take_in` goes by what a call changed."""

    def __init__(self, queue: Queue, take_in: Callable[[QueueChanges], None]) -> None:
        self._queue, self._pass_on = queue, take_in
        self._asks = count(1)
        self._drained = False
        self.state = QueueState()

    def take_in(self, changes: QueueChanges) -> None:
        """Go by what a call changed."""
        self.state = changes.state
        self._pass_on(changes)

    async def claim(self, wanted: list[tuple[int, int]], now: int, news: list[HostRecord]) -> ClaimOutcome:
        """Have pages handed out of (host number, most); `news` are the records of hosts that changed."""
        outcome = await self._queue.claim(ClaimRequest(next(self._asks), wanted, now, news))
        self.take_in(outcome.changes)
        return outcome

    async def finish(self, batch: FinishBatch, worker: int, news: list[HostRecord]) -> FinishOutcome:
        """Have it taken in what became of pages; what this changed is for the caller to take in."""
        return await self._queue.finish(FinishRequest(next(self._asks), batch, worker, steady_ms(), news))

    async def upkeep(self, what: Mapping[str, Any] = {}) -> UpkeepOutcome:
        """Have a batch of the tracker's own work done, and what is named: fields of the request."""
        outcome = await self._queue.upkeep(UpkeepRequest(next(self._asks), **what))
        self.take_in(outcome.changes)
        return outcome

    async def admit(self, lines: SeedBatch | None) -> UpkeepOutcome:
        """Have lines of the list taken in, or noted that there are no more."""
        return await self.upkeep({"lines": lines, "list_ended": lines is None})

    async def fetch_again(self, lost: list[Capture]) -> QueueChanges:
        """Have the pages of captures wait again."""
        return (await self.upkeep({"lost": lost})).changes

    async def next_round(self, waited: Collection[int]) -> QueueChanges:
        """Have the pages taken up whose tries are used up, if none but pages of `waited` hosts wait."""
        return (await self.upkeep({"next_round": True, "waited": list(waited)})).changes

    async def settle(self, *, drained: bool) -> None:
        """Move the job between ACTIVE and DRAINING when its last page goes out, or more come in."""
        if drained != self._drained:
            self._drained = drained
            await self._queue.settle(steady_ms())

    async def change(self, change: Change) -> ChangeOutcome:
        """Have an operator's change kept; what it changed of pages is for the caller to take in."""
        return await self._queue.change(ChangeRequest(next(self._asks), change, now_ms()))
