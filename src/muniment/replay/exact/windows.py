"""Exact browsers that are opened from the banner: each is a `muniment replay --exact` of its own below this process."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path

from muniment.errors import UsageError
from muniment.procs.children.run import ChildRun, launch
from muniment.procs.registry import ProcessRegistry
from muniment.replay.exact.browser import browser_program

__all__ = ["ExactWindows"]

_MOST = 4
_LOOK_S = 0.3


class ExactWindows:
    """Opens exact browsers, and ends them with this replay."""

    def __init__(self, registry: ProcessRegistry, patterns: Sequence[str]) -> None:
        self._registry, self._patterns, self._directory = registry, patterns, str(Path.cwd())
        self._open: dict[ChildRun, asyncio.Task[None]] = {}
        self._begins = asyncio.Lock()

    async def open(self, url: str, at: str) -> None:
        """Open one at a page; `at` is digits. Raises UsageError without a Chromium, and when many are open."""
        browser_program()
        async with self._begins:
            if len(self._open) >= _MOST:
                raise UsageError(f"{_MOST} exact browsers are open; close one of them first")
            command = [
                sys.executable, "-m", "muniment", "replay", "--exact", "--quiet", "--url", url, "--at", at, "--",
                *self._patterns,
            ]  # fmt: skip
            run = await asyncio.to_thread(self._launched, command)
            self._open[run] = asyncio.create_task(self._until_closed(run))

    def end(self) -> None:
        """End all of them."""
        for run in list(self._open):
            run.terminate()

    def _launched(self, command: Sequence[str]) -> ChildRun:
        return launch(self._registry, command, process_type="cli", label="replay", pwd=self._directory, background=True)

    async def _until_closed(self, run: ChildRun) -> None:
        """Wait until the reader has closed it, and note how it ended."""
        while run.poll() is None:  # noqa: ASYNC110 (a process sends no event)
            await asyncio.sleep(_LOOK_S)
        run.let_go()
        del self._open[run]
