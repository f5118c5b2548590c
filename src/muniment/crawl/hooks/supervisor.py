"""The orchestrator's side of hooks: launches their worker, hands it pages that wait, and has kept what they did."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Protocol

from msgspec import structs

from muniment.crawl.channel import Channel
from muniment.crawl.hooks.messages import (
    CrawlEventOver,
    EndHooks,
    FromHooks,
    HooksBye,
    HookSetup,
    HooksReady,
    HooksReport,
    PagesForHooks,
    PortLost,
    StopHooks,
    WantPagesForHooks,
)
from muniment.crawl.hooks.ports import PagePorts
from muniment.crawl.ports import Events
from muniment.errors import MunimentError
from muniment.model.event import HookEvent
from muniment.model.hooks.plugins import CRAWL_EVENTS
from muniment.model.hooks.runs import NOWHERE, HookBatch, HookNetwork, HookPage, PriorTry
from muniment.procs.children.child import Child
from muniment.procs.children.launch import LaunchedWorker, ending
from muniment.rules.hooks.outcomes import RECORDER_ENDED, stopped, was_stopped

__all__ = ["HookQueue", "HookSupervisor"]

_LOOK_S = 0.1
_GRACE_S = 10.0
_LAST_S = 8.0
"""Seconds beyond the grace in which hooks that are stopped end, and those of the crawl's end run."""
_MOST_DEATHS = 5
_UNTIL_STOPPED = 30
"""How often a stopped run still asks for a port of the crawl."""
_log = logging.getLogger(__name__)


class HookQueue(Protocol):
    """The hooks of one job: all that the supervisor asks of a tracker. Raises MunimentError."""

    async def due(self, most: int, held: Iterable[bytes]) -> list[HookPage]:
        """The eldest pages that wait for their hooks, but for those that are held."""

    async def prior(self) -> tuple[PriorTry, ...]:
        """The last try of each hook of the crawl."""

    async def keep(self, batch: HookBatch, page_id: int) -> None:
        """Keep what hooks have done, and the links that they found."""


class HookSupervisor:
    """The hooks of one run. A worker that is killed is replaced, and its pages are handed out again."""

    def __init__(
        self,
        queue: HookQueue,
        launch: Callable[[], LaunchedWorker],
        setup: HookSetup,
        events: Events,
        held: Callable[[], bool],
        failed: Callable[[str], None],
        ports: PagePorts | None = None,
    ) -> None:
        """While `held` it hands out no page; `failed` gets the reason when hooks cannot go on.

        With `ports` what hooks fetch is recorded.
        """
        self._queue, self._launch, self._setup, self._events = queue, launch, setup, events
        self._is_held, self._failed, self._ports = held, failed, ports
        self._channel: Channel | None = None
        self._process: Child | None = None
        self._pages: dict[bytes, HookPage] = {}
        self._lost: set[bytes] = set()
        """Those of them whose port is gone: their hooks were asked to end."""
        self._wants = self._deaths = 0
        self._wake = asyncio.Event()
        self._reports: asyncio.Queue[tuple[HooksReport, asyncio.Task[str] | None]] = asyncio.Queue()
        """Each with why what its hooks asked for may not be recorded."""
        self._unrecorded: set[bytes] = set()
        """Pages with such results, which are to run again."""
        self._over = self._bye = self._again = self._stopped = False
        self._last: EndHooks | None = None
        self._end_over = False
        """Each hook of the job's end has had its turn."""
        self._cut_short: set[tuple[str, str]] = set()
        """Those of them that were stopped."""
        self._tasks: list[asyncio.Task[None]] = []
        self._watching: asyncio.Task[None] | None = None
        self._welcoming: asyncio.Task[None] | None = None
        self._late = asyncio.Event()

    async def begin(self) -> None:
        """Launch the worker. Raises MunimentError."""
        process = await self._hire()
        self._watching = asyncio.create_task(self._watch(process))
        self._tasks = [asyncio.create_task(one) for one in (self._delivery(), self._keep())]

    async def _hire(self) -> Child:
        launched = self._launch()
        self._process, self._wants = launched.process, 0
        self._channel = Channel(FromHooks, self._received, lambda: None)
        await self._channel.open(launched.channel)
        return launched.process

    @property
    def _ending(self) -> bool:
        """Whether no page is handed out any more."""
        return self._over or self._stopped or self._last is not None

    def stop(self, grace_s: float = _GRACE_S) -> None:
        """Begin no further hook of a page; what runs then is stopped after the grace, and the rest is bounded."""
        if self._stopped:
            return
        asyncio.get_running_loop().call_later(grace_s + _LAST_S, self._late.set)
        self._stopped = True
        if self._channel is not None:
            self._channel.send(StopHooks(grace_s))

    async def finish(self, *, finished: bool) -> bool:
        """Let the hooks of the crawl's end run, and wait until all is over and kept; whether none is to run again."""
        self._last = EndHooks(finished)
        if self._channel is not None:
            self._channel.send(self._last)
        if self._watching is not None:
            late = asyncio.create_task(self._late.wait())
            await asyncio.wait([self._watching, late], return_when=asyncio.FIRST_COMPLETED)
            late.cancel()
        await self.end()
        return self._end_over and not self._cut_short

    def kill(self) -> None:
        """End the worker at once, and all that runs below it."""
        self._over = True
        if self._process is not None:
            self._process.kill()

    async def end(self) -> None:
        """End the worker, if it is there, and keep what it said."""
        self._over = True
        if self._process is not None and self._watching is not None:
            self._process.kill()
            await self._watching
        if self._channel is not None:
            self._channel.close()
        await asyncio.sleep(0)
        kept = asyncio.create_task(self._reports.join())
        tasks = [*self._tasks, kept]
        if self._tasks:
            await asyncio.wait([self._tasks[-1], kept], return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # -- the worker

    def _received(self, message: FromHooks) -> None:
        match message:
            case HooksReady():
                self._welcoming = asyncio.create_task(self._welcome())
            case WantPagesForHooks(most):
                self._wants = most
                self._wake.set()
            case HooksReport():
                self._deaths = 0
                self._reports.put_nowait((message, self._recorded(message.batch)))
            case CrawlEventOver(event):
                self._deaths = 0
                self._end_over = event == "CrawlEnd"
            case HooksBye(again):
                self._bye, self._again = not again, again
                if self._channel is not None:
                    self._channel.close()

    async def _welcome(self) -> None:
        channel, network = self._channel, await self._network_of_crawl()
        try:
            prior = await self._queue.prior()
        except MunimentError as error:
            self._failed(str(error))
            return
        if channel is None or channel is not self._channel:
            return
        channel.send(structs.replace(self._setup, prior=prior, network=network))
        if self._stopped:
            channel.send(StopHooks(0.0))
        if self._last is not None:
            channel.send(self._last)

    async def _network_of_crawl(self) -> HookNetwork | None:
        """The port of the crawl's hooks, once a worker is there to open it."""
        if self._ports is None or not any(hook.event in CRAWL_EVENTS for hook in self._setup.hooks):
            return None
        left = _UNTIL_STOPPED
        while (network := await self._ports.for_crawl(self._setup.crawl_id)) is None and left and not self._over:
            left -= self._stopped  # a run that fails may have no worker any more
            await asyncio.sleep(_LOOK_S)
        return network or NOWHERE

    async def _watch(self, process: Child) -> None:
        """Replace a worker that was killed, or whose hooks are to begin anew, unless the run is over."""
        while self._is_missed(await process.wait_async()):
            await self._reports.join()
            if self._over:
                return
            self._again = False
            self._pages.clear()
            self._lost.clear()
            self._unrecorded.clear()
            if self._ports is not None:
                self._ports.close_all()
            try:
                process = await self._hire()
            except MunimentError as error:
                self._failed(str(error))
                return

    def _is_missed(self, code: int) -> bool:
        """Whether another worker goes on after one that ended."""
        if self._over or self._bye or (self._stopped and not self._again):
            return False
        if self._again:
            _log.warning("the worker that recorded what hooks of the crawl fetch ended: hooks begin anew")
            return True
        self._deaths += 1
        _log.warning("the worker of hooks ended (%s) and is replaced", ending(code))
        if self._deaths >= _MOST_DEATHS:
            self._failed(f"hooks: their worker ended {self._deaths} times in a row ({ending(code)})")
        return self._deaths < _MOST_DEATHS

    # -- pages

    async def _delivery(self) -> None:
        while True:
            with suppress(TimeoutError):  # pages become due without a word
                await asyncio.wait_for(self._wake.wait(), _LOOK_S)
            self._wake.clear()
            self._tell_lost()
            if self._wants and not self._ending and not self._is_held() and self._channel is not None:
                try:
                    await self._hand_to(self._channel)
                except MunimentError as error:
                    self._failed(str(error))

    def _tell_lost(self) -> None:
        """Hooks whose port is gone would fail for it: they are ended, and begin again with another port."""
        for key in self._ports.lost() if self._ports is not None else ():
            if key not in self._lost and self._channel is not None:
                self._lost.add(key)
                self._channel.send(PortLost(key))

    async def _hand_to(self, channel: Channel) -> None:
        pages = await self._queue.due(self._wants, self._pages)
        if self._ports is not None:
            found = [await self._ports.with_port(page) for page in pages]
            pages = [page for page in found if page is not None]
        if channel is not self._channel:
            return  # the worker was replaced meanwhile
        if pages:
            self._wants = 0
            self._pages.update((page.page.key, page) for page in pages)
            channel.send(PagesForHooks(pages))

    async def _keep(self) -> None:
        while True:
            await self._keep_one(*await self._reports.get())
            self._reports.task_done()

    def _recorded(self, batch: HookBatch) -> asyncio.Task[str] | None:
        """Have the worker say when the requests of hooks that ended are recorded: their results go after them."""
        if self._ports is None or not batch.results:
            return None
        return asyncio.create_task(self._ports.unrecorded(batch.key))

    async def _keep_one(self, report: HooksReport, recorded: asyncio.Task[str] | None) -> None:
        batch = report.batch
        if recorded is not None and (why := await recorded):
            self._unrecorded.add(batch.key)
            batch = _interrupted(batch, why)
        elif self._ports is not None and batch.key in self._ports.lost():
            batch = _interrupted(batch, RECORDER_ENDED, failed_only=True)
        if batch.end is not None and batch.key in self._unrecorded:
            batch = _unfinished(batch)
        try:
            await self._queue.keep(batch, report.page_id)
        except MunimentError as error:
            self._failed(str(error))
            return
        for one in batch.results:
            if one.event == "CrawlEnd":
                (self._cut_short.add if was_stopped(one.error) else self._cut_short.discard)((one.plugin, one.hook))
        if batch.end is not None:
            self._pages.pop(batch.key, None)
            self._lost.discard(batch.key)
            self._unrecorded.discard(batch.key)
            if self._ports is not None:
                self._ports.close(batch.key)
        self._events.publish(
            *(
                HookEvent(one.url, one.plugin, one.hook, one.attempt, one.status, one.error, one.duration_ms)
                for one in batch.results
            )
        )


def _interrupted(batch: HookBatch, why: str, *, failed_only: bool = False) -> HookBatch:
    """What hooks have done whose port is gone, to be run again.

    Those that failed may have failed for it; what others had asked for may not be recorded.
    """
    results = [
        one
        if was_stopped(one.error) or (failed_only and one.status != "failed")
        else structs.replace(one, status="failed", error=stopped(f"{why} ({one.error or one.status})"))
        for one in batch.results
    ]
    return _unfinished(structs.replace(batch, results=results))


def _unfinished(batch: HookBatch) -> HookBatch:
    return batch if batch.end is None else structs.replace(batch, end=structs.replace(batch.end, done=False))
