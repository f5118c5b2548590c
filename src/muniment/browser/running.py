"""One browser that runs: its process, its pipe, its pages; and when it is of no more use."""

from __future__ import annotations

import asyncio
import os
import shutil
from pathlib import Path
from uuid import uuid4

from muniment.browser.contexts import BrowserContext, Contexts
from muniment.browser.devtools import DevTools
from muniment.browser.faults import BrowserError, CallError, FaultKind
from muniment.browser.page import PageRun
from muniment.browser.ports import BrowserProcess, Processes, RenderRequest
from muniment.browser.program import BrowserProgram, command_of
from muniment.browser.rendered import RenderedPage
from muniment.browser.tab import Tab
from muniment.browser.tabs import Tabs
from muniment.browser.traffic import PageTraffic

__all__ = ["MOST_PAGES", "PROFILE", "RunningBrowser", "start_browser"]

MOST_PAGES = 200
"""Pages after which a browser is replaced: it has grown by then."""
PROFILE = "browser-"
"""How the names of profiles begin; the number of their process follows."""
_START_S = 30.0
_END_S = 3.0
_LATE_S = 5.0
"""What a page has still in flight at its end has so many seconds."""


class RunningBrowser:
    """A browser that has answered."""

    def __init__(self, process: BrowserProcess, profile: Path) -> None:
        self.process, self._profile = process, profile
        self.tools = DevTools(self._gone)
        self.tabs = Tabs(self.tools)
        self._contexts = Contexts(self.tools)
        self.idle = asyncio.Event()
        """Set while no page is in it, and when it has gone."""
        self.idle.set()
        self.runs: set[PageRun] = set()
        self.pages = 0
        self.fault: FaultKind | None = None
        """Why it was ended."""
        self.crowd = 0
        """Pages that were in it then."""
        self._ended = asyncio.ensure_future(process.ended())

    @property
    def usable(self) -> bool:
        """Whether another page may come into it."""
        return self.fault is None and not self.tools.lost and self.pages < MOST_PAGES

    def _gone(self) -> None:
        if self.fault is None:
            self.fault, self.crowd = "crashed", len(self.runs)
        self.idle.set()

    def kill(self, why: FaultKind) -> None:
        """End it at once, with all its processes."""
        if self.fault is None:
            self.fault, self.crowd = why, len(self.runs)
        self.process.kill()

    async def end(self) -> None:
        """End it, with what it left."""
        if not self.tools.lost:
            self.tools.tell("Browser.close")
            await asyncio.wait({self._ended}, timeout=_END_S)
        self.tools.close()
        self.process.kill()
        await self._contexts.close()
        # one that the kernel cannot end yet is left to the sweep
        await asyncio.wait({self._ended}, timeout=_START_S)
        await asyncio.to_thread(_remove, self._profile)

    async def render(self, order: RenderRequest, traffic: PageTraffic) -> RenderedPage:
        """Render a page in a tab of its own; raises BrowserError."""
        self.pages += 1
        context: BrowserContext | None = None
        tab: Tab | None = None
        run: PageRun | None = None
        whole = False
        try:
            context = await self._contexts.take(order, traffic)
            tab = await self.tabs.open(context.context_id, order.options)
            run = PageRun(self.tools, tab, order, traffic)
            self.runs.add(run)
            self.idle.clear()
            page = await run.run()
            whole = page.state == "settled"
        except CallError as error:
            raise BrowserError(self.fault or "crashed", str(error)) from error
        except BrowserError as fault:
            raise BrowserError(self.fault or fault.kind, str(fault)) from fault
        finally:
            if run is not None:
                self.runs.discard(run)
                if not self.runs:
                    self.idle.set()
            if tab is not None:
                await self.tabs.close(tab)
            if context is not None:
                late_s = _LATE_S if self.fault is None else 0.0
                await self._contexts.give_back(context, late_s, whole=whole)
        page.chains = list(traffic.chains())
        return page


async def start_browser(
    processes: Processes, program: BrowserProgram, profile_in: Path, trusted: str, *, sandbox: bool, agent: str = ""
) -> RunningBrowser:
    """Start a browser; raises BrowserError of the kind `start` when it does not answer."""
    profile = profile_in / f"{PROFILE}{os.getpid()}-{uuid4().hex[:12]}"
    profile.mkdir(mode=0o700, parents=True)
    theirs_in, ours_out = os.pipe()
    ours_in, theirs_out = os.pipe()
    try:
        command = command_of(program, profile, [trusted], sandbox=sandbox, agent=agent)
        process = processes.start(command, profile, theirs_in, theirs_out)
    except OSError as error:
        os.close(ours_in)
        os.close(ours_out)
        _remove(profile)
        raise BrowserError("start", str(error.strerror or error)) from error
    finally:
        os.close(theirs_in)
        os.close(theirs_out)
    browser = RunningBrowser(process, profile)
    await browser.tools.open(ours_in, ours_out)
    try:
        await browser.tools.call("Browser.getVersion", within=_START_S)
        await browser.tabs.begin()
    except (BrowserError, CallError) as fault:
        browser.kill("start")
        await browser.end()
        raise BrowserError("start", process.last_words or str(fault)) from fault
    return browser


def _remove(profile: Path) -> None:
    """Remove a profile, into which what is ending may still write."""
    for _ in range(20):
        shutil.rmtree(profile, ignore_errors=True)
        if not profile.exists():
            return
