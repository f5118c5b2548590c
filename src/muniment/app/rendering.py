"""The browser of a run: nothing of it is loaded by a crawl that renders no pages."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from muniment.app.request import RunContext
from muniment.archive.index.journal import PARTS

if TYPE_CHECKING:
    from muniment.browser.options import BrowserSetup

__all__ = ["browser_of", "clear_profiles"]


def clear_profiles(out: Path) -> None:
    """Remove what browsers of killed workers have left in a locked directory."""
    for profile in (out / PARTS).glob("browser-*"):
        shutil.rmtree(profile, ignore_errors=True)


async def browser_of(taken: RunContext) -> BrowserSetup | None:
    """The browser of a run that may render pages; raises UsageError when there is none that starts."""
    settings, place = taken.request.settings, taken.place
    if settings.engine == "http":
        return None
    from muniment.app.browsers import browser_for  # noqa: PLC0415  (a crawl without browsers needs none of it)

    clear_profiles(taken.out)
    state = None if place.directory.resolve() == taken.out.resolve() else place.directory.absolute()
    return await browser_for(settings, taken.registry, state, place.database)
