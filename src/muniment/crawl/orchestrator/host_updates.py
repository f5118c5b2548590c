"""Host updates: what workers are sent of a host, always whole: its permits, gap and wait, and what of it is dead."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from muniment.crawl.orchestrator.known_hosts import DeadOrigins
from muniment.crawl.orchestrator.schedule import Schedule
from muniment.crawl.protocol import FromOrchestrator, HostUpdate
from muniment.model.host import HostTerms

__all__ = ["HostUpdates", "Tell"]

Tell = Callable[[int, FromOrchestrator], None]


class HostUpdates:
    """Sends the terms of hosts to those workers that have them in hand; `tell` sends a message to one by number."""

    def __init__(self, schedule: Schedule, dead: DeadOrigins, tell: Tell) -> None:
        self._schedule, self._dead, self._tell = schedule, dead, tell

    def terms(self, worker: int, host_ids: Iterable[int], now: int) -> list[HostTerms]:
        """How a worker treats hosts from now on."""
        schedule, dead = self._schedule, self._dead
        return [schedule.terms(worker, one, now, dead.of(schedule.name(one))) for one in host_ids]

    def send(self, host_id: int, now: int, *, asker: int | None = None) -> None:
        """Send a host's terms to its workers, and to the one that sent news of it, which this answers."""
        for worker in self._schedule.told_of(host_id):
            if worker != asker:
                self._tell(worker, HostUpdate(self.terms(worker, (host_id,), now)))
        if asker is not None:
            self._tell(asker, HostUpdate(self.terms(asker, (host_id,), now), answer=True))

    def answer(self, worker: int, host: str) -> None:
        """Answer the news of a host without pages: the target of a redirect."""
        self._tell(worker, HostUpdate([HostTerms(host, 0)], answer=True))

    def send_lowered(self, lowered: Mapping[int, Iterable[int]], now: int) -> None:
        """Send the terms of the hosts of which workers have fewer permits than before."""
        for worker, host_ids in lowered.items():
            self._tell(worker, HostUpdate(self.terms(worker, host_ids, now)))
