"""The orchestrator's calls of the queue: they are numbered, and their changes are passed on."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from itertools import count
from typing import Any

from muniment.clock import now_ms, steady_ms
from muniment.crawl import protocol
from muniment.crawl.orchestrator.hosts.policy import HostPolicy
from muniment.crawl.orchestrator.schedule import Schedule
from muniment.crawl.ports import Events, Queue
from muniment.model.capture import Capture
from muniment.model.change import GUARDIAN, Change
from muniment.model.event import change_events, skip_events
from muniment.model.host import HostRecord
from muniment.model.page import FinishBatch
from muniment.model.queue import (
    ChangeOutcome,
    ChangeRequest,
    ClaimOutcome,
    ClaimRequest,
    FinishOutcome,
    FinishRequest,
    QueueChanges,
    QueueState,
    RunSums,
    UpkeepOutcome,
    UpkeepRequest,
)
from muniment.model.seed import SeedBatch

__all__ = ["PendingIntake", "QueueClient"]


class QueueClient:
    """Keeps the job's state after the last call; `take_in` applies what a call changed."""

    def __init__(self, queue: Queue, take_in: Callable[[QueueChanges], None]) -> None:
        self._queue, self._pass_on = queue, take_in
        self._asks = count(1)
        self._drained = False
        self.state = QueueState()

    def take_in(self, changes: QueueChanges) -> None:
        """Apply what a call changed."""
        self.state = changes.state
        self._pass_on(changes)

    async def look_up(
        self, question: protocol.AskKnown | protocol.AskCookies | protocol.AskIgnored
    ) -> protocol.KnownDigests | protocol.CookieField | protocol.IgnoredReply:
        """The answer to a worker's question about what the queue has."""
        match question:
            case protocol.AskKnown(digests, number=n):
                return protocol.KnownDigests(await self._queue.known(digests), number=n)
            case protocol.AskCookies(url, number=n):
                return protocol.CookieField(await self._queue.cookies(url, steady_ms() // 1000), number=n)
            case protocol.AskIgnored(url, depth, number=n):
                return protocol.IgnoredReply(await self._queue.ignored(url, depth), number=n)

    async def claim(
        self, wanted: list[tuple[int, int]], now: int, news: list[HostRecord], without: dict[int, list[str]]
    ) -> ClaimOutcome:
        """Have pages handed out of (host number, most); `news` are the records of hosts that changed.

        `without` says how the URLs of hosts begin of which none is handed out.
        """
        outcome = await self._queue.claim(ClaimRequest(next(self._asks), wanted, now, news, without))
        self.take_in(outcome.changes)
        return outcome

    async def finish(self, batch: FinishBatch, worker: int, news: list[HostRecord], added: RunSums) -> FinishOutcome:
        """Send what became of pages to the queue; the caller applies what this changed."""
        return await self._queue.finish(FinishRequest(next(self._asks), batch, worker, steady_ms(), news, added))

    async def upkeep(self, what: Mapping[str, Any] = {}) -> UpkeepOutcome:
        """Have a batch of the tracker's own work done, and what the fields of the request name."""
        outcome = await self._queue.upkeep(UpkeepRequest(next(self._asks), **what))
        self.take_in(outcome.changes)
        return outcome

    async def admit(self, lines: SeedBatch | None) -> UpkeepOutcome:
        """Send lines of the list to the queue, or that there are no more."""
        return await self.upkeep({"lines": lines, "list_ended": lines is None})

    async def fetch_again(self, lost: list[Capture]) -> QueueChanges:
        """Have the pages of captures wait again."""
        return (await self.upkeep({"lost": lost})).changes

    async def next_round(self, waited: Collection[int]) -> QueueChanges:
        """Have the pages whose tries are used up taken into a later round, if only pages of `waited` hosts wait."""
        return (await self.upkeep({"next_round": True, "waited": list(waited)})).changes

    async def keep_permits(self, held: dict[int, int]) -> None:
        """Tell the queue how many connections may be open to hosts, by number, after some were closed."""
        if held:
            await self._queue.keep_hosts([], held)

    async def settle(self, *, drained: bool) -> None:
        """Move the job between ACTIVE and DRAINING when its last page goes out, or more come in."""
        if drained != self._drained:
            self._drained = drained
            await self._queue.settle(steady_ms())

    async def change(self, change: Change) -> ChangeOutcome:
        """Have an operator's change kept; the caller applies what it changed of pages."""
        return await self._queue.change(ChangeRequest(next(self._asks), change, now_ms()))


class PendingIntake:
    """Applies what calls of the queue changed of its pages."""

    def __init__(self, events: Events, schedule: Schedule, hosts: HostPolicy) -> None:
        self._events, self._schedule, self._hosts = events, schedule, hosts

    def __call__(self, changes: QueueChanges) -> None:
        """Pass on what is left out, and what waits of each host."""
        self._events.publish(*change_events(GUARDIAN, changes.made), *skip_events(changes.skipped))
        for host in changes.pending:
            if host.fewer:
                self._schedule.drop_pending(host.host_id, host.fewer)
            if host.more:
                self._schedule.add_pending(host.host_id, host.name, host.more, host.due_at)
                self._hosts.plan(host.host_id, host.record)
            if host.permits is not None:
                self._hosts.grant(host.host_id, host.permits)
