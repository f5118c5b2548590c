"""Schedule: which hosts are due, and how a host's permits are divided among the workers.

A permit is a connection. Without a delay a host's permits are divided evenly, so that one site uses all cores; with a
delay, or with fewer permits than workers, a host belongs to one worker. How many permits a host has at the moment, and
until when it gets no requests, is decided by `hosts.policy`.

Each worker has a queue of hosts that may have something for it (`rules.host_rotation`). Any change that may help offers
the host again: a pick drops a host that has nothing, so that hosts which wait, are full or have ended cost nothing
(docs/decisions/hosts.md#0055-hosts-in-queues). Hosts that failed and never answered wait in its second part, which has
its turn when the worker has hardly anything else (docs/decisions/hosts.md#0055-hosts-in-queues).

Pages of a host also wait while other hosts have many requisites of earlier pages left (`requisite_backlog`).
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable
from itertools import islice

from muniment.crawl.orchestrator.host_plans import HostPlan, HostPlans
from muniment.crawl.orchestrator.requisite_backlog import RequisiteBacklog
from muniment.model.host import HostTerms
from muniment.rules.host_rotation import HostRotation

__all__ = ["Schedule"]

_HELD_PER_PERMIT = 5
"""Pages a worker holds per permit (see `crawl.worker`)."""
_GAP_AHEAD_MS = 2_000
"""With a gap between requests, a worker holds the pages of this time: the others need not wait in its queue."""
_FEW = 100
"""Pages that a worker holds, over all hosts, up to which the second queue is served."""
_LOOK_MS = 500
"""How often hosts that wait for the requisites of others are checked, when none of these ends."""
_MOST_LOOKS = 200
"""Hosts that are offered again by one such check."""


class Schedule:
    """Decides which pages a worker gets; knows nothing of sockets or SQL. Times are Unix ms."""

    def __init__(self, per_host: int, *, gap_ms: int = 0, spread: bool = True) -> None:
        """A host has `per_host` permits, and `gap_ms` between its requests, unless set otherwise.

        Without `spread` hosts do not take turns: the one found first gives all its pages first.
        """
        self.per_host, self._gap_ms, self._spread = per_host, gap_ms, spread
        self._plans = HostPlans()
        self._queues: dict[int, HostRotation] = {}
        self._alarms: list[tuple[int, int]] = []
        self._turn = 0
        self._workers: list[int] = []
        self.backlog = RequisiteBacklog()
        self._behind: dict[int, None] = {}
        """Hosts that wait for requisites of others."""
        self._looked_at = 0
        self.pending = self.hosts = 0
        """Pages that wait, and the hosts that they are of."""
        self._freed: set[int] = set()
        """Hosts of which connections that were granted were closed."""
        self.turned: Callable[[int, bool], None] = lambda _host, _busy: None
        """Called with a host that has pages from now on, or has none any more."""

    def add_pending(self, host_id: int, name: str, pages: int, due_at: int = 0) -> None:
        """Pages of a host wait to be claimed; with `due_at`, none of these before then."""
        plan = self._plans.make(host_id, name)
        if not plan.pending or due_at < plan.wake_at:
            plan.wake_at, plan.looks = due_at, 0
        self._count(plan, pages)
        self._note(plan)
        self._offer(plan)

    def drop_pending(self, host_id: int, pages: int) -> None:
        """Pages of a host wait no more, although they were not claimed."""
        plan = self._plans[host_id]
        self._count(plan, -pages)
        self._note(plan)

    def _note(self, plan: HostPlan) -> None:
        if self._plans.note(plan):
            self.turned(plan.host_id, plan.busy)

    def _count(self, plan: HostPlan, pages: int) -> None:
        before = bool(plan.pending)
        plan.pending += pages
        self.pending += pages
        self.hosts += bool(plan.pending) - before

    def _offer(self, plan: HostPlan) -> None:
        """A change may let workers have pages of a host."""
        if plan.pending:
            for worker in self._workers:
                self._enqueue(worker, plan)

    def _enqueue(self, worker: int, plan: HostPlan) -> None:
        self._turn += 1
        if plan.later_until:
            self._queues[worker].add_later(plan.host_id)
        else:
            self._queues[worker].add(self._turn if self._spread else plan.host_id, plan.host_id)

    def known(self, name: str) -> int | None:
        """The number of a host that has, or had, pages."""
        plan = self._plans.named(name)
        return None if plan is None else plan.host_id

    def name(self, host_id: int) -> str:
        """The name of a host that has, or had, pages."""
        return self._plans[host_id].name

    @property
    def workers(self) -> tuple[int, ...]:
        """The numbers of the workers."""
        return tuple(self._workers)

    def is_busy(self, host_id: int) -> bool:
        """Whether pages of a host wait or are out."""
        return host_id in self._plans.busy

    def forget(self, host_id: int, now: int) -> bool:
        """Drop a host that has no pages, connections or waits; returns whether it is gone."""
        bare = self._plans[host_id].is_bare(now)
        if bare:
            self._plans.forget(host_id)
        return bare

    def hold(self, host_id: int, until: int, *, later_until: int = 0) -> None:
        """Hand out nothing of a host before `until`. Before `later_until` others go first."""
        plan = self._plans[host_id]
        plan.hold_until, plan.later_until = until, later_until
        if later_until:
            heapq.heappush(self._alarms, (later_until, host_id))
        self._offer(plan)

    def rejoin(self, host_id: int) -> None:
        """Others no longer go before a host, and it may have pages for which there were none a moment ago."""
        plan = self._plans[host_id]
        plan.later_until = 0
        if plan.pending:
            plan.look_now()
            self._offer(plan)

    def set_most(self, host_id: int, most: int) -> dict[int, list[int]]:
        """Give a host so many permits in all; returns the host for each worker that has fewer from now on."""
        plan = self._plans[host_id]
        lowered: dict[int, list[int]] = {}
        before = self._most(plan)
        plan.limit = most if most < self.per_host else None
        if most < before:
            plan.owner = None
            self._lower_one(plan, lowered)
        self._offer(plan)
        return lowered

    def grant(self, host_id: int, permits: int) -> dict[int, list[int]]:
        """Let the run have so many of the connections to a host; returns what `set_most` does."""
        plan = self._plans[host_id]
        lowered: dict[int, list[int]] = {}
        before, plan.grant = self._most(plan), permits
        if self._most(plan) < before:
            plan.owner = None
            self._lower_one(plan, lowered)
            self._freed.add(host_id)
        self._offer(plan)
        return lowered

    def take_freed(self) -> dict[int, int]:
        """The hosts of which granted connections were closed since the last call, and how many may be open now."""
        freed, self._freed = self._freed, set()
        return {host_id: sum(self._plans[host_id].granted.values()) for host_id in freed}

    def _free(self, plan: HostPlan) -> None:
        if plan.grant is not None:
            self._freed.add(plan.host_id)

    def set_gap(self, host_id: int, gap_ms: int | None = None, slow_ms: int | None = None) -> dict[int, list[int]]:
        """Leave a gap between the host's requests, so that it belongs to one worker; returns what `set_most` does.

        `gap_ms` is what it asks for, `slow_ms` what its throttling does; the larger counts.
        """
        plan = self._plans[host_id]
        plan.gap_ms = plan.gap_ms if gap_ms is None else gap_ms
        plan.slow_ms = plan.slow_ms if slow_ms is None else slow_ms
        lowered: dict[int, list[int]] = {}
        self._lower_one(plan, lowered)
        self._offer(plan)
        return lowered

    def terms(self, worker: int, host_id: int, now: int, dead: dict[str, str]) -> HostTerms:
        """How a worker treats a host from now on; `dead` are its origins that get no more requests."""
        plan = self._plans[host_id]
        gap = max(plan.gap_ms, plan.slow_ms)
        wait = max(0, plan.hold_until - now)
        if gap and plan.owner not in (None, worker):
            # one worker keeps the gap: what others hold of the host goes back
            wait = max(wait, gap)
        return HostTerms(plan.name, plan.told.get(worker, 0), gap, wait, dead)

    def told_of(self, host_id: int) -> tuple[int, ...]:
        """The workers that have connections to a host."""
        return tuple(self._plans[host_id].told)

    def waiting_pages(self, host_id: int) -> int:
        """Pages of a host that wait or are out."""
        plan = self._plans[host_id]
        return plan.pending + sum(plan.held.values())

    def gap(self, host_id: int) -> int:
        """Milliseconds between the requests to a host."""
        return self._gap(self._plans[host_id])

    def _gap(self, plan: HostPlan) -> int:
        return max(plan.gap_ms, plan.slow_ms, self._gap_ms)

    def _most(self, plan: HostPlan) -> int:
        most = self.per_host if plan.limit is None else min(plan.limit, self.per_host)
        return most if plan.grant is None else min(most, plan.grant)

    def add_worker(self, worker: int) -> dict[int, list[int]]:
        """A worker joins; returns the hosts of which others have fewer permits from now on, by worker."""
        self._workers.append(worker)
        self._queues[worker] = HostRotation()
        return self._lower()

    def set_pace(self, per_host: int, *, gap_ms: int) -> dict[int, list[int]]:
        """Set other connections per host from now on; returns what `add_worker` does."""
        self.per_host, self._gap_ms = per_host, gap_ms
        return self._lower()

    def _lower(self) -> dict[int, list[int]]:
        lowered: dict[int, list[int]] = {}
        for plan in self._plans.values():
            self._lower_one(plan, lowered)
            self._offer(plan)
        return lowered

    def _lower_one(self, plan: HostPlan, lowered: dict[int, list[int]]) -> None:
        for other, told in plan.told.items():
            # with pages it keeps a connection, or they would wait for ever
            share = max(self._share(plan, other), 1 if plan.held.get(other) else 0)
            if told > share:
                plan.told[other] = share
                lowered.setdefault(other, []).append(plan.host_id)

    def remove_worker(self, worker: int, now: int) -> None:
        """A worker's process has ended, so its connections are closed; the time of its last request is unknown."""
        if worker in self._workers:
            self._workers.remove(worker)
            del self._queues[worker]
        for plan in self._plans.values():
            if worker in plan.told and (gap := self._gap(plan)):
                plan.hold_until = max(plan.hold_until, now + gap)
            if worker in plan.granted:
                self._free(plan)
            for kept in (plan.granted, plan.told, plan.held):
                kept.pop(worker, None)
            if plan.owner == worker:
                plan.owner = None
            self._note(plan)
            self._offer(plan)

    def pick(self, worker: int, most: int, now: int, in_hand: int = 0) -> list[tuple[int, int]]:
        """(host number, pages) to claim for a worker that has `in_hand` pages, hosts taking turns."""
        picked: list[tuple[int, int]] = []
        queue = self._queues[worker]
        self._wake(now)
        while most > 0 and (host_id := queue.take(later=in_hand <= _FEW)) is not None:
            plan = self._plans[host_id]
            room = self._room(plan, worker, now)
            if room > 0:
                pages = min(most, room)
                picked.append((host_id, pages))
                most -= pages
                if pages < room:
                    self._enqueue(worker, plan)
        return picked

    def _wake(self, now: int) -> None:
        """Offer the hosts whose wait is over, or that have let others go first for long enough."""
        while self._alarms and self._alarms[0][0] <= now:
            at, host_id = heapq.heappop(self._alarms)
            plan = self._plans[host_id]
            if plan.alarm == at:
                plan.alarm = 0
            if plan.later_until <= now:
                plan.later_until = 0
            # without pages, too: it leaves the second queue
            for worker in self._workers:
                self._enqueue(worker, plan)
        if self._behind and (self.backlog.changed or now >= self._looked_at + _LOOK_MS):
            self._look_behind(now)

    def _look_behind(self, now: int) -> None:
        """Offer hosts that waited for requisites of others; those that still do are noted again."""
        self.backlog.changed, self._looked_at = False, now
        for host_id in list(islice(self._behind, _MOST_LOOKS)):
            del self._behind[host_id]
            self._offer(self._plans[host_id])

    def _room(self, plan: HostPlan, worker: int, now: int) -> int:
        due = max(plan.wake_at, plan.hold_until)
        if due > now:
            if not 0 < plan.alarm <= due:
                plan.alarm = due
                heapq.heappush(self._alarms, (due, plan.host_id))
            return 0
        permits = self._grantable(plan, worker)
        ahead = permits * _HELD_PER_PERMIT
        if gap := self._gap(plan):
            ahead = min(ahead, 1 + _GAP_AHEAD_MS // gap)
        room = min(plan.pending, ahead - plan.held.get(worker, 0)) if permits > 0 else 0
        if room > 0 and (beside := self.backlog.beside(plan.host_id)):
            before = self._before_requisites(plan, beside, now)
            if before < room:
                room = before
                self._behind[plan.host_id] = None
        return room

    def _before_requisites(self, plan: HostPlan, beside: Iterable[int], now: int) -> int:
        """Pages of a host that may go before requisites of other hosts; its own may always go."""
        left = max((self._left(self._plans[one], plan, now) for one in beside), default=0)
        most = max(self.per_host * _HELD_PER_PERMIT - left, self.backlog.left(plan.host_id))
        return most - sum(plan.held.values())

    def _left(self, beside: HostPlan, plan: HostPlan, now: int) -> int:
        """Requisites of a host that pages of another wait for: none if that host waits itself, or is slow."""
        if max(beside.wake_at, beside.hold_until) > now or beside.later_until:
            return 0
        left = min(self.backlog.left(beside.host_id), beside.pending + sum(beside.held.values()))
        return left if left and self.backlog.is_quick(beside.host_id, now, self._gap(plan)) else 0

    def _grantable(self, plan: HostPlan, worker: int) -> int:
        free = self._most(plan) - sum(granted for other, granted in plan.granted.items() if other != worker)
        # after a limit was lowered, more may be open than there should be
        return max(0, min(self._share(plan, worker), free))

    def _share(self, plan: HostPlan, worker: int) -> int:
        workers = len(self._workers)
        most = self._most(plan)
        if self._gap(plan) or most < workers:
            if plan.owner is None:
                plan.owner = worker
            return most if plan.owner == worker else 0
        whole, rest = divmod(most, workers)
        return whole + (self._workers.index(worker) < rest)

    def claimed(self, worker: int, host_id: int, pages: int, asked: int, now: int, rest_until: int = 0) -> None:
        """Pages of a host went to a worker, with permits.

        Fewer than asked means that the rest waits for its retry, or for `rest_until` with its origin.
        """
        plan = self._plans[host_id]
        self._count(plan, -pages)
        plan.held[worker] = plan.held.get(worker, 0) + pages
        if pages < asked and plan.pending:
            plan.look_again(now, rest_until)
            self._offer(plan)
        if pages:
            plan.told[worker] = self._grantable(plan, worker)
            plan.granted[worker] = max(plan.told[worker], plan.granted.get(worker, 0))

    def lend(self, worker: int, host_id: int, *, again: bool = False) -> None:
        """A worker's open page wants something of a host: it counts as a page of it until `landed`, if not `again`."""
        plan = self._plans[host_id]
        if not again:
            plan.held[worker] = plan.held.get(worker, 0) + 1
            self._note(plan)
        plan.told[worker] = self._grantable(plan, worker)
        plan.granted[worker] = max(plan.told[worker], plan.granted.get(worker, 0))

    def landed(self, worker: int, host_id: int, pages: int = 1) -> None:
        """Pages that a worker held are finished or given back."""
        plan = self._plans[host_id]
        plan.held[worker] = plan.held.get(worker, pages) - pages
        self._note(plan)
        plan.look_now(only_again=True)
        if plan.pending and worker in self._queues:
            self._enqueue(worker, plan)

    def permits_held(self, worker: int, name: str, permits: int) -> None:
        """A worker keeps at most so many connections to a host now.

        An answer that crossed newer claims on the wire (nothing kept though pages are under way, or another number than
        was last sent) counts for nothing: the number last sent holds.
        """
        plan = self._plans.named(name)
        if plan is None:
            return
        if permits == 0 and not plan.held.get(worker):
            plan.granted.pop(worker, None)
            plan.told.pop(worker, None)
            if plan.owner == worker:
                plan.owner = None
            self._free(plan)
            self._offer(plan)
        elif permits and permits == plan.told.get(worker):
            plan.granted[worker] = permits
            self._free(plan)
            self._offer(plan)
