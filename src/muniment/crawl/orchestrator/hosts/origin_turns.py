"""Turns of origins: which pages of a host go out while one of its origins is left alone, or has not answered yet.

A host's connections are divided among its origins by nobody: what an origin without an answer takes of them, and what
one takes that falls silent, the others of its name lack.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable

from muniment.crawl.orchestrator.hosts.known_hosts import KnownHosts
from muniment.crawl.orchestrator.hosts.states import HostStates
from muniment.crawl.orchestrator.schedule import Schedule
from muniment.model.page import Claim
from muniment.model.url import origin_of
from muniment.rules.hosts.politeness import connections

__all__ = ["OriginTurns"]


class OriginTurns:
    """Counts the pages of origins that may have fewer connections than their hosts. Times are Unix ms."""

    def __init__(
        self,
        states: HostStates,
        known: KnownHosts,
        dead: Container[str],
        schedule: Schedule,
        is_out: Callable[[int], bool],
    ) -> None:
        """`is_out` says whether a worker has a page."""
        self._states, self._known, self._dead, self._schedule = states, known, dead, schedule
        self._is_out = is_out
        self._out: dict[int, dict[str, set[int]]] = {}
        """By host number and origin: the pages that went out, of which some may have ended."""

    def without(self, picked: Iterable[tuple[int, int]], now: int) -> dict[int, list[str]]:
        """How the URLs begin that are not to be claimed now of hosts, given with a number of pages, by host number."""
        found = {}
        for host_id, _ in picked:
            left_alone = [*self._states.rests(host_id, now), *(self._full(host_id) if host_id in self._out else ())]
            if left_alone:
                found[host_id] = [f"{origin}/" for origin in left_alone]
        return found

    def sift(self, claims: list[Claim], now: int) -> tuple[list[Claim], list[Claim]]:
        """The claims, which their worker holds already, that may go out now, and those that have to go back."""
        back: list[Claim] = []
        host_id = 0
        beginnings: tuple[str, ...] = ()
        for claim in claims:
            if claim.host_id != host_id:
                host_id = claim.host_id
                beginnings = self._trusted(host_id, claim.host)
            if not claim.url.startswith(beginnings) and not self._goes(claim, now):
                back.append(claim)
        gone = {claim.page_id for claim in back}
        return [claim for claim in claims if claim.page_id not in gone] if back else claims, back

    def _trusted(self, host_id: int, name: str) -> tuple[str, ...]:
        """How the URLs of a host begin that may go out without a further look."""
        failed = self._states.origins(host_id)
        answered = self._known.origins(host_id, name)
        if not (answered or failed):
            return ("",)
        return tuple(f"{origin}/" for origin in answered if origin not in failed)

    def _goes(self, claim: Claim, now: int) -> bool:
        host_id, origin = claim.host_id, origin_of(claim.url)
        if origin in self._dead or claim.host in self._dead:
            return True  # nothing is asked for it
        if origin in self._states.rests(host_id, now):
            return False
        most = self._most(host_id, claim.host, origin)
        if not most:
            return True
        out = self._out.setdefault(host_id, {}).setdefault(origin, set())
        out.intersection_update([*filter(self._is_out, out)])
        if len(out) >= most:
            return False
        out.add(claim.page_id)
        return True

    def _most(self, host_id: int, name: str, origin: str) -> int:
        """Pages of an origin that may be out when these are fewer than its host has connections, otherwise 0."""
        answered, per_host = self._known.origins(host_id, name), self._schedule.per_host
        most = connections(self._states.at((host_id, origin), answered=origin in answered), per_host)
        return most if most < self._states.most(host_id, answered, per_host) else 0

    def _full(self, host_id: int) -> list[str]:
        """The origins of a host of which no more pages may go out until others have ended."""
        name, origins = self._schedule.name(host_id), self._out[host_id]
        full = []
        for origin, out in list(origins.items()):
            out.intersection_update([*filter(self._is_out, out)])
            most = self._most(host_id, name, origin)
            if not out or not most or origin in self._dead:
                del origins[origin]
            elif len(out) >= most:
                full.append(origin)
        if not origins:
            del self._out[host_id]
        return full
