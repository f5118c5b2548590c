"""Changes of a running crawl. Each is kept in the tracker first, then reported, then in force, then sent to workers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import structs

from muniment.crawl import protocol
from muniment.crawl.orchestrator.concurrency import Concurrency
from muniment.crawl.orchestrator.hosts.policy import HostPolicy
from muniment.crawl.orchestrator.limits import Limits
from muniment.crawl.orchestrator.queue_client import QueueClient
from muniment.crawl.orchestrator.rounds import GiveUp
from muniment.crawl.orchestrator.workers import WorkerHandle, Workers, most_workers
from muniment.crawl.ports import Events
from muniment.model.change import AbortJob, Change, ChangeMade, FailJob, PauseJob, ResumeJob, SetValues
from muniment.model.event import PauseEvent, ResumeEvent, change_events
from muniment.rules.changes import change_settings
from muniment.settings.option_table import Settings

__all__ = ["FAILED", "LiveSettings"]

_OPERATOR = "operator"
FAILED = "failed"
"""Why a run ends whose job was said to have failed."""


class LiveSettings:
    """Knows the settings in force."""

    def __init__(
        self,
        setup: protocol.Setup,
        queue: QueueClient,
        hosts: HostPolicy,
        limits: Limits,
        patience: GiveUp,
        inflight: Concurrency,
        events: Events,
        workers: Workers,
        stop: Callable[[str], None],
    ) -> None:
        self.setup = setup
        """The settings that a joining worker gets."""
        self._queue, self._hosts, self._limits, self._inflight = queue, hosts, limits, inflight
        self._patience, self._events, self._workers, self._stop = patience, events, workers, stop

    async def change(self, change: Change) -> tuple[ChangeMade, ...]:
        """Carry out a change; raises UsageError for an invalid one."""
        kept = await self._queue.change(change)
        if kept.repeated:
            return kept.made
        self._events.publish(*change_events(change.who, kept.made))
        if kept.made:
            self._carry_out(change)
        if isinstance(change, SetValues):
            settings, _ = change_settings(self.setup.settings, change.values)
            self._set(settings)
        self._queue.take_in(kept.changes)
        if kept.made:
            self._recall()
        return kept.made

    def _carry_out(self, change: Change) -> None:
        match change:
            case AbortJob():
                self._stop("aborted")
            case FailJob():
                self._stop(FAILED)
            case PauseJob():
                self._events.publish(PauseEvent(reason=_OPERATOR))
                self.hold(held=True)
            case ResumeJob():
                self._events.publish(ResumeEvent(reason=_OPERATOR))
                self.hold(held=False)

    def apply(self, settings: Settings) -> None:
        """Put settings in force that were changed elsewhere; pages without a sent request are judged anew."""
        self._set(settings)
        self._recall()

    def hold(self, *, held: bool) -> None:
        """Hand out no pages, and take back those without a sent request; or go on."""
        self._limits.held = held
        if held:
            self._recall()

    def lease(self, left_ms: int) -> None:
        """Let workers begin no request after this time: if this process stands still, they hear nothing else."""
        for member in self._workers.members.values():
            member.send(protocol.LeaseUpdate(left_ms))

    def heed(self, made: Sequence[ChangeMade]) -> None:
        """Take back pages without a sent request, if guards changed something: they are judged anew."""
        if made:
            self._recall()

    def _recall(self) -> None:
        for member in self._workers.members.values():
            member.send(protocol.SettingsUpdate(self.setup.settings))

    def _set(self, settings: Settings) -> None:
        self.setup = structs.replace(self.setup, settings=settings, workers=most_workers(settings))
        self._limits.change(settings)
        self._patience.give_up_after = settings.give_up_after
        self._inflight.change(settings)
        self._hosts.set_pace(settings.per_host, gap_ms=settings.delay.high)

    def found(self, finder: WorkerHandle, told: protocol.NameAddresses) -> None:
        """A worker was the first to resolve a start host: the others, and later ones, may reach its address classes."""
        setup = self.setup
        if told.name in setup.late_names:
            late = tuple(name for name in setup.late_names if name != told.name)
            classes = tuple(sorted({*setup.allowed_classes, *told.classes}))
            self.setup = structs.replace(setup, late_names=late, allowed_classes=classes)
            for member in self._workers.members.values():
                if member is not finder:
                    member.send(told)
