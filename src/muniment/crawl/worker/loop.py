"""The worker: claims pages, has its engine fetch them, records them, and reports what became of them.

    claim ──▶ engine ──▶ record (synced) ──▶ finish

The way of a page is `_work`, `_record` and `_finish`; the rest answers the orchestrator.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path

from muniment.archive.warc.warcinfo import WarcInfo
from muniment.clock import now_ms
from muniment.crawl import protocol
from muniment.crawl.channel import Channel
from muniment.crawl.ports import Engine
from muniment.crawl.worker.hosts.held_pages import HeldPages
from muniment.crawl.worker.recorder import RecordedBatch, Recorder
from muniment.crawl.worker.services import EngineServices
from muniment.crawl.worker.task_pool import TaskPool
from muniment.errors import DiskFullError, MunimentError, ProtocolError
from muniment.fetch.client import Client
from muniment.model.host import HostTerms
from muniment.model.page import Claim, FinishBatch
from muniment.settings.option_table import Settings

__all__ = ["EngineFactory", "Worker"]

_TICK_S, _ALIVE_EVERY = 0.25, 4
_OLD_RULES_EVERY = 240
"""Ticks, about a minute: rules of robots.txt hold for hours."""
EngineFactory = Callable[[EngineServices], Engine]


class Worker:
    """One worker process's share of a crawl."""

    def __init__(
        self, channel: Channel, setup: protocol.Setup, client: Client, engine: EngineFactory, info: WarcInfo
    ) -> None:
        settings = setup.settings
        self._channel, self._client = channel, client
        self._held = HeldPages(setup.inflight, settings.delay, client.permits)
        self._recorder = Recorder(
            *(Path(setup.out), info, settings.warc_size, channel),
            every_body=settings.store_unchanged,
            hooked=setup.hooked,
        )
        self._services = EngineServices(channel, setup, client, self._held, self._recorder)
        self._services.fail = self._fail
        self._engine = engine(self._services)
        self._unacknowledged: deque[list[str]] = deque()
        self._tasks = TaskPool(self._work, self._fail)
        self._stop_task: asyncio.Task[None] | None = None
        self._last_stop: asyncio.Future[float] = asyncio.get_running_loop().create_future()
        """The grace of hooks, once this worker is to end."""
        self._timers: dict[str, asyncio.TimerHandle] = {}
        """Hosts whose next page is not due yet."""
        self._asked = self._asked_lately = self._stopping = False
        self._reported = protocol.RenderReport()
        self._ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    @property
    def ended(self) -> bool:
        """Whether it has sent its last message."""
        return self._ended.done()

    async def run(self) -> None:
        """Work until asked to stop; raises errors that make going on impossible."""
        recording = asyncio.create_task(self._record())
        recording.add_done_callback(self._recording_ended)
        self._ask_pages()
        try:
            for tick in itertools.count(1):
                await asyncio.wait([self._ended], timeout=_TICK_S)
                if self._ended.done():
                    break
                self._return_permits()
                if not self._asked_lately:
                    self._ask_pages()  # what waits may be of slow hosts, and other hosts came in
                self._asked_lately = False
                if tick % _ALIVE_EVERY == 0 or self._held.full:
                    self._channel.send(protocol.Alive(self._held.full))
                    self._report_rendering()
                if tick % _OLD_RULES_EVERY == 0:
                    self._engine.forget_old(now_ms())
            self._ended.result()
        finally:
            recording.cancel()
            await self._engine.close()
            await self._client.close()

    # -- the way of a page

    async def _work(self, claim: Claim) -> None:
        """One connection's work on a host, page after page."""
        host = claim.host
        following: Claim | None = claim
        while following is not None:
            claim = following
            page = await self._engine.visit(claim)
            if page is None:
                self._withhold(claim)
                return
            self._held.landed(host)
            self._recorder.add(page)
            following = None if self._stopping else self._held.take(host)
            if self._held.queued < self._held.running:
                self._ask_pages()
        self._wake_later(host)
        self._start_pages()

    async def _record(self) -> None:
        """Pages become records, batch after batch, and each batch one finish."""
        async for batch in self._recorder.batches():
            for report in batch.reports:
                self._channel.send(report)
            if batch.tells:
                self._finish(batch)
                await self._channel.drained()

    def _finish(self, batch: RecordedBatch) -> None:
        *before, last = self._engine.take_cookies()
        for cookies in before:
            self._send_finish(FinishBatch([], [], cookies), [])
        news = [new for page in batch.pages for new in page.found.news]
        finish = FinishBatch(batch.results, news, last, batch.captured, batch.payloads, batch.exchanges)
        self._send_finish(finish, [page.claim.host for page in batch.pages])

    def _send_finish(self, batch: FinishBatch, hosts: list[str]) -> None:
        services = self._services
        self._channel.send(protocol.Finish(batch, time.process_time(), services.wire_bytes))
        services.wire_bytes = 0
        self._unacknowledged.append(hosts)

    def _acknowledged(self) -> None:
        """The tracker has stored what became of the pages of the oldest finish."""
        for host in self._unacknowledged.popleft():
            self._held.acknowledged(host)
        self._start_pages()
        self._ask_pages()

    # -- when pages may start

    def _withhold(self, claim: Claim) -> None:
        """A page's host may not be asked now, unlike when its task began."""
        self._held.put_back(claim)
        self._wake_later(claim.host)
        # the wait may have ended just now, and there may be no other event to start it again
        self._start_pages()

    def _wake_later(self, host: str) -> None:
        wait = self._held.wait(host)
        if wait > 0 and host not in self._timers:
            self._timers[host] = asyncio.get_running_loop().call_later(wait, self._due, host)

    def _due(self, host: str) -> None:
        del self._timers[host]
        # a wait may have become longer meanwhile
        self._wake_later(host)
        self._held.look_at(host)
        self._start_pages()

    def _start_pages(self) -> None:
        if self._stopping:
            return
        for host in self._held.startable():
            claim = self._held.take(host)
            if claim is not None:
                self._tasks.take(claim)

    def _recording_ended(self, task: asyncio.Task[None]) -> None:
        if task.cancelled():
            return
        error = task.exception()
        if error is not None:
            self._fail(error)
        elif not self._ended.done():
            self._report_rendering()
            self._channel.send(protocol.Bye())
            self._ended.set_result(None)

    def _fail(self, error: BaseException) -> None:
        if self._ended.done():
            return
        if isinstance(error, MunimentError):
            self._channel.send(protocol.WorkerFailure(isinstance(error, DiskFullError), str(error)))
        self._ended.set_exception(error)

    # -- messages of the orchestrator

    def received(self, message: protocol.FromOrchestrator) -> None:
        """Handle one message; after its own last message, answers mean nothing any more."""
        if self.ended:
            return
        match message:
            case protocol.ClaimedPages():
                self._engine.received(message)
                self._claimed(message)
            case protocol.LeaseUpdate(left_ms):
                self._held.set_lease(left_ms)
                self._start_pages()
            case protocol.HostUpdate(hosts, answer):
                self._treat(hosts, answer=answer)
            case protocol.InflightShare(most):
                self._engine.received(message)
                self._held.set_inflight(most)
                self._start_pages()
                self._ask_pages()
            case protocol.CookiesUpdate() | protocol.NameAddresses():
                self._engine.received(message)
            case protocol.OpenPort() | protocol.ClosePort() | protocol.AskRecords():
                self._engine.received(message)
            case protocol.FinishAck():
                self._acknowledged()
            case protocol.SettingsUpdate(settings):
                self._engine.received(message)
                self._amend(settings)
            case protocol.Stop():
                self._stop_as_asked(message)
            case protocol.Setup():
                raise ProtocolError("a second setup")

    def _claimed(self, message: protocol.ClaimedPages) -> None:
        self._asked = False
        self._held.add(message.claims, message.hosts)
        self._batch_by(message.hosts)
        self._start_pages()
        for terms in message.hosts:
            self._wake_later(terms.host)
        if self._held.queued < self._held.running:
            self._ask_pages()

    def _treat(self, hosts: list[HostTerms], *, answer: bool) -> None:
        changed = False
        for terms in hosts:
            changed |= self._held.treat(terms, answer=answer)
            if not terms.wait_ms:
                self._wake_later(terms.host)
        self._batch_by(hosts)
        if changed:
            self._return_permits()
        self._start_pages()

    def _batch_by(self, hosts: list[HostTerms]) -> None:
        # half as many again as are fetched at once: fewer syncs and commits, and the window of three is kept
        permits = max((terms.permits for terms in hosts), default=0)
        self._recorder.enough = max(self._recorder.enough, permits * 3 // 2)

    def _amend(self, settings: Settings) -> None:
        """Every page without a sent request goes back, pages that wait for their turn too: to be judged anew."""
        self._held.set_delay(settings.delay)
        self._give_back(self._held.give_back())
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

    def _stop_as_asked(self, asked: protocol.Stop) -> None:
        if not (asked.stay or self._last_stop.done()):
            self._last_stop.set_result(asked.grace_s)
        if not self._stopping:
            self._stopping = True
            self._stop_task = asyncio.create_task(self._stop(asked.grace_s))
            self._stop_task.add_done_callback(self._stopped)

    async def _stop(self, grace_s: float) -> None:
        """Let what is in flight finish within the grace, give the rest back, and seal."""
        self._give_back(self._held.give_back())
        await asyncio.gather(self._tasks.end(grace_s), self._end_hooks())
        self._recorder.close()

    async def _end_hooks(self) -> None:
        await self._engine.end_hooks(await self._last_stop)

    def _stopped(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self._fail(error)

    # -- messages of the worker

    def _give_back(self, claims: list[Claim]) -> None:
        if claims:
            self._channel.send(protocol.GiveBack([(claim.page_id, claim.claim_id) for claim in claims]))
            # with nothing left to finish, the worker would never ask again, and its hosts would wait for it
            self._ask_pages()

    def _ask_pages(self) -> None:
        if not self._asked and not self._stopping and self._held.wanted > 0:
            self._asked = self._asked_lately = True
            self._channel.send(protocol.WantPages(self._held.wanted))

    def _report_rendering(self) -> None:
        report = self._engine.render_report()
        if report != self._reported:
            self._reported = report
            self._channel.send(report)

    def _return_permits(self) -> None:
        """Report which connections are no longer held: closed when idle, or after their number was changed."""
        # first, or it would seem that their hosts still have pages here
        self._give_back(self._held.give_back_left())
        if kept := self._held.give_back_permits():
            self._channel.send(protocol.PermitsReport(kept))
