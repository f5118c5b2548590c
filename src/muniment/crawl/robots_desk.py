"""Robots on the orchestrator's side: one worker fetches an origin's robots.txt, the others wait for what it tells."""

from __future__ import annotations

from collections.abc import Callable

from muniment.clock import now_ms
from muniment.rules.robots import RobotsAnswer, settled
from muniment.tracker.robots import RobotsBook

__all__ = ["RobotsDesk"]

Answer = Callable[[int, str, RobotsAnswer | None], None]


class RobotsDesk:
    """Answers workers by number: with what is known, or with None for "fetch it"."""

    def __init__(self, book: RobotsBook, answer: Answer) -> None:
        self._book, self._answer = book, answer
        self._fetching: dict[str, list[int]] = {}
        """Origin → the worker that fetches its robots.txt, then those that wait."""

    def asked(self, worker: int, origin: str) -> None:
        """A worker wants to know."""
        if origin in self._fetching:
            self._fetching[origin].append(worker)
            return
        known = self._book.find(origin, now_ms())
        if known is None:
            self._fetching[origin] = [worker]
        self._answer(worker, origin, known)

    def told(self, worker: int, origin: str, answer: RobotsAnswer) -> None:
        """A worker has fetched it."""
        if settled(answer):
            self._book.keep(origin, answer)
        for waiting in self._fetching.pop(origin, [worker])[1:]:
            self._answer(waiting, origin, answer)

    def gone(self, worker: int) -> None:
        """A worker has ended: whoever waited for it fetches in its place."""
        for origin, workers in list(self._fetching.items()):
            leads = workers[0] == worker
            workers[:] = [other for other in workers if other != worker]
            if not workers:
                del self._fetching[origin]
            elif leads:
                self._answer(workers[0], origin, None)
