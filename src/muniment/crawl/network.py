"""Network: whether it is the network that fails and no host of it. Times are Unix ms of the steady clock."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from muniment.crawl.events import EventLog

__all__ = ["Network"]

_MANY = 2
"""Hosts that must fail at once before the network is held to be lost: one alone may be down."""
_AT_ONCE_MS = 60_000
"""A network from which a host answered so lately is there, unless that host fails now, too."""
_LOOK_MS = 5_000
"""While the network is lost, how often it is looked for."""
_MOST_ANSWERS, _KEPT_ANSWERS = 256, 64


class Network:
    """Hears of every host that answers or cannot be reached."""

    def __init__(self, events: EventLog) -> None:
        self._events = events
        self.lost = False
        """Every host that had answered fails, or our own way out does: it is no fault of theirs."""
        self.why = ""
        """What makes it seem lost."""
        self.silent: dict[int, int] = {}
        """Hosts that had answered and now fail in a way that a lost network would explain, and since when."""
        self._answers: dict[int, int] = {}
        """The hosts that answered lately, and when they did last."""
        self._look_at = 0

    def answered(self, host_id: int, now: int) -> None:
        """A host has answered."""
        self._answers[host_id] = now
        if len(self._answers) > _MOST_ANSWERS:
            latest = sorted(self._answers.items(), key=lambda one: one[1])[-_KEPT_ANSWERS:]
            self._answers = dict(latest)

    def answers_lately(self, now: int) -> bool:
        """Whether any host answered in the last minute."""
        return any(now - at < _AT_ONCE_MS for at in self._answers.values())

    def is_there(self) -> bool:
        """Note that the network is there, because a host answered; whether it was lost."""
        was_lost, self.lost = self.lost, False
        if was_lost:
            self.silent.clear()
            self._events.write("resume", reason="network")
        return was_lost

    def fails(self, host_id: int, now: int, *, heard: bool, busy: Callable[[], Iterable[int]]) -> bool:
        """A host cannot be reached; whether the network is lost from now on.

        `heard`: it had answered in this run; `busy` gives the hosts that had and that have pages.
        """
        if heard:
            self.silent[host_id] = now
        if self.lost or len(self.silent) < _MANY or self._others_answer(now):
            return False
        hosts = 0
        for other in busy():
            if now - self.silent.get(other, 0) >= _AT_ONCE_MS:
                return False
            hosts += 1
        return hosts >= _MANY and self._lose(hosts, "no host can be reached")

    def way_out_fails(self, host_id: int, now: int, why: str) -> bool:
        """Our own way to a host fails, a proxy or the route; whether the network is lost from now on."""
        self.silent[host_id] = now
        return not self.lost and not self.answers_lately(now) and self._lose(len(self.silent), why)

    def most(self, wanted: int, now: int) -> int:
        """How many of the wanted pages may be handed out: while the network is lost, one now and then finds out."""
        if not self.lost or wanted <= 0:
            return wanted
        if now < self._look_at:
            return 0
        self._look_at = now + _LOOK_MS
        return 1

    def _others_answer(self, now: int) -> bool:
        silent = self.silent
        return any(now - at < _AT_ONCE_MS and at > silent.get(other, 0) for other, at in self._answers.items())

    def _lose(self, hosts: int, why: str) -> bool:
        self.lost, self.why = True, why
        self._events.write("pause", reason="network", hosts=hosts, why=why)
        return True
