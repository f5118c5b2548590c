"""The browser of a pipeline's machine: looked for once, and started once to see whether it can be."""

from __future__ import annotations

import asyncio

from msgspec import structs

from muniment.browser.options import BrowserSetup
from muniment.browser.program import find_program
from muniment.errors import UsageError
from muniment.procs.registry import ProcessRegistry
from muniment.settings.environment import browser_given
from muniment.settings.option_table import Settings

__all__ = ["MachineBrowser"]


class MachineBrowser:
    """What renders the pages of all jobs of a pipeline, if there is anything."""

    def __init__(self, machine: Settings, registry: ProcessRegistry) -> None:
        """Raises UsageError when the one that is named is of no use."""
        self._machine, self._registry = machine, registry
        self._setup: BrowserSetup | None = None
        self._trying = asyncio.Lock()
        self.version = ""
        """The version that is reported: jobs that render come to a pipeline that has one."""
        named = machine.browser_path or browser_given() or None
        try:
            self.version = find_program(named).version
        except UsageError:
            if named is not None:
                raise

    async def setup(self, scripts: str) -> BrowserSetup:
        """What workers need for a job with this JavaScript.

        Raises UsageError when there is no browser that starts, and reports none from then on.
        """
        from muniment.app.browsers import browser_for  # noqa: PLC0415  (a pipeline without such jobs needs none of it)

        async with self._trying:
            if self._setup is None:
                try:
                    self._setup = await browser_for(self._machine, self._registry, None, "")
                except UsageError:
                    self.version = ""
                    raise
            return structs.replace(self._setup, scripts=scripts)
