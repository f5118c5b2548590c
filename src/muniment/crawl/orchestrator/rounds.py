"""Later rounds, for pages whose tries are used up when nothing else is left, and how long a run waits for hosts."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection

from muniment.clock import iso_ms, steady_ms
from muniment.crawl.orchestrator.hosts.policy import HostPolicy
from muniment.crawl.ports import Events
from muniment.model.event import PauseEvent
from muniment.model.queue import QueueChanges

__all__ = ["GiveUp", "Rounds"]

_LOOK_MS = 5_000
"""How often to look for such pages beside those of hosts that are waited for."""
_SAID_AFTER_MS = 2_000
"""Waits that are shorter are not reported."""


class Rounds:
    """Begins the later rounds of a job; `take_up` asks for one beside pages of hosts, given by number."""

    def __init__(self, events: Events, take_up: Callable[[Collection[int]], Awaitable[QueueChanges]]) -> None:
        self._events, self._take_up = events, take_up
        self._due_at = self._looked_at = 0
        self._pages = ""

    async def begin(self, waited: Collection[int] = ()) -> bool:
        """Begin a later round when only pages of `waited` hosts are left; returns whether there is one."""
        now = steady_ms()
        if waited and now < self._looked_at + _LOOK_MS:
            return False
        self._looked_at = now
        changes = await self._take_up(waited)
        taken = [one for one in changes.pending if one.due_at]
        if not taken:
            return bool(changes.pending)
        self._tell(sum(one.more for one in taken), min(one.due_at for one in taken))
        return True

    def resume(self, count: int, due_at: int) -> None:
        """Report the wait when an earlier run began a round of so many pages, and none of them is due."""
        if count:
            self._tell(count, due_at)

    def _tell(self, count: int, due_at: int) -> None:
        self._due_at, self._pages = due_at, f"{count} page{'s' * (count != 1)}"
        self._events.publish(PauseEvent(reason=f"a later round for {self._pages}", until=iso_ms(self._due_at)))

    def note(self) -> str:
        """The wait before a round, for the display; empty for none."""
        seconds = (self._due_at - steady_ms() + 999) // 1000
        return f"asking {self._pages} that failed again in {seconds} s" if seconds > 0 else ""


class GiveUp:
    """Decides when the wait for hosts ends."""

    def __init__(self, hosts: HostPolicy, rounds: Rounds, give_up_after: float) -> None:
        self._hosts, self._rounds = hosts, rounds
        self.give_up_after = give_up_after
        """Seconds."""
        self._since = 0

    def went_on(self) -> None:
        """A page is done: the wait begins anew."""
        self._since = 0

    async def tick(self, now: int, held: int) -> str:
        """Check what is left, the `held` pages included; returns why to give up, or an empty text."""
        if not self._hosts.only_waits(held):
            self._since = 0
            return ""
        self._since = self._since or now
        if now - self._since >= self.give_up_after * 1000:
            return f"gave up waiting for {self._named()} after {self.give_up_after:g} s"
        if now - self._since >= _SAID_AFTER_MS:
            self._hosts.pauses.tell_first(now)
            if not (held or self._hosts.lost):
                await self._rounds.begin(self._hosts.pauses.host_ids())
        return ""

    def _named(self) -> str:
        if self._hosts.lost:
            return self._hosts.note().removeprefix("waiting for ")
        waiting = self._hosts.pauses.waited()
        if not waiting:
            return "hosts"
        host, why, _ = waiting[0]
        more = f" and {len(waiting) - 1} more" if len(waiting) > 1 else ""
        return f"{host}{more} ({why})" if why else f"{host}{more}"
