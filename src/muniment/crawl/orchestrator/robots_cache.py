"""Robots on the orchestrator's side: one worker fetches an origin's robots.txt, the others wait for its answer."""

from __future__ import annotations

from collections.abc import Callable

from muniment.clock import now_ms
from muniment.crawl import protocol
from muniment.crawl.ports import Queue
from muniment.rules.robots.validity import VALID_MS, RobotsAnswer, settled

__all__ = ["RobotsCache"]

Tell = Callable[[int, protocol.RobotsReply], None]


class RobotsCache:
    """Answers workers by number. An old answer holds on while no new one is available (RFC 9309 §2.4)."""

    def __init__(self, queue: Queue, tell: Tell) -> None:
        self._queue, self._tell = queue, tell
        self._fetching: dict[str, list[tuple[int, int]]] = {}
        """Origin → the worker that fetches its robots.txt, then those that wait, each with its question's number."""

    async def asked(self, worker: int, number: int, origin: str) -> None:
        """A worker asks for an answer; the reply carries the number."""
        if origin in self._fetching:
            self._fetching[origin].append((worker, number))
            return
        known = await self._queue.robots(origin)
        if known is not None and now_ms() - known.fetched_at <= VALID_MS:
            self._tell(worker, protocol.RobotsReply(known, number=number))
            return
        self._fetching[origin] = [(worker, number)]
        self._tell(worker, protocol.RobotsReply(known, fetch=True, number=number))

    async def told(self, worker: int, origin: str, answer: RobotsAnswer | None) -> None:
        """A worker has fetched it; None when the host could not be asked."""
        waiting = self._fetching.pop(origin, [])[1:]
        if answer is not None and settled(answer):
            await self._queue.keep_robots(origin, answer)
        elif waiting:
            answer = await self._queue.robots(origin) or answer
        for other, number in waiting:
            self._tell(other, protocol.RobotsReply(answer, number=number))

    async def gone(self, worker: int) -> None:
        """A worker has ended: the first that waits fetches in its place."""
        for origin, asking in list(self._fetching.items()):
            leads = asking[0][0] == worker
            asking[:] = [(other, number) for other, number in asking if other != worker]
            if not asking:
                del self._fetching[origin]
            elif leads:
                other, number = asking[0]
                known = await self._queue.robots(origin)
                self._tell(other, protocol.RobotsReply(known, fetch=True, number=number))
