"""The browsers of a worker: pages take turns in their tabs, and what crashes, hangs or grows is replaced."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from functools import partial
from pathlib import Path

from muniment.browser.faults import BrowserError, FaultKind
from muniment.browser.ports import Processes, RenderRequest
from muniment.browser.program import BrowserProgram
from muniment.browser.rendered import RenderedPage
from muniment.browser.running import RunningBrowser, start_browser
from muniment.browser.traffic import PageTraffic
from muniment.clock import monotonic
from muniment.model.event import OpenTab

__all__ = ["BrowserPool"]

_WATCH_S = 1.0
_HUNG_S = 10.0
"""Seconds after a page's time in which its tab has to be done."""
_LAST_S = 5.0


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
        agent: str = "",
    ) -> None:
        self._processes, self._program, self._profiles, self._trusted = processes, program, profiles, trusted
        self._sandbox, self._memory, self._agent = sandbox, memory, agent
        self._tabs, self._busy = max(1, tabs), 0  # with none, a page would wait for ever
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._starting = asyncio.Lock()
        self._browser: RunningBrowser | None = None
        self._living: list[RunningBrowser] = []
        """All that run, those that get no more pages too."""
        self._ending: set[asyncio.Task[None]] = set()
        self._watch: asyncio.Task[None] | None = None
        self.started = 0
        """Browsers that were started."""
        self.replaced = 0
        """Those of them that took the place of one that was of no more use, its pages apart."""

    def tabs(self) -> tuple[OpenTab, ...]:
        """The pages that are in browsers, the oldest first."""
        now = monotonic()
        return tuple(
            OpenTab(run.url, run.phase, now - run.began)
            for browser in self._living
            for run in sorted(browser.runs, key=lambda run: run.began)
        )

    def set_tabs(self, tabs: int) -> None:
        """So many pages at once from now on."""
        self._tabs = max(1, tabs)
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

    async def render(self, order: Callable[[], RenderRequest]) -> RenderedPage:
        """Render a page, as it is ordered when its turn comes; raises BrowserError when a browser was lost over it.

        One that loses its browser over another page begins again, once.
        """
        await self._turn()
        try:
            try:
                return await self._once(order())
            except _OthersError:
                return await self._once(order())
        except _OthersError as fault:
            raise BrowserError(fault.kind) from None
        finally:
            self._leave()

    async def _once(self, order: RenderRequest) -> RenderedPage:
        browser, traffic = await self._ready(), PageTraffic()
        try:
            return await self._in_time(browser, order, traffic)
        except BrowserError as fault:
            fault.chains = list(traffic.chains())
            raise

    async def _in_time(self, browser: RunningBrowser, order: RenderRequest, traffic: PageTraffic) -> RenderedPage:
        work = asyncio.ensure_future(browser.render(order, traffic))
        try:
            end = monotonic() + order.options.page_time + _HUNG_S
            while not work.done() and (left := end + traffic.held_s - monotonic()) > 0:
                await asyncio.wait({work}, timeout=left)
            if not work.done():
                # every wait of the page ends with its browser
                self._drop(browser)
                browser.kill("hung")
                await asyncio.wait({work}, timeout=_LAST_S)
                raise BrowserError("hung")
            return self._outcome(browser, work)
        finally:
            work.cancel()
            work.add_done_callback(_taken)

    def _outcome(self, browser: RunningBrowser, work: asyncio.Future[RenderedPage]) -> RenderedPage:
        try:
            return work.result()
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
                self._browser = await self._start()
                self._living.append(self._browser)
                self.started += 1
            return self._browser

    async def _start(self) -> RunningBrowser:
        """A browser that has answered: one that does not start, though the run has tried it, is replaced once."""
        start = partial(
            start_browser,
            *(self._processes, self._program, self._profiles, self._trusted),
            sandbox=self._sandbox,
            agent=self._agent,
        )
        try:
            return await start()
        except BrowserError:
            return await start()

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
            self._living = [browser for browser in self._living if not browser.tools.lost]
            for browser in list(self._living):
                if await asyncio.to_thread(browser.process.memory, self._memory) > self._memory:
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


def _taken(work: asyncio.Future[RenderedPage]) -> None:
    """What comes of a page after its end is of no use."""
    if not work.cancelled():
        work.exception()


async def _retire(browser: RunningBrowser) -> None:
    await browser.idle.wait()
    await browser.end()
