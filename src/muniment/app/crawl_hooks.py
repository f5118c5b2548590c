"""Hooks beside a crawl. What runs them is loaded where hooks are on."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
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

__all__ = ["CrawlHooks", "attended", "crawl_hooks", "write_hook_tables"]

_LOOK_S = 0.2


class CrawlHooks:
    """The hooks of a run, from its begin to after its last page."""

    def __init__(self, supervisor: HookSupervisor, orchestrator: Orchestrator) -> None:
        self._supervisor, self._orchestrator = supervisor, orchestrator
        orchestrator.last_hooks = self

    async def __call__(self, outcome: RunOutcome, attend: Callable[[], Awaitable[bool]]) -> bool:
        """Let the hooks of the crawl's end run; whether none of them is to run again."""
        if outcome.reason != "finished":
            self._supervisor.stop()
        last = self._supervisor.finish(finished=outcome.reason == "finished")
        return await attended(last, attend, self._supervisor.kill)

    def stop(self, reason: str) -> None:
        """Stop fetching, and begin no further hook."""
        self._supervisor.stop()
        self._orchestrator.stop(reason)

    def kill(self, reason: str) -> None:
        """End the processes of hooks and those that fetch at once."""
        self._supervisor.kill()
        self._orchestrator.kill(reason)


async def attended(last: Awaitable[bool], attend: Callable[[], Awaitable[bool]], kill: Callable[[], None]) -> bool:
    """Wait for the last hooks while a worker is kept at hand for them; without one they are ended at once."""
    ending = asyncio.ensure_future(last)
    while not ending.done():
        if not await attend():
            kill()
        await asyncio.wait([ending], timeout=_LOOK_S)
    return ending.result()


async def crawl_hooks(
    taken: RunContext, opened: OpenJob, orchestrator: Orchestrator, limits: Limits, events: Events
) -> CrawlHooks | None:
    """The hooks of a run, begun; None without hooks. Raises MunimentError."""
    if taken.hooks is None or opened.hooks is None:
        return None
    from muniment.app.hooks import new_supervisor, worker_launch  # noqa: PLC0415  (a crawl without hooks needs none of it)
    from muniment.crawl.hooks.ports import PagePorts  # noqa: PLC0415  (as above)

    inside = taken.place.directory.resolve() == taken.out.resolve()
    supervisor = new_supervisor(
        *(opened.hooks, taken.hooks, worker_launch(taken.locks, taken.registry), events),
        ("" if inside else str(taken.place.directory), taken.place.database),
        private=taken.private,
        held=lambda: limits.held or limits.short_of_room,
        failed=orchestrator.stop,
        ports=PagePorts(orchestrator.recording_channel) if taken.hooks.recorded else None,
    )
    await supervisor.begin()
    return CrawlHooks(supervisor, orchestrator)


def write_hook_tables(opened: OpenJob, out: Path) -> None:
    """Write the tables of hooks, where hooks are on. Raises ArchiveError."""
    if opened.hooks is not None:
        from muniment.app.hooks import keep_tables  # noqa: PLC0415  (as above)

        keep_tables(opened.hooks.store, out)
