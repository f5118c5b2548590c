"""The orchestrator: owns the hosts' permits and the file names, and answers workers, one message after the other.

worker asks for pages ──▶ schedule picks hosts ──▶ queue claims ──▶ worker
worker finishes pages ──▶ queue (one transaction) ──▶ announced ──▶ acknowledged
"""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import structs

from muniment.clock import steadied, steady_ms
from muniment.crawl import protocol
from muniment.crawl.orchestrator.concurrency import Concurrency
from muniment.crawl.orchestrator.control_server import ControlServer
from muniment.crawl.orchestrator.hosts.policy import HostPolicy
from muniment.crawl.orchestrator.limits import DiskSpace, Limits
from muniment.crawl.orchestrator.live_settings import FAILED, LiveSettings
from muniment.crawl.orchestrator.ordered_tasks import OrderedTasks
from muniment.crawl.orchestrator.queue_client import PendingIntake, QueueClient
from muniment.crawl.orchestrator.robots_cache import RobotsCache
from muniment.crawl.orchestrator.rounds import GiveUp, Rounds
from muniment.crawl.orchestrator.schedule import Schedule
from muniment.crawl.orchestrator.seed_feed import SeedFeed
from muniment.crawl.orchestrator.warc_files import DamagedFiles, WarcFiles
from muniment.crawl.orchestrator.workers import WorkerHandle, Workers
from muniment.crawl.ports import Events, LastHooks, Queue
from muniment.crawl.progress import Progress, RunOutcome, finished
from muniment.errors import ArchiveError, DiskFullError, MunimentError, ProtocolError
from muniment.model.event import Snapshot, TransferEvent, WaitingHost, WorkerEvent, page_events
from muniment.model.host import HostTerms
from muniment.model.queue import ClaimOutcome
from muniment.rules.worker_deaths import WorkerDeaths

__all__ = ["Orchestrator"]

_TICK_S, _GRACE_S, _REST_S = 0.2, 10.0, 2.0


class Orchestrator:
    """One run of one job on this machine."""

    def __init__(
        self,
        queue: Queue,
        warc_files: WarcFiles,
        events: Events,
        setup: protocol.Setup,
        limits: Limits,
        launch: Any,
        seed_feed: SeedFeed | None = None,
    ) -> None:
        settings = setup.settings
        self._queue, self._warc_files, self._events = queue, warc_files, events
        self._limits, self._seed_feed = limits, seed_feed
        self._schedule = Schedule(settings.per_host, gap_ms=settings.delay.high, spread=settings.reorder == "on")
        self._tasks = OrderedTasks(self._give_up)
        self._workers = Workers(launch, self._received, self._tasks.in_turn(self._worker_ended))
        self.recording_channel, tell = self._workers.recording_channel, self._workers.send
        self._hosts = HostPolicy(queue, self._schedule, events, tell, self._workers.holds)
        self._client = QueueClient(queue, PendingIntake(events, self._schedule, self._hosts))
        self._robots = RobotsCache(queue, tell)
        self._rounds = Rounds(events, self._client.next_round)
        self._patience = GiveUp(self._hosts, self._rounds, settings.give_up_after)
        self._inflight = Concurrency(settings, events, tell, browser=setup.browser is not None)
        self._damaged = DamagedFiles(warc_files, events, self._client.fetch_again)
        self.settings = LiveSettings(
            *(setup, self._client, self._hosts, limits, self._patience),
            *(self._inflight, events, self._workers, self.stop),
        )
        self.change = self._tasks.in_turn(self.settings.change)
        self._control = ControlServer(Path(setup.out), self.change)
        self._disk = DiskSpace(limits, events)
        self._deaths = WorkerDeaths()
        self.progress = Progress()
        self.rendering = self._workers.rendering
        events.listen(self.progress.take)
        self._outcome: RunOutcome | None = None
        self._wake = asyncio.Event()
        self.wake, self._stopping, self._killed, self._over = self._wake.set, False, False, False
        self.last_hooks: LastHooks | None = None
        self._error: BaseException | None = None

    async def run(self, *, resumed: bool) -> RunOutcome:
        """Work until the job is finished or stopped; the index is joined when it returns."""
        tasks = asyncio.create_task(self._tasks.run())
        try:
            await self._begin(resumed=resumed)
            await self._control.open()
            try:
                outcome = await self._work()
            finally:
                self._control.close()
            if self.last_hooks is not None:
                outcome = await self._end_hooks(self.last_hooks, outcome)
            self._stopping = self._over = True
            grace_s = _GRACE_S if self.last_hooks is None else _REST_S  # who asked workers for something has ended
            await self._workers.end(grace_s, None if self._killed else self._warc_files.prepare)
        finally:
            tasks.cancel()
        return await self._end_run(outcome)

    async def _begin(self, *, resumed: bool) -> None:
        backlog = await self._queue.pending(steady_ms())
        self._hosts.begin(steady_ms(), resumed=resumed)
        self._client.take_in(backlog.changes)
        self._schedule.backlog.add([(host, host, n) for host, n in backlog.requisites], steady_ms())
        self._rounds.resume(backlog.round_pages, backlog.round_due_at)
        if self._seed_feed is not None and backlog.progress is not None:
            self._seed_feed.begin(backlog.progress)

    async def _end_run(self, outcome: RunOutcome) -> RunOutcome:
        await self._queue.keep_hosts(self._hosts.known.take_news(), {})
        if self._error is not None:
            await self._damaged.seal()
            raise self._error
        if self._killed:
            return RunOutcome(3, "stopped at once")
        return await self._damaged.finish(outcome, self._queue.repeats)

    async def _work(self) -> RunOutcome:
        do = self._tasks.carry_out
        if await do(self._verdict) is None:
            await self._workers.hire()
        self._wake.set()  # a list is read at once
        while (outcome := await do(self._verdict)) is None:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), _TICK_S)
            self._wake.clear()  # after the wait: the tick before may have asked for this one
            try:
                await do(self._tick)
            except MunimentError as error:
                self._give_up(error)  # what was fetched is sealed in any case
            if self._wake.is_set():
                await asyncio.sleep(0)  # other work runs between two batches
        return outcome

    def stop(self, reason: str) -> None:
        """End the run as if a limit were reached: what is in flight finishes first."""
        self._end(RunOutcome(4 if reason == FAILED else 3, reason))

    def kill(self, _reason: str) -> None:
        """End every worker at once; the run stays resumable, and the next one joins the index."""
        self._killed = True
        self._workers.kill()

    def _end(self, outcome: RunOutcome) -> None:
        self._outcome = self._outcome or outcome
        self._wake.set()

    async def _verdict(self) -> RunOutcome | None:
        if self._outcome is not None:
            return self._outcome
        held, state = self._workers.pages_held(), self._client.state
        more = self._schedule.pending or (self._seed_feed is not None and self._seed_feed.waiting)
        if not (held or more or state.at_work or await self._rounds.begin()):
            return finished(self._client.state, fruitless=bool(self._seed_feed and self._seed_feed.fruitless))
        limit = self._limits.reached(state.totals, idle=not held)
        return RunOutcome(3, f"limit: {limit}") if limit else None

    async def _tick(self) -> None:
        """Four times a second, and when asked for: the list, more workers, disk space, repairs, pages that came due."""
        self._disk.tick()
        self._hosts.pauses.tick(steady_ms())
        self._inflight.tick(steady_ms(), self._workers.hosts_held)
        if given_up := await self._patience.tick(steady_ms(), self._workers.pages_held()):
            self._end(RunOutcome(3, given_up))
        await self._client.settle(drained=not self._schedule.pending)
        if self._client.state.at_work:
            await self._client.upkeep()
        await self._damaged.step()
        if self._seed_feed is not None and not self._disk.paused:
            pending, hosts = self._schedule.pending, self._schedule.hosts
            await self._seed_feed.step(pending, hosts, self._client.admit, idle=self._workers.idle)
        if self._hurried or self._client.state.judging:
            self._wake.set()
        await self._serve()
        self._workers.end_silent()
        self._workers.keep(self.settings.setup.workers, _GRACE_S)
        if self._short_of_workers or not self._workers.staying:
            await self._workers.hire()

    @property
    def _hurried(self) -> bool:
        return self._seed_feed is not None and self._seed_feed.hurried(self._schedule.pending) and not self._disk.paused

    # -- workers

    def _received(self, worker: WorkerHandle, message: protocol.FromWorker) -> None:
        self._tasks.add(partial(self._answer, worker, message))

    def _give_up(self, error: BaseException) -> None:
        self._error = self._error or error
        self._end(RunOutcome(1, str(error)))

    async def _answer(self, worker: WorkerHandle, message: protocol.FromWorker) -> None:
        match message:
            case protocol.Alive():
                self._inflight.wanted(steady_ms())
            case protocol.WantPages(most):
                worker.wants = most
                await self._serve_one(worker)
            case protocol.Finish():
                await self._finish(worker, message)
            case protocol.AskKnown() | protocol.AskCookies() | protocol.AskIgnored():
                worker.send(await self._client.look_up(message))
            case protocol.AskRobots(origin, number=number):
                await self._robots.asked(worker.number, number, origin)
            case protocol.AskGap(host, delay_ms, number=number):
                self._hosts.wants_gap(host, delay_ms)
                worker.send(protocol.GapReply(number=number))
                await self._hosts.keep()
            case protocol.AskPermits() | protocol.LeaveHosts():
                self._hosts.lent.received(worker.number, message)
            case protocol.RobotsReport(origin, answer):
                self._hosts.learn(origin, answer)  # before any worker that waits for it goes on
                await self._hosts.keep()
                await self._robots.told(worker.number, origin, answer)
            case protocol.HostNews(host, sign):
                sign = structs.replace(sign, asked_at=steadied(sign.asked_at))
                if self._hosts.told(worker.number, host, sign, crowded=self._inflight.crowded(steady_ms())):
                    self._inflight.fell_silent(host, sign.asked_at, steady_ms())
                await self._hosts.keep()
                await self._serve()
            case protocol.AskFile(number=number):
                worker.open_file = self._warc_files.next_name()
                worker.send(protocol.FileName(worker.open_file, number=number))
            case protocol.FileEnd(name):
                worker.file_ended(name)
                self._warc_files.ended(name)
            case protocol.PermitsReport(held):
                self._hosts.permits_held(worker.number, held)
                await self._serve()
            case protocol.GiveBack(claims):
                await self._release(worker, claims)
            case protocol.Hello():
                self._welcome(worker)
            case protocol.WorkerFailure(disk_full, text):
                self._give_up(DiskFullError(text) if disk_full else ArchiveError(f"a worker gave up: {text}"))
                worker.dismiss()
            case protocol.NameAddresses():
                self.settings.found(worker, message)
            case protocol.Bye():
                worker.goodbye()

    def _welcome(self, worker: WorkerHandle) -> None:
        number, setup = worker.number, self.settings.setup
        self._hosts.add_worker(number)
        self._inflight.staff(self._schedule.workers)
        share = self._inflight.share(number)
        worker.welcome(structs.replace(setup, number=number, inflight=share.most, tabs=share.tabs))
        self._events.publish(WorkerEvent(number=number, pid=worker.process.pid, state="started"))
        if self._stopping or worker.leaving:
            worker.send(protocol.Stop(0.0))

    async def _worker_ended(self, worker: WorkerHandle) -> None:
        """What a worker held goes back; its file is cut to what its journal confirms."""
        self._workers.remove(worker)
        held = dict(worker.held)
        try:
            if worker.open_file:
                self._warc_files.mend(worker.open_file)
            await self._release(worker, [(page, held[page].claim_id) for page in held], died=worker.lost)
            self._events.publish(worker.end(stopping=self._stopping))
            await self._robots.gone(worker.number)
        except MunimentError as error:
            self._give_up(error)
        self._hosts.lent.gone(worker.number)
        self._schedule.remove_worker(worker.number, steady_ms())
        self._inflight.staff(self._schedule.workers)
        if not self._stopping:
            self._deaths.died(list(held) if worker.lost else [], worker.ending)
            if worker.finished or worker.leaving:
                self._deaths.worked()
            elif complaint := self._deaths.too_many():
                self._give_up(ProtocolError(complaint))
        self._wake.set()  # a new one is launched, if it was the last

    async def _end_hooks(self, hooks: LastHooks, outcome: RunOutcome) -> RunOutcome:
        """While the last hooks run, workers record what these fetch; what was stopped runs in another run."""
        self._over = True
        if outcome.reason != "finished":
            self._end(outcome)
            self._workers.rest(_GRACE_S)
        whole = await hooks(outcome, partial(self._tasks.carry_out, self._attend))
        return outcome if whole else self._outcome or RunOutcome(3, "hooks were stopped")

    async def _attend(self) -> bool:
        """Keep a worker at hand; False when there will be none."""
        if self._error is None and not self._killed:
            try:
                self._hosts.pauses.tick(steady_ms())
                await self._client.keep_permits(self._schedule.take_freed())
                if not self._workers.staying:
                    await self._workers.hire()
            except MunimentError as error:
                self._give_up(error)
        return self._error is None and not self._killed

    async def _serve(self) -> None:
        await self._client.keep_permits(self._schedule.take_freed())
        for worker in list(self._workers.members.values()):
            if worker.wants:
                await self._serve_one(worker)

    async def _serve_one(self, worker: WorkerHandle) -> None:
        """Claim pages for a worker that asked; without any, the question stays open."""
        if self._over or self._disk.paused or self._outcome or worker.leaving or self._deaths.alone(worker.held):
            return
        out = self._workers.linked_held() if self._limits.counts else 0
        most = self._limits.room(self._client.state.totals, out, worker.wants)
        now = steady_ms()
        picked = self._schedule.pick(worker.number, self._hosts.most(most, now), now, len(worker.held))
        if not picked:
            return
        without = self._hosts.turns.without(picked, now)
        claimed = await self._client.claim(picked, now, self._hosts.known.take_news(), without)
        got = Counter(claim.host_id for claim in claimed.claims)
        for host_id, asked in picked:
            rest_until = self._hosts.states.rest_until(host_id, now)
            self._schedule.claimed(worker.number, host_id, got[host_id], asked, now, rest_until)
        if claimed.claims:
            await self._delivery(worker, claimed, self._hosts.updates.terms(worker.number, got, now))

    async def _delivery(self, worker: WorkerHandle, claimed: ClaimOutcome, terms: list[HostTerms]) -> None:
        """Send a worker its pages; pages that may not go beside others go back, and the question stays open for it."""
        out, back = self._deaths.sift(self._hosts.judged(claimed.claims), idle=not worker.held)
        worker.take(claimed.claims)
        out, beside = self._hosts.turns.sift(out, steady_ms())
        if out:
            worker.wants = 0
            worker.send(protocol.ClaimedPages(out, terms, claimed.cookies, claimed.more_cookies))
        await self._release(worker, [(claim.page_id, claim.claim_id) for claim in (*back, *beside)])

    async def _finish(self, worker: WorkerHandle, message: protocol.Finish) -> None:
        batch, spared = self._hosts.spare(message.batch, worker.held)
        await self._release(worker, spared)
        held = worker.held
        self._events.prepare(lambda: page_events((held[p.page_id], p) for p in batch.pages if p.page_id in held))
        added = self.rendering.take_new(message.wire_bytes)
        report = await self._client.finish(batch, worker.number, self._hosts.known.take_news(), added)
        if message.batch.cookies:
            # committed, so that a page's request never has newer data than a resumed run
            self._workers.tell_cookies(worker, message.batch.cookies)
        worker.worked(message.cpu_s)
        worker.finished += len(report.accepted)
        self._deaths.worked()
        taken = set(report.accepted)
        pages = [page for page in batch.pages if page.page_id in taken]
        accepted = list(zip(worker.drop(page.page_id for page in pages), pages, strict=True))
        self._events.publish(TransferEvent(message.wire_bytes), *page_events(accepted))
        self.progress.take_answers(accepted, batch.exchanges)
        now = steady_ms()
        self._schedule.backlog.add(report.requisites, now)
        self._deaths.cleared(taken)
        for host_id, count in Counter(claim.host_id for claim, _ in accepted).items():
            self._schedule.landed(worker.number, host_id, count)
        for claim, page in accepted:
            if claim.depth < 0:
                self._schedule.backlog.tried(claim, claim.host_id, now, done=page.done)
            self._hosts.answered(claim.host_id, claim.url, page)
        if any(page.done for page in pages):
            self._patience.went_on()
        self._client.take_in(report.changes)
        self.settings.heed(report.changes.made)
        await self._hosts.keep()
        await self._serve()
        worker.send(protocol.FinishAck())  # after the requisites of these pages: no further page goes before them
        if not self._schedule.pending or self._short_of_workers or self._hurried:
            self._wake.set()

    @property
    def _short_of_workers(self) -> bool:
        few = len(self._workers.staying) < self.settings.setup.workers
        return few and self._schedule.pending > 100 and self._workers.busy and not self._disk.paused

    async def _release(self, worker: WorkerHandle, claims: list[tuple[int, int]], *, died: bool = False) -> None:
        if not (held := [(page, claim) for page, claim in claims if page in worker.held]):
            return
        await self._queue.release(held, died=died)
        back = Counter((claim.host_id, claim.host) for claim in worker.drop(page for page, _ in held))
        for (host_id, name), pages in back.items():
            self._schedule.landed(worker.number, host_id, pages)
            self._schedule.add_pending(host_id, name, pages)
            self._hosts.plan(host_id)

    def snapshot(self) -> Snapshot:
        """The present state of the crawl."""
        return self.progress.snapshot(
            self._client.state.totals,
            queued=self._schedule.pending,
            in_flight=self._workers.pages_held(),
            workers=len(self._workers.members),
            note=self._disk.note or self._limits.note or self._hosts.note() or self._rounds.note(),
            waiting=[WaitingHost(*one) for one in self._hosts.pauses.waited() if one[2] > steady_ms()],
            ending=self._stopping,
            tabs=self.rendering.tabs,
            more=self._seed_feed is not None and self._seed_feed.waiting,
        )
