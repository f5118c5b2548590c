"""The browser of a run: nothing of it is loaded by a crawl that renders no pages."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import structs

from muniment.app.request import RunContext
from muniment.archive.index.journal import PARTS
from muniment.model.event import EventBatch, WorkerEvent
from muniment.model.rule import Rule
from muniment.rules.rendering.needs_browser import may_render

if TYPE_CHECKING:
    from muniment.browser.options import BrowserSetup

__all__ = ["browser_of", "clear_after_lost", "clear_profiles"]

_UNTIL_ENDED_S = (1.0, 3.0)
"""A browser ends within half a second of its worker; what it wrote last is removed the second time."""


def clear_profiles(out: Path, worker: int | None = None) -> None:
    """Remove what browsers of killed workers, or of the one with this number, have left in a locked directory."""
    for profile in (out / PARTS).glob("browser-*" if worker is None else f"browser-{worker}-*"):
        shutil.rmtree(profile, ignore_errors=True)


def clear_after_lost(out: Path, batch: EventBatch, pids: dict[int, int]) -> None:
    """Remove the profiles of workers that were lost, once their browsers have ended with them; call it in a loop."""
    loop = asyncio.get_running_loop()
    for event in batch.events:
        if not isinstance(event, WorkerEvent):
            continue
        if event.state == "started" and event.pid:
            pids[event.number] = event.pid
        elif event.state == "lost" and (pid := pids.pop(event.number, None)):
            for seconds in _UNTIL_ENDED_S:
                loop.call_later(seconds, clear_profiles, out, pid)


async def browser_of(taken: RunContext, rules: Sequence[Rule]) -> BrowserSetup | None:
    """The browser of a run that may render pages; raises UsageError when there is none that starts."""
    settings, place = taken.request.settings, taken.place
    if not may_render(settings.engine, rules):
        return None
    from muniment.app.browsers import browser_for  # noqa: PLC0415  (a crawl without browsers needs none of it)

    clear_profiles(taken.out)
    state = None if place.directory.resolve() == taken.out.resolve() else place.directory.absolute()
    setup = await browser_for(settings, taken.registry, state, place.database)
    return structs.replace(setup, storage=taken.secrets.storage)
