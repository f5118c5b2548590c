"""Patience: how long a run has waited while nothing but hosts that are waited for is left of it. Times are Unix ms."""

from __future__ import annotations

from muniment.crawl.orchestrator.host_policy import HostPolicy
from muniment.crawl.orchestrator.rounds import Rounds

__all__ = ["GiveUp"]

_SAID_AFTER_MS = 2_000
"""Waits that are over sooner are not written down."""


class GiveUp:
    """Says when the wait for hosts is to end."""

    def __init__(self, hosts: HostPolicy, rounds: Rounds, give_up_after: float) -> None:
        self._hosts, self._rounds = hosts, rounds
        self.give_up_after = give_up_after
        """Seconds."""
        self._since = 0

    def went_on(self) -> None:
        """A page is done: the wait begins anew."""
        self._since = 0

    def tick(self, now: int, held: int) -> str:
        """Look at what is left, `held` pages in hand among it; why to give up, or an empty text."""
        if not self._hosts.only_waits(held):
            self._since = 0
            return ""
        self._since = self._since or now
        if now - self._since >= self.give_up_after * 1000:
            return f"gave up waiting for {self._named()} after {self.give_up_after:g} s"
        if now - self._since >= _SAID_AFTER_MS:
            self._hosts.tell_wait(now)
            if not (held or self._hosts.lost):
                self._rounds.begin(self._hosts.waited_ids())
        return ""

    def _named(self) -> str:
        if self._hosts.lost:
            return self._hosts.note().removeprefix("waiting for ")
        waiting = self._hosts.waited()
        if not waiting:
            return "hosts"
        host, why, _ = waiting[0]
        more = f" and {len(waiting) - 1} more" if len(waiting) > 1 else ""
        return f"{host}{more} ({why})" if why else f"{host}{more}"
