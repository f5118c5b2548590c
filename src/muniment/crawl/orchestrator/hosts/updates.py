"""Host updates: what workers are sent of a host, always whole: its permits, gap and wait, and what of it is dead.

They go to workers that have pages of a host, and to those with an open page that asks it for something.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from msgspec import structs

from muniment.clock import steady_ms
from muniment.crawl.orchestrator.hosts.dead_origins import DeadOrigins
from muniment.crawl.orchestrator.schedule import Schedule
from muniment.crawl.protocol import AskPermits, FromOrchestrator, HostUpdate, LeaveHosts, PermitsReply
from muniment.model.host import HostTerms
from muniment.rules.hosts.politeness import HostSignal, counts_towards_death

__all__ = ["HostUpdates", "LentHosts", "Tell"]

Tell = Callable[[int, FromOrchestrator], None]
_LEAST_WAIT_MS = 1_000
_COMPLAINTS = ("throttled", "challenge", "closed", "mute")


class HostUpdates:
    """Sends the terms of hosts to those workers that have them in hand; `tell` sends a message to one by number."""

    def __init__(
        self, schedule: Schedule, dead: DeadOrigins, tell: Tell, rests: Callable[[int, int], Mapping[str, int]]
    ) -> None:
        """`rests` gives the origins of a host, by its number, that are left alone now, and until when."""
        self._schedule, self._dead, self._tell, self._rests = schedule, dead, tell, rests

    def terms(self, worker: int, host_ids: Iterable[int], now: int) -> list[HostTerms]:
        """How a worker treats hosts from now on."""
        return [self._terms(worker, one, now) for one in host_ids]

    def _terms(self, worker: int, host_id: int, now: int) -> HostTerms:
        name = self._schedule.name(host_id)
        terms = self._schedule.terms(worker, host_id, now, self._dead.of(name))
        rests, nameless = self._rests(host_id, now), self._dead.is_nameless(name)
        if not (rests or nameless):
            return terms
        waits = {origin: until - now for origin, until in rests.items()}
        return structs.replace(terms, rests=waits, nameless=nameless)

    def send(self, host_id: int, now: int, *, asker: int | None = None) -> None:
        """Send a host's terms to its workers, and to the one that sent news of it, which this answers."""
        for worker in self._schedule.told_of(host_id):
            if worker != asker:
                self._tell(worker, HostUpdate(self.terms(worker, (host_id,), now)))
        if asker is not None:
            self._tell(asker, HostUpdate(self.terms(asker, (host_id,), now), answer=True))

    def answer(self, worker: int, terms: HostTerms) -> None:
        """Answer the news of a host without pages: the target of a redirect, or what an open page wants."""
        self._tell(worker, HostUpdate([terms], answer=True))

    def send_lowered(self, lowered: Mapping[int, Iterable[int]], now: int) -> None:
        """Send the terms of the hosts of which workers have fewer permits than before."""
        for worker, host_ids in lowered.items():
            self._tell(worker, HostUpdate(self.terms(worker, host_ids, now)))


class LentHosts:
    """What workers have of hosts for their open pages."""

    def __init__(
        self,
        schedule: Schedule,
        dead: DeadOrigins,
        tell: Tell,
        heard: Callable[[int, str, int], None],
    ) -> None:
        """`tell` sends a message to a worker; `heard` takes in that a host, by number, has answered for a URL."""
        self._schedule, self._dead, self._tell, self._heard = schedule, dead, tell, heard
        self._strangers: set[tuple[int, str]] = set()
        """Worker and name of the hosts without pages."""

    def received(self, worker: int, message: AskPermits | LeaveHosts) -> None:
        """A page wants something of a host, or has ended."""
        match message:
            case AskPermits(host, heard, again, number=number):
                terms = self._lend(worker, host, heard, again=again)
                self._tell(worker, PermitsReply(terms, number=number))
            case LeaveHosts(hosts):
                self._take_back(worker, hosts)

    def _lend(self, worker: int, host: str, heard: str, *, again: bool) -> HostTerms:
        """The terms for a host, until the page ends; of a host without pages each worker has an even share."""
        host_id, now = self._schedule.known(host), steady_ms()
        if heard and host_id is not None:
            self._heard(host_id, heard, now)
        if host_id is not None and not (again and self._has(worker, host)):
            self._schedule.lend(worker, host_id, again=again)
            return self._schedule.terms(worker, host_id, now, self._dead.of(host))
        self._strangers.add((worker, host))
        return self._of_stranger(worker, host)

    def _take_back(self, worker: int, hosts: list[str]) -> None:
        for host in hosts:
            if (worker, host) in self._strangers:
                self._strangers.discard((worker, host))
            elif (host_id := self._schedule.known(host)) is not None:
                self._schedule.landed(worker, host_id)

    def told(self, worker: int, host: str, signal: HostSignal, *, lost: bool) -> HostTerms:
        """Bad news of a host without pages: it is left alone for a moment, or is dead."""
        if counts_towards_death(signal) and not lost:
            self._dead.fails(signal, steady_ms(), heard=False)
        wait = max(_LEAST_WAIT_MS, signal.wait_ms) if signal.kind in _COMPLAINTS and self._has(worker, host) else 0
        return self._of_stranger(worker, host, wait)

    def gone(self, worker: int) -> None:
        """A worker has ended."""
        self._strangers = {one for one in self._strangers if one[0] != worker}

    def _has(self, worker: int, host: str) -> bool:
        return (worker, host) in self._strangers

    def _of_stranger(self, worker: int, host: str, wait_ms: int = 0) -> HostTerms:
        workers = max(1, len(self._schedule.workers))
        permits = max(1, self._schedule.per_host // workers) if self._has(worker, host) else 0
        return HostTerms(host, permits, 0, wait_ms, self._dead.of(host) if permits else {})
