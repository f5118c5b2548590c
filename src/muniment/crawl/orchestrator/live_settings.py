"""Steering: carries out changes of a running crawl. Kept first, then written down, then in force, then told."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from msgspec import structs

from muniment.clock import now_ms
from muniment.crawl import protocol
from muniment.crawl.orchestrator.concurrency import Concurrency
from muniment.crawl.orchestrator.give_up import GiveUp
from muniment.crawl.orchestrator.limits import Limits
from muniment.crawl.orchestrator.schedule import Schedule
from muniment.crawl.orchestrator.workers import WorkerHandle, Workers, most_workers
from muniment.crawl.ports import Events
from muniment.model.change import AbortJob, Change, ChangeMade, Removal, SetNice, SetRules, SetValues
from muniment.model.event import change_events, skip_events
from muniment.model.page import PageState
from muniment.rules.changes import change_settings
from muniment.settings.table import Settings
from muniment.tracker.queue.frontier import Frontier
from muniment.tracker.queue.rejudge import Rejudging

__all__ = ["LiveSettings"]


class LiveSettings:
    """Knows what is in force now, and which pages are still to be judged by it."""

    def __init__(
        self,
        setup: protocol.Setup,
        frontier: Frontier,
        schedule: Schedule,
        limits: Limits,
        patience: GiveUp,
        inflight: Concurrency,
        events: Events,
        workers: Workers,
        stop: Callable[[str], None],
    ) -> None:
        self.setup = setup
        """What a worker that joins is told."""
        self._frontier, self._schedule, self._limits, self._inflight = frontier, schedule, limits, inflight
        self._patience, self._events, self._workers, self._stop = patience, events, workers, stop
        self._judging: Rejudging | None = None
        self._pending: Counter[int] = Counter()
        """Pages per host number that a change brought, or took, and the schedule does not know of."""

    @property
    def judging(self) -> bool:
        """Whether pages that wait are still to be judged by new patterns; a job is not finished while they are."""
        return self._judging is not None or bool(self._pending)

    def change(self, change: Change) -> tuple[ChangeMade, ...]:
        """Carry out a change; raises UsageError for one that makes no sense."""
        amended = self._frontier.amend(change, now_ms())
        if amended.repeated:
            return amended.changes
        self._events.publish(*change_events(change.who, amended.changes))
        if isinstance(change, AbortJob) and amended.changes:
            self._stop("aborted")
        for host_id, pages in amended.pending.items():
            self._pending[host_id] += pages
        if isinstance(change, SetValues):
            settings, _ = change_settings(self.setup.settings, change.values)
            self._set(settings)
        if amended.ruleset is not None:
            # one more pattern brings nothing back, one less keeps nothing out; rules in order may do both, and an
            # unfinished walk is made whole
            narrow = PageState.SKIPPED if isinstance(change, Removal) else PageState.READY
            whole = self.judging or isinstance(change, SetRules | SetNice) or amended.ruleset.in_order is not None
            self._judging = self._frontier.judging(None if whole else narrow)
            if isinstance(change, SetNice):
                # claims go by what is written: the workers, told below, ask again at once
                self._step()
        if amended.changes:
            for member in self._workers.members.values():
                member.send(protocol.SettingsUpdate(self.setup.settings))
        return amended.changes

    def _set(self, settings: Settings) -> None:
        self.setup = structs.replace(self.setup, settings=settings, workers=most_workers(settings))
        self._limits.change(settings)
        self._patience.give_up_after = settings.give_up_after
        self._inflight.change(settings)
        lowered = self._schedule.set_pace(settings.per_host, gap_ms=settings.delay.high)
        for worker, permits in lowered.items():
            self._workers.members[worker].send(protocol.PermitsUpdate(permits))

    def found(self, finder: WorkerHandle, told: protocol.NameAddresses) -> None:
        """A worker was the first to find a start host: the others, and those that join, may reach what it may."""
        setup = self.setup
        if told.name in setup.late_names:
            late = tuple(name for name in setup.late_names if name != told.name)
            classes = tuple(sorted({*setup.allowed_classes, *told.classes}))
            self.setup = structs.replace(setup, late_names=late, allowed_classes=classes)
            for member in self._workers.members.values():
                if member is not finder:
                    member.send(told)

    def judge(self) -> dict[int, int]:
        """Judge one batch of the pages that wait; returns how many more (or fewer) are pending per host number."""
        self._step()
        pending, self._pending = self._pending, Counter()
        return dict(pending)

    def _step(self) -> None:
        if self._judging is None:
            return
        judged = self._judging.step()
        if self._judging.done:
            self._judging = None
        self._events.publish(*skip_events(judged.skipped))
        for host, count in judged.pending.items():
            self._pending[host] += count
