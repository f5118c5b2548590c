"""Requests in flight: one limit over all hosts, divided among the workers.

Workers report four times a second that the limit holds them back; the orchestrator reports which hosts stopped
answering. `rules.hosts.inflight` decides what follows; a worker gets a message only when its part changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from muniment.crawl import protocol
from muniment.crawl.orchestrator.workers import most_tabs
from muniment.crawl.ports import Events
from muniment.model.event import ChangeEvent
from muniment.rules.domains import registered_domain
from muniment.rules.hosts.inflight import InflightFlow, cut, flow_within, is_burst, is_crowded, raised, share_of
from muniment.settings.option_table import Settings

__all__ = ["Concurrency"]

_AT_ONCE_MS = 5_000


class Concurrency:
    """Holds the limit of a run; `tell` sends a message to a worker by number. Times are Unix ms."""

    def __init__(
        self,
        settings: Settings,
        events: Events,
        tell: Callable[[int, protocol.FromOrchestrator], None],
        *,
        browser: bool = False,
    ) -> None:
        """With `browser`, pages are rendered in this run."""
        self._events, self._tell = events, tell
        self._flow = flow_within(InflightFlow(settings.start_inflight), settings.min_inflight, settings.inflight)
        self._least, self._most = settings.min_inflight, settings.inflight
        self._silent: dict[str, int] = {}
        """Registered domains of hosts that answered before and stopped answering, and when."""
        self._browser, self._tabs = browser, most_tabs(settings) if browser else 0
        self._parts: dict[int, int] = {}

    @property
    def limit(self) -> int:
        """The number of requests that may be in flight now."""
        return self._flow.limit

    def crowded(self, now: int) -> bool:
        """Whether the limit was cut so recently that a time-out may be our own fault."""
        return is_crowded(self._flow, now)

    def change(self, settings: Settings) -> None:
        """Apply the bounds of these settings from now on."""
        self._least, self._most = settings.min_inflight, settings.inflight
        self._set(flow_within(self._flow, self._least, self._most))
        before, self._tabs = self._tabs, most_tabs(settings) if self._browser else 0
        self._divide(anew=self._tabs != before)

    def staff(self, workers: Iterable[int]) -> None:
        """Divide the limit among these workers from now on."""
        before = self._parts
        self._parts = {worker: before.get(worker, 0) for worker in workers}
        self._divide(anew=bool(self._tabs))

    def part(self, worker: int) -> int:
        """The requests that a worker may have in flight."""
        return self._parts[worker]

    def share(self, worker: int) -> protocol.InflightShare:
        """A worker's part."""
        return protocol.InflightShare(self._parts[worker], self._tabs_of(worker))

    def _tabs_of(self, worker: int) -> int:
        return share_of(self._tabs, len(self._parts), list(self._parts).index(worker)) if self._tabs else 0

    def wanted(self, now: int) -> None:
        """The limit holds a worker back."""
        self._set(raised(self._flow, self._most, now))

    def fell_silent(self, host: str, asked_at: int, now: int) -> None:
        """A host that answered before did not answer in time a request of `asked_at`."""
        if asked_at >= self._flow.cut_at:
            self._silent[registered_domain(host)] = now

    def tick(self, now: int, hosts_held: Callable[[], int]) -> None:
        """Check whether too many hosts stopped answering at once, out of those that are being asked."""
        if not self._silent:
            return
        self._silent = {domain: at for domain, at in self._silent.items() if now - at < _AT_ONCE_MS}
        silent = len(self._silent)
        # workers hold five pages for each request, and requests in flight are to no more hosts than there are requests
        if not is_burst(silent, 0) or not is_burst(silent, min(hosts_held(), self.limit)):
            return
        before = self._flow
        self._set(cut(before, self._least, now))
        if self._flow is not before:
            self._silent.clear()
        if self.limit < before.limit:
            self._events.publish(ChangeEvent("muniment", "requests in flight", before.limit, self.limit))

    def _set(self, flow: InflightFlow) -> None:
        changed = flow.limit != self._flow.limit
        self._flow = flow
        if changed:
            self._divide()

    def _divide(self, *, anew: bool = False) -> None:
        for position, (worker, before) in enumerate(list(self._parts.items())):
            part = share_of(self.limit, len(self._parts), position)
            if part != before or anew:
                self._parts[worker] = part
                self._tell(worker, self.share(worker))
