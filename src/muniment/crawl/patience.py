"""Patience: how long a run has waited while nothing but hosts that are waited for is left of it. Times are Unix ms."""

from __future__ import annotations

from muniment.clock import iso_ms
from muniment.crawl.events import EventLog
from muniment.crawl.hosts_desk import HostsDesk

__all__ = ["Patience"]

_SAID_AFTER_MS = 2_000
"""Waits that are over sooner are not written down."""


class Patience:
    """Says when the wait for hosts is to end."""

    def __init__(self, hosts: HostsDesk, events: EventLog, give_up_after: float) -> None:
        self._hosts, self._events = hosts, events
        self.give_up_after = give_up_after
        """Seconds."""
        self._since = 0
        self._said = False

    def went_on(self) -> None:
        """A page is done: the wait begins anew."""
        self._since = 0

    def tick(self, now: int, held: int) -> str:
        """Look at what is left, `held` pages in hand among it; why to give up, or an empty text."""
        if not self._hosts.only_waits(held):
            self._end()
            return ""
        self._since = self._since or now
        if now - self._since >= self.give_up_after * 1000:
            return f"gave up waiting for {self._named()} after {self.give_up_after:g} s"
        if not self._said and now - self._since >= _SAID_AFTER_MS and not self._hosts.lost:
            self._say()
        return ""

    def _end(self) -> None:
        self._since = 0
        if self._said:
            self._said = False
            self._events.write("resume", reason="waiting for hosts")

    def _say(self) -> None:
        waiting = self._hosts.waiting()
        if waiting:
            self._said = True
            host, why, until = waiting[0]
            reason = f"waiting for hosts: {why}" if why else "waiting for hosts"
            self._events.write("pause", host=host, reason=reason, until=iso_ms(until), hosts=len(waiting))

    def _named(self) -> str:
        if self._hosts.lost:
            return "the network"
        waiting = self._hosts.waiting()
        if not waiting:
            return "hosts"
        host, why, _ = waiting[0]
        more = f" and {len(waiting) - 1} more" if len(waiting) > 1 else ""
        return f"{host}{more} ({why})" if why else f"{host}{more}"
