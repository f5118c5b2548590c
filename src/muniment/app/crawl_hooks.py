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
    from muniment.crawl.hooks.desk import HookDesk

__all__ = ["end_hooks", "hook_desk", "stop_both"]


async def hook_desk(
    taken: RunContext, opened: OpenJob, orchestrator: Orchestrator, limits: Limits, events: Events
) -> HookDesk | None:
    """The desk of the hooks of a run, begun; None without hooks. Raises MunimentError."""
    if taken.hooks is None or opened.hooks is None:
        return None
    from muniment.app.hooks import new_desk  # noqa: PLC0415  (a crawl without hooks needs none of it)
    from muniment.crawl.hooks.ports import PagePorts  # noqa: PLC0415  (as above)

    inside = taken.place.directory.resolve() == taken.out.resolve()
    desk = new_desk(
        *(opened.hooks, taken.hooks, taken.registry, taken.locks, events),
        ("" if inside else str(taken.place.directory), taken.place.database),
        private=taken.private,
        held=lambda: limits.held or limits.short_of_room,
        failed=orchestrator.stop,
        ports=PagePorts(orchestrator.recording_channel) if taken.hooks.recorded else None,
    )
    await desk.begin()
    return desk


async def end_hooks(desk: HookDesk | None, opened: OpenJob, outcome: RunOutcome, out: Path) -> None:
    """Let the hooks of the crawl's end run, and write the tables. Raises MunimentError."""
    if desk is None or opened.hooks is None:
        return
    from muniment.app.hooks import keep_tables  # noqa: PLC0415  (as above)

    finished = outcome.reason == "finished"
    if not finished:
        desk.stop()
    await desk.finish(finished=finished)
    keep_tables(opened.hooks.store, out)


def stop_both(desk: HookDesk, orchestrator: Orchestrator, reason: str) -> None:
    """Stop fetching, and begin no further hook."""
    desk.stop()
    orchestrator.stop(reason)
