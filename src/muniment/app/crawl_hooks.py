"""Hooks beside a crawl. What runs them is loaded where hooks are on."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from muniment.app.request import RunContext
from muniment.crawl.orchestrator.limits import Limits
from muniment.crawl.orchestrator.loop import Orchestrator
from muniment.crawl.ports import Events
from muniment.crawl.progress import RunOutcome
from muniment.tracker.open import OpenJob

if TYPE_CHECKING:
    from muniment.crawl.hooks.supervisor import HookSupervisor

__all__ = ["end_hooks", "hook_supervisor", "stop_both"]


async def hook_supervisor(
    taken: RunContext, opened: OpenJob, orchestrator: Orchestrator, limits: Limits, events: Events
) -> HookSupervisor | None:
    """The supervisor of the hooks of a run, begun; None without hooks. Raises MunimentError."""
    if taken.hooks is None or opened.hooks is None:
        return None
    from muniment.app.hooks import new_supervisor  # noqa: PLC0415  (a crawl without hooks needs none of it)
    from muniment.crawl.hooks.ports import PagePorts  # noqa: PLC0415  (as above)

    inside = taken.place.directory.resolve() == taken.out.resolve()
    supervisor = new_supervisor(
        *(opened.hooks, taken.hooks, taken.registry, taken.locks, events),
        ("" if inside else str(taken.place.directory), taken.place.database),
        private=taken.private,
        held=lambda: limits.held or limits.short_of_room,
        failed=orchestrator.stop,
        ports=PagePorts(orchestrator.recording_channel) if taken.hooks.recorded else None,
    )
    await supervisor.begin()
    return supervisor


async def end_hooks(supervisor: HookSupervisor | None, opened: OpenJob, outcome: RunOutcome, out: Path) -> None:
    """Let the hooks of the crawl's end run, and write the tables. Raises MunimentError."""
    if supervisor is None or opened.hooks is None:
        return
    from muniment.app.hooks import keep_tables  # noqa: PLC0415  (as above)

    finished = outcome.reason == "finished"
    if not finished:
        supervisor.stop()
    await supervisor.finish(finished=finished)
    keep_tables(opened.hooks.store, out)


def stop_both(supervisor: HookSupervisor, orchestrator: Orchestrator, reason: str) -> None:
    """Stop fetching, and begin no further hook."""
    supervisor.stop()
    orchestrator.stop(reason)
