"""The states of hosts, and of those of their origins that failed: a dead origin delays no other one of its name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from msgspec import structs

from muniment.model.failure import of_this_machine
from muniment.model.host import HostRecord, HostWaits
from muniment.model.page import Claim
from muniment.model.url import origin_of
from muniment.rules.hosts.failures import is_offline
from muniment.rules.hosts.politeness import CALM, HostState, connections

__all__ = ["UNHEARD", "HostStates", "Place", "place_of"]

UNHEARD = HostState(heard=False)
_NONE: dict[str, HostState] = {}
_MOST_ORIGINS = 1_000
"""Maximum of failing origins of a host that are remembered; a forgotten one fails anew."""

Place = tuple[int, str]
"""A host by its number, and one of its origins; the empty text stands for the whole name."""


def place_of(claim: Claim, error: str) -> Place:
    """What the failure of a page is of: the whole name, or its origin alone."""
    whole = error.startswith("dns: ") or of_this_machine(error) or is_offline(error)
    return claim.host_id, "" if whole else origin_of(claim.url)


class HostStates:
    """States by host number; what belongs to an origin alone is kept beside them."""

    def __init__(self) -> None:
        self._hosts: dict[int, HostState] = {}
        self._origins: dict[int, dict[str, HostState]] = {}

    def __contains__(self, host_id: int) -> bool:
        """Whether a host is known."""
        return host_id in self._hosts

    def of(self, host_id: int) -> HostState:
        """The state of a host as a whole."""
        return self._hosts.get(host_id, UNHEARD)

    def origins(self, host_id: int) -> Mapping[str, HostState]:
        """The states of those of its origins that failed."""
        return self._origins.get(host_id, _NONE)

    def at(self, place: Place, *, answered: bool) -> HostState:
        """The state of a place; `answered`: its origin has answered in this job."""
        host_id, origin = place
        whole = self.of(host_id)
        if not origin:
            return whole
        known = self.origins(host_id).get(origin)
        return known or (CALM if whole.heard and answered else UNHEARD)

    def is_calm(self, host_id: int) -> bool:
        """Whether nothing is known against a host or an origin of it."""
        return self._hosts.get(host_id) is CALM and host_id not in self._origins

    def put(self, place: Place, state: HostState) -> None:
        """Keep the state of a place."""
        host_id, origin = place
        if not origin:
            self._hosts[host_id] = CALM if state == CALM else state
        elif state == CALM:
            self.forget_origin(host_id, origin)
        else:
            failed = self._origins.setdefault(host_id, {})
            failed[origin] = state
            if len(failed) > _MOST_ORIGINS:
                del failed[next(iter(failed))]

    def forget_origin(self, host_id: int, origin: str) -> None:
        """Nothing is known against an origin any more."""
        failed = self._origins.get(host_id, {})
        failed.pop(origin, None)
        if not failed:
            self._origins.pop(host_id, None)

    def forget(self, host_id: int) -> None:
        """Drop a host."""
        self._hosts.pop(host_id, None)
        self._origins.pop(host_id, None)

    def rests(self, host_id: int, now: int) -> dict[str, int]:
        """The origins that get no request now, though their host may, and until when."""
        failed = self.origins(host_id)
        return {origin: state.until for origin, state in failed.items() if state.until > now} if failed else {}

    def rest_until(self, host_id: int, now: int) -> int:
        """When the first of these may be asked again; 0 when there is none."""
        return min(self.rests(host_id, now).values(), default=0) if host_id in self._origins else 0

    def most(self, host_id: int, answered: Iterable[str], per_host: int) -> int:
        """Connections that a host may have now: as many as the best of its origins that answered is worth."""
        whole, failed = self.of(host_id), self.origins(host_id)
        if not whole.heard or not failed:
            return connections(whole, per_host)
        slowed = min((failed[one].slowed if one in failed else 0 for one in answered), default=0)
        return connections(structs.replace(whole, slowed=max(whole.slowed, slowed)), per_host)

    def waits(self, record: HostRecord, answered: Iterable[str], now: int) -> HostWaits:
        """What is kept of a host's waits: the first of its origins to be asked again, where all wait that answered."""
        host_id, gap = record.host_id, record.waits.crawl_delay_ms
        state, failed = self.of(host_id), self.origins(host_id)
        origins = list(answered)
        if failed and state.until <= now and all(one in failed for one in origins):
            state = min((failed[one] for one in origins or failed), key=lambda one: one.until)
        return HostWaits(gap, state.until, state.reason, state.strikes)

    def places(self, host_id: int) -> Iterator[Place]:
        """The whole name, and each of its origins that failed."""
        yield host_id, ""
        for origin in list(self.origins(host_id)):
            yield host_id, origin
