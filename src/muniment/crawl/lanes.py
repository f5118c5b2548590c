"""Lanes: the pages a worker holds, per host, and when the next one may be fetched.

A lane is one connection's worth of work. A host has as many lanes as the worker has permits for it. Pages fetched but
not yet acknowledged by the tracker are bounded too (`_WINDOW` times the permits), which bounds what a kill repeats.
"""

from __future__ import annotations

import random
from collections import deque

from muniment.clock import monotonic
from muniment.model.page import Claim
from muniment.settings import DelayRange

__all__ = ["Lanes"]

_WINDOW = 3


class _HostLanes:
    __slots__ = ("next_start", "permits", "queue", "running", "unacked")

    def __init__(self) -> None:
        self.queue: deque[Claim] = deque()
        self.permits = 0
        self.running = 0
        self.unacked = 0
        self.next_start = 0.0

    @property
    def room(self) -> bool:
        return bool(self.queue) and self.running < self.permits and self.unacked < _WINDOW * self.permits

    @property
    def idle(self) -> bool:
        # while its delay runs, a host stays here with its permits: whoever got it next would not know of the delay
        return not (self.queue or self.running) and monotonic() >= self.next_start


class Lanes:
    """Decides which claim goes next; knows nothing of sockets."""

    def __init__(self, inflight: int, delay: DelayRange) -> None:
        self._hosts: dict[str, _HostLanes] = {}
        self._inflight, self._delay = inflight, delay
        self.running = 0
        self.queued = 0

    def set_pace(self, inflight: int, delay: DelayRange) -> None:
        """Another pace from now on: the next request to a host starts a whole new gap from now, whatever was due."""
        self._inflight, self._delay = inflight, delay
        now = monotonic()
        for lanes in self._hosts.values():
            lanes.next_start = now + self._gap()

    def _gap(self) -> float:
        return random.uniform(self._delay.low, self._delay.high) / 1000

    def add(self, claims: list[Claim]) -> None:
        """Take in claims."""
        for claim in claims:
            self._host(claim.host).queue.append(claim)
        self.queued += len(claims)

    def permit(self, host: str, permits: int) -> None:
        """Set how many connections to a host this worker may have."""
        self._host(host).permits = permits

    def permits(self, host: str) -> int:
        """How many connections to a host this worker may have."""
        lanes = self._hosts.get(host)
        return lanes.permits if lanes else 0

    def startable(self) -> list[str]:
        """Hosts that could start a fetch now, one entry for each that they could start."""
        room = self._inflight - self.running
        hosts: list[str] = []
        for name, lanes in self._hosts.items():
            if room <= 0:
                break
            if lanes.room:
                more = min(
                    lanes.permits - lanes.running, _WINDOW * lanes.permits - lanes.unacked, len(lanes.queue), room
                )
                hosts += [name] * more
                room -= more
        return hosts

    def take(self, host: str) -> Claim | None:
        """Start the host's next page, or None when it must not start one now."""
        lanes = self._hosts[host]
        if not lanes.room or self.running >= self._inflight:
            return None
        lanes.running += 1
        lanes.unacked += 1
        self.running += 1
        self.queued -= 1
        return lanes.queue.popleft()

    def pause(self, host: str) -> float:
        """Seconds until the request just taken may start (`--delay`)."""
        if not self._delay.high:
            return 0.0
        lanes, now = self._hosts[host], monotonic()
        start = max(now, lanes.next_start)
        lanes.next_start = start + self._gap()
        return start - now

    def landed(self, host: str) -> None:
        """A fetch has ended, whatever came of it."""
        self._hosts[host].running -= 1
        self.running -= 1

    def acknowledged(self, host: str) -> None:
        """The tracker knows what became of a page."""
        self._hosts[host].unacked -= 1

    def idle_hosts(self) -> list[str]:
        """Hosts with nothing to do here."""
        return [name for name, lanes in self._hosts.items() if lanes.idle]

    def forget(self, host: str) -> None:
        """Drop an idle host whose pages are all acknowledged and whose permits are given back."""
        lanes = self._hosts.get(host)
        if lanes and lanes.idle and not lanes.unacked and not lanes.permits:
            del self._hosts[host]

    def give_back(self) -> list[Claim]:
        """Take out every page that has not been started."""
        claims = [claim for lanes in self._hosts.values() for claim in lanes.queue]
        for lanes in self._hosts.values():
            lanes.queue.clear()
        self.queued = 0
        return claims

    def _host(self, name: str) -> _HostLanes:
        lanes = self._hosts.get(name)
        if lanes is None:
            lanes = self._hosts[name] = _HostLanes()
        return lanes
