"""Host queues: the pages a worker holds, per host, and when the next one may be fetched.

A task fetches one page at a time over one connection. A host has as many tasks as the worker has permits. Fetched pages
that the tracker has not acknowledged are bounded too (`_WINDOW` times the permits), which bounds what a kill repeats.
Taking a page begins its task; its request goes out with `start`, when the host's gap and wait allow it.
"""

from __future__ import annotations

import random
from bisect import bisect_left, bisect_right
from collections import deque
from operator import attrgetter

from muniment.clock import monotonic
from muniment.model.page import Claim
from muniment.settings.table import DelayRange

__all__ = ["HeldPages"]

_WINDOW = 3
_MOST_LANDED = 500
"""Maximum of pages of all hosts that are fetched and not acknowledged: each window is small, but there are many."""
_HELD_PER_REQUEST = 5
"""Pages held per request in flight: three in the window, two waiting behind them."""
_nice = attrgetter("nice")


class _HostLanes:
    __slots__ = ("due", "guests", "hold", "last", "permits", "queue", "running", "set_gap", "unacked", "wanted_gap")

    def __init__(self) -> None:
        self.queue: deque[Claim] = deque()
        self.permits = 0
        self.running = 0
        self.unacked = 0
        self.guests = 0
        """Requests under way that belong to no page."""
        self.wanted_gap = 0.0
        """Seconds between requests that its robots.txt, as known here, asks for."""
        self.set_gap = 0.0
        """Seconds between requests that the orchestrator asks for."""
        self.last = 0.0
        """When the last request went out."""
        self.due = 0.0
        """When the next one may, with a gap."""
        self.hold = 0.0
        """No request goes out before."""

    def add(self, claim: Claim) -> None:
        # usually it goes before nothing
        if self.queue and self.queue[-1].nice > claim.nice:
            self.queue.insert(bisect_right(self.queue, claim.nice, key=_nice), claim)
        else:
            self.queue.append(claim)

    @property
    def room(self) -> bool:
        return (
            bool(self.queue)
            and self.running < self.permits
            and self.unacked < _WINDOW * self.permits
            and not ((self.due or self.hold) and self.wait() > 0)
        )

    def wait(self) -> float:
        return max(self.due, self.hold) - monotonic()

    @property
    def gap(self) -> float:
        """Seconds between requests."""
        return max(self.wanted_gap, self.set_gap)

    @property
    def idle(self) -> bool:
        # while its delay runs, a host stays here with its permits: its next worker would not know of the delay
        return not (self.queue or self.running or self.guests) and (not self.due or monotonic() >= self.due)


class HeldPages:
    """Decides which claim goes next: of a host the lowest nice value, then first in first out. Has no sockets."""

    def __init__(self, inflight: int, delay: DelayRange) -> None:
        self._hosts: dict[str, _HostLanes] = {}
        self._ready: dict[str, None] = {}
        """Hosts that may have room, the longest waiting first; whatever can make room puts a host here."""
        self._left: list[Claim] = []
        """Pages of hosts that are left alone, until they are given back together."""
        self._inflight, self._delay = inflight, delay
        self.running = 0
        self.queued = 0
        self._unacked = 0

    @property
    def _room(self) -> int:
        """How many pages may be started now, over all hosts."""
        return 0 if self._unacked - self.running >= _MOST_LANDED else self._inflight - self.running

    def set_inflight(self, inflight: int) -> None:
        """Run so many at a time over all hosts from now on."""
        self._inflight = inflight

    @property
    def full(self) -> bool:
        """A page could start but for the limit of all hosts together."""
        waiting = map(self._hosts.get, self._ready)
        return self.running >= self._inflight and any(lanes is not None and lanes.room for lanes in waiting)

    @property
    def wanted(self) -> int:
        """How many more pages it could hold."""
        return self._inflight * _HELD_PER_REQUEST - self.queued - self.running

    def set_delay(self, delay: DelayRange) -> None:
        """Set another gap from now on: the next request to a host waits a whole new one from now."""
        self._delay = delay
        now = monotonic()
        for lanes in self._hosts.values():
            lanes.due = now + self._gap(lanes)

    def _gap(self, lanes: _HostLanes) -> float:
        return max(random.uniform(self._delay.low, self._delay.high) / 1000, lanes.gap)

    def add(self, claims: list[Claim]) -> None:
        """Add claims."""
        for claim in claims:
            self._host(claim.host).add(claim)
            self._ready[claim.host] = None
        self.queued += len(claims)

    def permit(self, host: str, permits: int) -> None:
        """Set how many connections to a host this worker may have."""
        self._host(host).permits = permits
        self.look_at(host)

    def permits(self, host: str) -> int:
        """How many connections to a host this worker may have."""
        lanes = self._hosts.get(host)
        return lanes.permits if lanes else 0

    def startable(self) -> list[str]:
        """Hosts that could start a fetch now, one entry for each that they could start."""
        room = self._room
        hosts: list[str] = []
        without: list[str] = []
        for name in self._ready:
            lanes = self._hosts.get(name)
            if lanes is None or not lanes.room:
                without.append(name)
                continue
            if room <= 0:
                break
            more = min(lanes.permits - lanes.running, _WINDOW * lanes.permits - lanes.unacked, len(lanes.queue), room)
            if self._delay.high or lanes.gap:
                more = 1
            hosts += [name] * more
            room -= more
        for name in without:
            del self._ready[name]
        return hosts

    def look_at(self, host: str) -> None:
        """A host may have room again: its wait is over, or it got permits."""
        self._ready[host] = None

    def take(self, host: str) -> Claim | None:
        """Start the host's next page, or None when it must not start one now."""
        lanes = self._hosts[host]
        if not lanes.room:
            return None
        if self._room <= 0:
            return None
        self._unacked += 1
        lanes.running += 1
        lanes.unacked += 1
        self.running += 1
        self.queued -= 1
        return lanes.queue.popleft()

    def put_back(self, claim: Claim) -> None:
        """A taken page whose request may not go out now becomes the next of its kind again."""
        self.landed(claim.host)
        self.acknowledged(claim.host)
        lanes = self._hosts[claim.host]
        lanes.queue.insert(bisect_left(lanes.queue, claim.nice, key=_nice), claim)
        self.queued += 1
        if self.held(claim.host):
            self._leave(lanes)

    def start(self, host: str) -> bool:
        """Whether a request may go out at this moment; if so, it counts as sent."""
        lanes = self._host(host)
        if (lanes.due or lanes.hold) and lanes.wait() > 0:
            return False
        lanes.last = monotonic()
        if self._delay.high or lanes.gap:
            lanes.due = lanes.last + self._gap(lanes)
        return True

    def wait(self, host: str) -> float:
        """Seconds until a request to a host may go out; 0 or less for now."""
        lanes = self._hosts.get(host)
        return lanes.wait() if lanes and (lanes.due or lanes.hold) else 0.0

    def keep_gap(self, host: str, gap: float) -> None:
        """From the last request on, leave so many seconds between requests (`Crawl-delay`)."""
        lanes = self._host(host)
        if gap > lanes.wanted_gap:
            lanes.wanted_gap = gap
            if lanes.last:
                lanes.due = max(lanes.due, lanes.last + gap)

    def set_gap(self, host: str, gap: float) -> None:
        """From the last request on, leave the seconds between requests that the orchestrator asks for."""
        lanes = self._hosts.get(host)
        if lanes is not None and gap != lanes.set_gap:
            lanes.set_gap = gap
            if lanes.last:
                lanes.due = lanes.last + max(self._gap(lanes), 0.0)
            self.look_at(host)

    def hold(self, host: str, seconds: float) -> None:
        """Start no page of a host for some seconds; 0 ends that."""
        lanes = self._hosts.get(host)
        if lanes is not None:
            lanes.hold = monotonic() + seconds if seconds > 0 else 0.0
            if seconds > 0:
                self._leave(lanes)
            self.look_at(host)

    def give_back_held(self) -> list[Claim]:
        """Take out the pages of hosts that are left alone: other pages may be due first, or more."""
        left, self._left = self._left, []
        return left

    def _leave(self, lanes: _HostLanes) -> None:
        self._left += lanes.queue
        self.queued -= len(lanes.queue)
        lanes.queue.clear()

    def held(self, host: str) -> bool:
        """Whether a host is being left alone."""
        lanes = self._hosts.get(host)
        return lanes is not None and lanes.hold > monotonic()

    def landed(self, host: str) -> None:
        """A fetch has ended, with any outcome."""
        self._hosts[host].running -= 1
        self.running -= 1
        self._ready[host] = None

    def acknowledged(self, host: str) -> None:
        """The tracker has stored what became of a page."""
        self._unacked -= 1
        self._hosts[host].unacked -= 1
        self._ready[host] = None

    def enter(self, host: str) -> None:
        """A request that belongs to no page begins to wait for its turn: the host is not idle until it leaves."""
        self._host(host).guests += 1

    def leave(self, host: str) -> int:
        """Such a request has ended; returns how many others there are."""
        lanes = self._host(host)
        lanes.guests -= 1
        return lanes.guests

    def idle_hosts(self) -> list[str]:
        """Hosts without pages or requests here."""
        return [name for name, lanes in self._hosts.items() if lanes.idle]

    def returnable(self, host: str) -> bool:
        """Whether an idle host's permits may go back.

        While pages of it are not acknowledged, a release would seem to cross newer claims on the wire.
        """
        lanes = self._hosts[host]
        return bool(lanes.permits) and not lanes.unacked

    def forget(self, host: str) -> bool:
        """Drop an idle host whose pages are acknowledged and whose permits are given back; returns whether it was."""
        lanes = self._hosts.get(host)
        if lanes and lanes.idle and not lanes.unacked and not lanes.permits:
            del self._hosts[host]
            return True
        return False

    def give_back(self) -> list[Claim]:
        """Take out every page that has not been started."""
        claims = [*self.give_back_held(), *(claim for lanes in self._hosts.values() for claim in lanes.queue)]
        for lanes in self._hosts.values():
            lanes.queue.clear()
        self.queued = 0
        self._ready.clear()
        return claims

    def _host(self, name: str) -> _HostLanes:
        lanes = self._hosts.get(name)
        if lanes is None:
            lanes = self._hosts[name] = _HostLanes()
        return lanes
