"""Browsers for a run: which one, whether it starts, and how its workers start it, as processes that are known."""

from __future__ import annotations

import asyncio
import logging
import os
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from muniment.app.inputs.scripts import read_script
from muniment.app.processes import open_registry
from muniment.browser.faults import BrowserError
from muniment.browser.options import BrowserSetup
from muniment.browser.program import BrowserProgram, find_program
from muniment.browser.running import start_browser
from muniment.crawl.worker.browser_engine import BrowserEngine
from muniment.crawl.worker.services import EngineServices
from muniment.errors import UsageError
from muniment.procs.children.piped import PipedChild, launch_piped
from muniment.procs.registry import ProcessRegistry
from muniment.settings.environment import browser_given
from muniment.settings.option_table import Settings

__all__ = ["BrowserProcesses", "browser_engine", "browser_for"]

_log = logging.getLogger(__name__)


class BrowserProcesses:
    """Starts browsers with rows."""

    def __init__(self, registry: ProcessRegistry) -> None:
        self._registry = registry

    def start(self, command: Sequence[str], profile: Path, reading: int, writing: int) -> PipedChild:
        """Start one in a session of its own, which ends with this process; raises OSError."""
        return launch_piped(self._registry, "browser", command, profile, reading, writing)


def browser_engine(setup: BrowserSetup) -> Callable[[EngineServices], BrowserEngine]:
    """What makes the engine of a worker that renders pages."""
    state = Path(setup.processes) if setup.processes else None
    registry = open_registry(state, setup.database, "worker", "fetcher", silent=True)
    return partial(BrowserEngine, setup=setup, processes=BrowserProcesses(registry))


async def browser_for(settings: Settings, registry: ProcessRegistry, state: Path | None, database: str) -> BrowserSetup:
    """The browser of a run, which was started once to see whether it can be; raises UsageError with one line."""
    scripts = read_script(settings.custom_js) if settings.custom_js else ""
    program = await asyncio.to_thread(find_program, settings.browser_path or browser_given() or None)
    sandbox = await _tried(program, registry)
    return BrowserSetup(
        path=program.path,
        version=program.version,
        sandbox=sandbox,
        scripts=scripts,
        processes=str(state) if state is not None else "",
        database=database,
    )


async def _tried(program: BrowserProgram, registry: ProcessRegistry) -> bool:
    """Whether it starts with its sandbox; without it, that is said once. Raises UsageError when it does not start."""
    complaint = ""
    for sandbox in (True, False) if os.geteuid() else (False,):
        with tempfile.TemporaryDirectory(prefix="muniment-browser-", ignore_cleanup_errors=True) as place:
            try:
                started = await start_browser(BrowserProcesses(registry), program, Path(place), "", sandbox=sandbox)
            except BrowserError as fault:
                complaint = str(fault)
                continue
            await started.end()
        if not sandbox:
            why = "root cannot use it" if not os.geteuid() else complaint
            _log.warning("the browser runs without its sandbox: %s", why)
        return sandbox
    raise UsageError(f"the browser {program.path} cannot be started: {complaint}")
