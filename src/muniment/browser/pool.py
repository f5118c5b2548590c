"""The browsers of a worker: pages take turns in their tabs, and what crashes, hangs or grows is replaced."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from pathlib import Path

from muniment.browser.agent import BrowserAgent
from muniment.browser.faults import BrowserError, FaultKind
from muniment.browser.options import RenderOptions
from muniment.browser.page import PageRun
from muniment.browser.ports import PageAnswer, Processes, Recording
from muniment.browser.program import BrowserProgram
from muniment.browser.rendered import RenderedPage
from muniment.browser.running import RunningBrowser, start_browser

__all__ = ["BrowserPool"]

_WATCH_S = 1.0
_HUNG_S = 10.0
"""Seconds after a page's time in which its tab has to be done."""
_LAST_RECORDS_S = 15.0


class BrowserPool:
    """At most so many pages at once, in one browser at a time."""

    def __init__(
        self,
        processes: Processes,
        program: BrowserProgram,
        profiles: Path,
        trusted: str,
        *,
        sandbox: bool,
        memory: int,
        tabs: int,
    ) -> None:
        self._processes, self._program, self._profiles, self._trusted = processes, program, profiles, trusted
        self._sandbox, self._memory = sandbox, memory
        self._tabs, self._busy = tabs, 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._starting = asyncio.Lock()
        self._browser: RunningBrowser | None = None
        self._ending: set[asyncio.Task[None]] = set()
        self._watch: asyncio.Task[None] | None = None
        self.started = 0
        """Browsers that were started."""
        self.replaced = 0
        """Those of them that took the place of one that was of no more use, its pages apart."""

    def set_tabs(self, tabs: int) -> None:
        """So many pages at once from now on."""
        self._tabs = tabs
        self._pass_on()

    def _pass_on(self) -> None:
        """Let pages go on that wait, as far as there are tabs."""
        while self._busy < self._tabs and self._waiting:
            waiting = self._waiting.popleft()
            if not waiting.done():
                self._busy += 1
                waiting.set_result(None)

    async def _turn(self) -> None:
        """Wait for a tab."""
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        self._pass_on()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._leave()
            raise

    def _leave(self) -> None:
        self._busy -= 1
        self._pass_on()

    async def render(
        self,
        recording: Recording,
        options: RenderOptions,
        agent: BrowserAgent,
        answer: PageAnswer,
        scripts: str,
        began: Callable[[PageRun], None] = lambda _run: None,
    ) -> RenderedPage:
        """Render a page when it is its turn; raises BrowserError when a browser was lost over it.

        One that loses its browser over another page begins again, once.
        """
        await self._turn()
        try:
            try:
                return await self._once(recording, options, agent, answer, scripts, began)
            except _OthersError:
                return await self._once(recording, options, agent, answer, scripts, began)
        except _OthersError as fault:
            raise BrowserError(fault.kind) from None
        finally:
            self._leave()

    async def _once(
        self,
        recording: Recording,
        options: RenderOptions,
        agent: BrowserAgent,
        answer: PageAnswer,
        scripts: str,
        began: Callable[[PageRun], None],
    ) -> RenderedPage:
        browser = await self._ready()
        most = options.page_time + _HUNG_S + _LAST_RECORDS_S
        try:
            async with asyncio.timeout(most):
                return await browser.render(recording, options, agent, answer, scripts, began)
        except TimeoutError:
            self._drop(browser)
            browser.kill("hung")
            raise BrowserError("hung") from None
        except BrowserError as fault:
            was_whole = browser.fault is None
            self._drop(browser)
            if fault.kind == "hung" and was_whole:
                browser.kill("hung")
            if not was_whole and browser.crowd > 1:
                raise _OthersError(fault.kind) from fault
            raise

    async def _ready(self) -> RunningBrowser:
        """A browser for a page."""
        async with self._starting:
            if self._browser is not None and not self._browser.usable:
                self._drop(self._browser)
            if self._browser is None:
                if self._watch is None:
                    self._watch = asyncio.create_task(self._look())
                self._browser = await start_browser(
                    self._processes, self._program, self._profiles, self._trusted, sandbox=self._sandbox
                )
                self.started += 1
            return self._browser

    def _drop(self, browser: RunningBrowser) -> None:
        """Give it no more pages, and end it when those in it are done."""
        if self._browser is browser:
            self._browser = None
            self.replaced += browser.fault is not None
            task = asyncio.create_task(_retire(browser))
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)

    async def _look(self) -> None:
        """End a browser that takes too much memory."""
        while True:
            await asyncio.sleep(_WATCH_S)
            browser = self._browser
            if browser is None or browser.tools.lost:
                continue
            used = await asyncio.to_thread(browser.process.memory)
            if used > self._memory:
                browser.kill("memory")

    async def close(self) -> None:
        """End all browsers."""
        if self._watch is not None:
            self._watch.cancel()
        if self._browser is not None:
            browser, self._browser = self._browser, None
            await browser.end()
        if self._ending:
            await asyncio.gather(*self._ending, return_exceptions=True)


class _OthersError(Exception):
    def __init__(self, kind: FaultKind) -> None:
        super().__init__(kind)
        self.kind: FaultKind = kind


async def _retire(browser: RunningBrowser) -> None:
    await browser.idle.wait()
    await browser.end()
