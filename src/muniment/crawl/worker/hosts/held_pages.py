"""Held pages: the pages of each host that a worker has in hand, and when the next one may be fetched.

A task fetches one page at a time over one connection. A host has as many tasks as the worker has permits. Fetched pages
that the tracker has not acknowledged are bounded too (`WINDOW` times the permits), which bounds what a kill repeats.
Taking a page begins its task; its request goes out with `start`, when the host's gap and wait allow it.
"""

from __future__ import annotations

import random
from bisect import bisect_left
from collections.abc import Iterable
from operator import attrgetter

from muniment.clock import monotonic, steady_ms
from muniment.crawl.worker.hosts.held_host import WINDOW, HeldHost
from muniment.crawl.worker.hosts.origin_rests import OriginRests
from muniment.fetch.permits import Permits
from muniment.model.host import HostTerms
from muniment.model.page import Claim
from muniment.settings.option_table import DelayRange

__all__ = ["HeldPages"]

_MOST_LANDED = 500
"""Maximum of pages of all hosts that are fetched and not acknowledged: each window is small, but there are many."""
_HELD_PER_REQUEST = 5
"""Pages held per request in flight: three in the window, two waiting behind them."""
_LAPSED_S = 0.25
"""How often it is looked whether requests may go out again."""
_nice = attrgetter("nice")


class HeldPages:
    """Decides which claim goes next: of a host the lowest nice value, then first in first out. Has no sockets."""

    def __init__(self, inflight: int, delay: DelayRange, permits: Permits) -> None:
        self._hosts: dict[str, HeldHost] = {}
        self._ready: dict[str, None] = {}
        """Hosts that may have room, the longest waiting first; whatever can make room puts a host here."""
        self._left: list[Claim] = []
        """Pages of hosts that are left alone, until they are given back together."""
        self._changed: set[str] = set()
        """Hosts whose permits were changed, until the connections that are open are no more than these."""
        self._inflight, self._delay, self._permits = inflight, delay, permits
        self._rests = OriginRests()
        self.dead: dict[str, str] = {}
        """The origins and names of the hosts here that get no more requests, and why."""
        self._lease_until = 0
        """No request goes out from then on (`clock.steady_ms`); 0 where none has a lease."""
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
        return self.running >= self._inflight and any(host is not None and host.room for host in waiting)

    @property
    def wanted(self) -> int:
        """How many more pages it could hold."""
        return self._inflight * _HELD_PER_REQUEST - self.queued - self.running

    def set_delay(self, delay: DelayRange) -> None:
        """Set another gap from now on: the next request to a host waits a whole new one from now."""
        self._delay = delay
        now = monotonic()
        for host in self._hosts.values():
            host.due = now + self._gap(host)

    def _gap(self, host: HeldHost) -> float:
        return max(random.uniform(self._delay.low, self._delay.high), host.gap_ms) / 1000

    def add(self, claims: list[Claim], terms: Iterable[HostTerms] = ()) -> None:
        """Add claims, with the terms on which their hosts may be asked."""
        for one in terms:
            self._treat(self._host(one.host), one, answer=False)
        for claim in claims:
            self._host(claim.host).add(claim)
            self._ready[claim.host] = None
        self.queued += len(claims)
        if self._rests:
            self._leave_resting({claim.host for claim in claims})

    def treat(self, terms: HostTerms, *, answer: bool = False) -> bool:
        """Treat a host so from now on, if it is here; returns whether it has other permits than before.

        `answer`: the orchestrator knows the news that was sent of it.
        """
        host = self._hosts.get(terms.host)
        if host is None:
            return False
        changed = terms.permits != host.permits.granted
        if changed:
            self._changed.add(terms.host)
        self._treat(host, terms, answer=answer)
        if terms.wait_ms:
            self._leave(host)
        elif terms.rests:
            self._leave_resting((terms.host,))
        self.look_at(terms.host)
        return changed

    def _treat(self, host: HeldHost, terms: HostTerms, *, answer: bool) -> None:
        host.permits.grant(terms.permits)
        if terms.gap_ms != host.gap_ms:
            host.gap_ms = terms.gap_ms
            if host.last:
                host.due = host.last + self._gap(host)
        host.wait_for(terms.wait_ms / 1000, answer=answer)
        host.nameless = terms.nameless
        if terms.rests or self._rests:
            self._rests.tell(terms.host, terms.rests, answer=answer)
        if terms.dead or host.dead:
            self._set_dead(host, terms.dead)

    def _set_dead(self, host: HeldHost, dead: dict[str, str]) -> None:
        for origin in host.dead:
            self.dead.pop(origin, None)
        host.dead = dead
        self.dead.update(dead)

    def permits(self, host: str) -> int:
        """How many connections to a host this worker may have."""
        held = self._hosts.get(host)
        return held.permits.granted if held else 0

    def gap_ms(self, host: str) -> int:
        """Milliseconds between the requests to a host that the orchestrator asks for."""
        held = self._hosts.get(host)
        return held.gap_ms if held else 0

    def startable(self) -> list[str]:
        """Hosts that could start a fetch now, one entry for each that they could start."""
        room = 0 if self._lapsed else self._room
        hosts: list[str] = []
        without: list[str] = []
        for name in self._ready:
            host = self._hosts.get(name)
            if host is None or not host.room:
                without.append(name)
                continue
            if room <= 0:
                break
            permits = host.permits.granted
            more = min(permits - host.running, WINDOW * permits - host.unacked, len(host.queue), room)
            if self._delay.high or host.gap_ms:
                more = 1
            hosts += [name] * more
            room -= more
        for name in without:
            del self._ready[name]
        return hosts

    def look_at(self, host: str) -> None:
        """A host may have room again: its wait is over, or it got permits."""
        self._ready[host] = None

    def take(self, name: str) -> Claim | None:
        """Start the host's next page, or None when it must not start one now."""
        host = self._hosts[name]
        if not host.room:
            return None
        if self._room <= 0:
            return None
        self._unacked += 1
        host.running += 1
        host.unacked += 1
        self.running += 1
        self.queued -= 1
        return host.queue.popleft()

    def put_back(self, claim: Claim) -> None:
        """A taken page whose request may not go out now becomes the next of its kind again."""
        self.landed(claim.host)
        self.acknowledged(claim.host)
        host = self._hosts[claim.host]
        host.queue.insert(bisect_left(host.queue, claim.nice, key=_nice), claim)
        self.queued += 1
        if host.hold > monotonic():
            self._leave(host)
        elif self._rests:
            self._leave_resting((claim.host,))

    def set_lease(self, left_ms: int) -> None:
        """Let no request go out after this time, until the next call."""
        self._lease_until = steady_ms() + left_ms

    @property
    def _lapsed(self) -> bool:
        return bool(self._lease_until) and steady_ms() >= self._lease_until

    def start(self, name: str, url: str) -> bool:
        """Whether a request for a URL of a host may go out at this moment; if so, it counts as sent."""
        host = self._host(name)
        if ((host.due or host.hold) and host.wait() > 0) or self._lapsed:
            return False
        if self._rests and self._rests.left(name, url) > 0:
            return False
        host.last = monotonic()
        if self._delay.high or host.gap_ms:
            host.due = host.last + self._gap(host)
        return True

    def wait(self, name: str, url: str = "") -> float:
        """Seconds until a request to a host, or for a URL of it, may go out; 0 or less for now."""
        host = self._hosts.get(name)
        wait = host.wait() if host and (host.due or host.hold) else 0.0
        if url and self._rests:
            wait = max(wait, self._rests.left(name, url))
        return max(wait, _LAPSED_S) if self._lapsed else wait

    def start_beside(self, name: str, url: str) -> bool:
        """Whether a request of an open page may go out: it waits for no gap, since a page is asked for as a whole."""
        if self._lapsed or self.is_left_alone(name, url):
            return False
        self._host(name).last = monotonic()
        return True

    def left_alone_for(self, name: str, url: str) -> float:
        """Seconds for which a host, or the URL's origin, gets no request, be there a gap or not; 0 or less for now."""
        host = self._hosts.get(name)
        wait = host.hold - monotonic() if host is not None and host.hold else 0.0
        if self._rests:
            wait = max(wait, self._rests.left(name, url))
        return max(wait, _LAPSED_S) if self._lapsed else wait

    def leave_alone(self, name: str, seconds: float, origin: str = "") -> None:
        """Start no page of a host for some seconds, or until the orchestrator has answered what was sent of it.

        With an origin, none of that alone.
        """
        host = self._hosts.get(name)
        if host is not None and origin:
            self._rests.begin(name, origin, seconds)
            self._leave_resting((name,))
        elif host is not None:
            host.hold, host.alone = max(host.hold, monotonic() + seconds), True
            self._leave(host)

    def is_left_alone(self, name: str, url: str) -> bool:
        """Whether no request goes to a host, or to the URL's origin, for some time, be there a gap or not."""
        host = self._hosts.get(name)
        return host is not None and (host.hold > monotonic() or (bool(self._rests) and self._rests.left(name, url) > 0))

    def is_nameless(self, name: str) -> bool:
        """Whether a host's name was not found when it was asked for last."""
        host = self._hosts.get(name)
        return host is not None and host.nameless

    def give_back_left(self) -> list[Claim]:
        """Take out the pages of hosts that are left alone: other pages may be due first, or more."""
        left, self._left = self._left, []
        return left

    def _leave(self, host: HeldHost) -> None:
        self._left += host.queue
        self.queued -= len(host.queue)
        host.queue.clear()

    def _leave_resting(self, names: Iterable[str]) -> None:
        """Take out the pages of origins that are left alone."""
        for name in names:
            queue = self._hosts[name].queue
            left = [claim for claim in queue if self._rests.left(name, claim.url) > 0]
            if left:
                kept = [claim for claim in queue if self._rests.left(name, claim.url) <= 0]
                queue.clear()
                queue.extend(kept)
                self._left += left
                self.queued -= len(left)

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
        self._host(host).permits.enter()

    def leave(self, host: str) -> None:
        """Such a request has ended."""
        self._host(host).permits.leave()

    def give_back_permits(self) -> dict[str, int]:
        """The connections that hosts still have, where some were closed: after a change, or when there is no page."""
        kept: dict[str, int] = {}
        for name in [*self._changed]:
            permits, host = self.permits(name), self._hosts.get(name)
            if host is None or host.permits.open <= permits:
                self._changed.discard(name)
                kept[name] = permits
        for name in [name for name, host in self._hosts.items() if host.idle]:
            if self._give_back(self._hosts[name]):
                kept[name] = 0
            self._forget(name)
        return kept

    def _give_back(self, host: HeldHost) -> bool:
        """Give up an idle host's permits when its connections are closed; returns whether it had some.

        While pages of it are not acknowledged, a release would seem to cross newer claims on the wire.
        """
        if host.hold > monotonic():
            # nothing is kept open while a host is left alone: another worker may ask it next
            host.permits.close_idle()
        if host.unacked or host.permits.open or not host.permits.granted:
            return False
        host.permits.grant(0)
        return True

    def _forget(self, name: str) -> None:
        host = self._hosts[name]
        if not (host.unacked or host.permits.granted):
            self._set_dead(host, {})
            self._rests.forget(name)
            del self._hosts[name]
            self._permits.drop(name)

    def give_back(self) -> list[Claim]:
        """Take out every page that has not been started."""
        claims = [*self.give_back_left(), *(claim for host in self._hosts.values() for claim in host.queue)]
        for host in self._hosts.values():
            host.queue.clear()
        self.queued = 0
        self._ready.clear()
        return claims

    def _host(self, name: str) -> HeldHost:
        host = self._hosts.get(name)
        if host is None:
            host = self._hosts[name] = HeldHost(self._permits[name])
            host.permits.grant(0)
        return host
