"""Pauses: which hosts, or origins of them, are waited for, and what operators hear of it. Times are Unix ms."""

from __future__ import annotations

from muniment.clock import iso_ms
from muniment.crawl.orchestrator.hosts.states import HostStates, Place
from muniment.crawl.orchestrator.schedule import Schedule
from muniment.crawl.ports import Events
from muniment.model.event import PauseEvent, ResumeEvent
from muniment.rules.hosts.politeness import HostState

__all__ = ["HostPauses"]


class HostPauses:
    """Reports long waits when they begin and end, and knows what else is waited for."""

    def __init__(self, states: HostStates, schedule: Schedule, events: Events) -> None:
        self._states, self._schedule, self._events = states, schedule, events
        self._said: dict[Place, str] = {}
        """The pauses that were reported, or are about to be, and why."""
        self._unsaid: list[tuple[Place, HostState]] = []
        """Those to report when the tracker has kept them."""
        self._waited: set[Place] = set()
        """Places that had bad news and have not answered since: their pages are not due, or are asked for as a test."""

    def wait(self, place: Place) -> None:
        """A place is waited for from now on."""
        self._waited.add(place)

    def wait_no_more(self, place: Place) -> None:
        """It has answered, or has no more pages."""
        self._waited.discard(place)

    def note(self, place: Place, state: HostState) -> None:
        """A long wait has begun."""
        self._said[place] = state.reason
        self._unsaid.append((place, state))

    def tell_noted(self) -> None:
        """Report the waits that were noted: the tracker has them."""
        for place, state in self._unsaid:
            self.tell(place, state)
        self._unsaid.clear()

    def tell(self, place: Place, state: HostState) -> None:
        """Report a wait."""
        self._said[place] = state.reason
        name, until = self._schedule.name(place[0]), iso_ms(state.until)
        self._events.publish(PauseEvent(host=name, reason=state.reason, until=until))

    def drop(self, place: Place) -> None:
        """Its wait is over without a word."""
        self._said.pop(place, None)

    def tells_of(self, host_id: int) -> bool:
        """Whether the end of a host's wait is to be reported."""
        return any(one == host_id for one, _ in self._said)

    def tick(self, now: int) -> None:
        """Report which pauses are over."""
        for place, reason in list(self._said.items()):
            if self._until(place) <= now:
                del self._said[place]
                self._events.publish(ResumeEvent(host=self._schedule.name(place[0]), reason=reason))

    def _until(self, place: Place) -> int:
        return self._states.at(place, answered=True).until

    def only_waits(self, held: int) -> bool:
        """Whether everything left, the `held` pages included, is of hosts that are waited for."""
        left = self._schedule.pending + held
        pages = {host_id: self._schedule.waiting_pages(host_id) for host_id in self.host_ids()}
        self._waited = {place for place in self._waited if pages[place[0]]}
        return bool(left) and sum(pages.values()) >= left

    def waited(self) -> list[tuple[str, str, int]]:
        """(host, why, until when) of what is waited for and has pages, what is asked first before."""
        waiting = [one for one in self._waited if self._schedule.waiting_pages(one[0])]
        states = [(self._schedule.name(one[0]), self._states.at(one, answered=True)) for one in waiting]
        return [(name, state.reason, state.until) for name, state in sorted(states, key=lambda one: one[1].until)]

    def host_ids(self) -> frozenset[int]:
        """The numbers of the hosts that are waited for."""
        return frozenset(host_id for host_id, _ in self._waited)

    def tell_first(self, now: int) -> None:
        """Report which host is waited for, when nothing else is left to do and none was reported yet."""
        waited = [one for one in self._waited if self._until(one) > now and self._schedule.waiting_pages(one[0])]
        if waited and self._said.keys().isdisjoint(waited):
            first = min(waited, key=self._until)
            self.tell(first, self._states.at(first, answered=True))
