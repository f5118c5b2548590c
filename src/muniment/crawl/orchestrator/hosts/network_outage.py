"""Network outages: whether the network fails, or single hosts. Times are Unix ms of the steady clock."""

from __future__ import annotations

from itertools import islice

from muniment.crawl.ports import Events
from muniment.model.event import PauseEvent, ResumeEvent

__all__ = ["NetworkOutage"]

_MANY = 2
"""Minimum of hosts that fail at once before the network counts as lost: a single one may be down."""
_AT_ONCE_MS = 60_000
"""A network counts as present if a host answered within this time, unless that host fails now, too."""
_LOOK_MS = 5_000
"""While the network is lost, how often it is tested."""
_MOST_ANSWERS, _KEPT_ANSWERS = 256, 64


class NetworkOutage:
    """Gets every host that answers or cannot be reached."""

    def __init__(self, events: Events) -> None:
        self._events = events
        self.lost = False
        """Every host that answered before fails, or our own connection does: the hosts are not at fault."""
        self.why = ""
        """Why the network seems lost."""
        self.silent: dict[int, int] = {}
        """Hosts that answered before and now fail in a way that a lost network would explain, and since when."""
        self._known: dict[int, int] = {}
        """Those of them that have pages; the one that failed first comes first."""
        self._answers: dict[int, int] = {}
        """The hosts that answered recently, and when they last did."""
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
        """Note that the network is there, because a host answered; returns whether it was lost."""
        was_lost, self.lost = self.lost, False
        if was_lost:
            self.silent.clear()
            self._known.clear()
            self._events.publish(ResumeEvent(reason="network"))
        return was_lost

    def fails(self, host_id: int, now: int, *, known: bool, at_work: int) -> bool:
        """A host cannot be reached; returns whether the network is lost from now on.

        `known`: it answered before in this run and has pages; `at_work` is how many such hosts there are.
        """
        if known:
            for silent in (self.silent, self._known):
                silent.pop(host_id, None)
                silent[host_id] = now
            self._forget_oldest(now)
        if self.lost or at_work < _MANY or len(self._known) < at_work or self._others_answer(now):
            return False
        # the first of them failed first
        if now - next(iter(self._known.values())) >= _AT_ONCE_MS:
            return False
        return self._lose(at_work, "no host can be reached")

    def has_no_pages(self, host_id: int) -> None:
        """Whether a host can be reached does not matter any more."""
        self._known.pop(host_id, None)

    def drop(self, host_id: int) -> None:
        """A host is dead, or answers again."""
        self.silent.pop(host_id, None)
        self._known.pop(host_id, None)

    def _forget_oldest(self, now: int) -> None:
        """Two at a time: no more come in at once."""
        for host_id, at in list(islice(self.silent.items(), 2)):
            if host_id not in self._known and now - at >= _AT_ONCE_MS:
                del self.silent[host_id]

    def way_out_fails(self, host_id: int, now: int, why: str) -> bool:
        """Our own connection to a host fails, a proxy or the route; returns whether the network is lost from now on."""
        self.silent[host_id] = now
        return not self.lost and not self.answers_lately(now) and self._lose(len(self.silent), why)

    def most(self, wanted: int, now: int) -> int:
        """How many of the wanted pages may be handed out: while the network is lost, one at intervals as a test."""
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
        self._events.publish(PauseEvent(reason="network", hosts=hosts, why=why))
        return True
