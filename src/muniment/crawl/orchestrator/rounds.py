"""Rounds: pages whose tries are used up are asked again when nothing else is left."""

from __future__ import annotations

from collections.abc import Callable, Collection

from muniment.clock import iso_ms, steady_ms
from muniment.crawl.ports import Events
from muniment.model.event import PauseEvent
from muniment.tracker.queue.frontier import Frontier

__all__ = ["Rounds"]

_LOOK_MS = 5_000
"""How often it is looked for pages to take up beside those of hosts that are waited for."""


class Rounds:
    """Begins the later rounds of a job; `add_pending` takes pages per host number, and when the first is due."""

    def __init__(
        self, frontier: Frontier, events: Events, add_pending: Callable[[dict[int, int], dict[int, int]], None]
    ) -> None:
        self._frontier, self._events, self._add_pending = frontier, events, add_pending
        self._due_at = self._looked_at = 0
        self._pages = ""

    def begin(self, waited: Collection[int] = ()) -> bool:
        """Take up what a later round has to do, when pages of `waited` hosts alone are left; whether there is any."""
        now = steady_ms()
        if waited and now < self._looked_at + _LOOK_MS:
            return False
        self._looked_at = now
        taken = self._frontier.next_round(waited)
        if not taken:
            return False
        self._add_pending({host: pages for host, pages, _ in taken}, {host: due_at for host, _, due_at in taken})
        self._tell(sum(pages for _, pages, _ in taken), min(due_at for _, _, due_at in taken))
        return True

    def resume(self) -> None:
        """Say what is waited for when an earlier run began a round, and none of its pages is due."""
        count, due_at = self._frontier.begun_round(steady_ms())
        if count:
            self._tell(count, due_at)

    def _tell(self, count: int, due_at: int) -> None:
        self._due_at, self._pages = due_at, f"{count} page{'s' * (count != 1)}"
        self._events.publish(PauseEvent(reason=f"a later round for {self._pages}", until=iso_ms(self._due_at)))

    def note(self) -> str:
        """What is waited for before a round, for the display; empty for nothing."""
        seconds = (self._due_at - steady_ms() + 999) // 1000
        return f"asking {self._pages} that failed again in {seconds} s" if seconds > 0 else ""
