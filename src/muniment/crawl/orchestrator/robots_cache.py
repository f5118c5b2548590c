"""Robots on the orchestrator's side: one worker fetches an origin's robots.txt, the others wait for what it tells."""

from __future__ import annotations

from collections.abc import Callable

from muniment.clock import now_ms
from muniment.crawl import protocol
from muniment.crawl.ports import Queue
from muniment.rules.robots.rules import VALID_MS, RobotsAnswer, settled

__all__ = ["RobotsCache"]

Tell = Callable[[int, protocol.RobotsReply], None]


class RobotsCache:
    """Answers workers by number. An answer holds for a day, longer while no new one is to be had (RFC 9309 §2.4)."""

    def __init__(self, queue: Queue, tell: Tell) -> None:
        self._queue, self._tell = queue, tell
        self._fetching: dict[str, list[int]] = {}
        """Origin → the worker that fetches its robots.txt, then those that wait."""

    async def asked(self, worker: int, origin: str) -> None:
        """A worker wants to know."""
        if origin in self._fetching:
            self._fetching[origin].append(worker)
            return
        known = await self._queue.robots(origin)
        if known is not None and now_ms() - known.fetched_at <= VALID_MS:
            self._tell(worker, protocol.RobotsReply(origin, known))
            return
        self._fetching[origin] = [worker]
        self._tell(worker, protocol.RobotsReply(origin, known, fetch=True))

    async def told(self, worker: int, origin: str, answer: RobotsAnswer | None) -> None:
        """A worker has fetched it; None when the host could not be asked."""
        waiting = self._fetching.pop(origin, [worker])[1:]
        if answer is not None and settled(answer):
            await self._queue.keep_robots(origin, answer)
        elif waiting:
            answer = await self._queue.robots(origin) or answer
        for other in waiting:
            self._tell(other, protocol.RobotsReply(origin, answer))

    async def gone(self, worker: int) -> None:
        """A worker has ended: whoever waited for it fetches in its place."""
        for origin, workers in list(self._fetching.items()):
            leads = workers[0] == worker
            workers[:] = [other for other in workers if other != worker]
            if not workers:
                del self._fetching[origin]
            elif leads:
                known = await self._queue.robots(origin)
                self._tell(workers[0], protocol.RobotsReply(origin, known, fetch=True))
