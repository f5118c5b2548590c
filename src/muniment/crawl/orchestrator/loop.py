"""The orchestrator: owns the tracker, the hosts' permits and the file names, and answers workers.

worker asks for pages ──▶ schedule picks hosts ──▶ tracker claims ──▶ worker
worker finishes pages ──▶ tracker (one transaction) ──▶ acknowledged ──▶ announced
"""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

from msgspec import structs

from muniment.clock import steadied, steady_ms
from muniment.crawl import protocol
from muniment.crawl.orchestrator.concurrency import Concurrency
from muniment.crawl.orchestrator.control_server import ControlServer
from muniment.crawl.orchestrator.damage import DamagedFiles
from muniment.crawl.orchestrator.give_up import GiveUp
from muniment.crawl.orchestrator.host_policy import HostPolicy
from muniment.crawl.orchestrator.limits import DiskSpace, Limits
from muniment.crawl.orchestrator.live_settings import LiveSettings
from muniment.crawl.orchestrator.poison import PoisonPages
from muniment.crawl.orchestrator.robots_cache import RobotsCache
from muniment.crawl.orchestrator.rounds import Rounds
from muniment.crawl.orchestrator.schedule import Schedule
from muniment.crawl.orchestrator.seed_feed import SeedFeed
from muniment.crawl.orchestrator.warc_files import WarcFiles
from muniment.crawl.orchestrator.workers import WorkerHandle, Workers
from muniment.crawl.ports import Events
from muniment.crawl.progress import Progress, RunOutcome
from muniment.errors import ArchiveError, DiskFullError, MunimentError, ProtocolError
from muniment.model.event import Snapshot, TransferEvent, WaitingHost, WorkerEvent, page_events, skip_events
from muniment.model.page import Claim
from muniment.tracker.queue.frontier import Frontier

__all__ = ["Orchestrator"]

_TICK_S = 0.2
_GRACE_S = 10.0


class Orchestrator:
    """One run of one job on this machine."""

    def __init__(
        self,
        frontier: Frontier,
        warc_files: WarcFiles,
        events: Events,
        setup: protocol.Setup,
        limits: Limits,
        launch: Any,
        seed_feed: SeedFeed | None = None,
    ) -> None:
        settings = setup.settings
        self._frontier, self._warc_files, self._events = frontier, warc_files, events
        self._limits, self._seed_feed = limits, seed_feed
        self._schedule = Schedule(settings.per_host, gap_ms=settings.delay.high, spread=settings.reorder == "on")
        self._hosts = HostPolicy(frontier.hosts, self._schedule, events, self._tell, settings.user_agent)
        self._rounds = Rounds(frontier, events, self._add_pending)
        self._patience = GiveUp(self._hosts, self._rounds, settings.give_up_after)
        self._inflight = Concurrency(settings, events, self._tell)
        self._damaged = DamagedFiles(frontier, warc_files, events)
        self._robots = RobotsCache(frontier.robots, self._tell)
        self._workers = Workers(launch, self._received, self._worker_ended)
        self._settings = LiveSettings(
            setup, frontier, self._schedule, limits, self._patience, self._inflight, events, self._workers, self.stop
        )
        self._desk = ControlServer(Path(setup.out), self._settings.change)
        self._disk = DiskSpace(Path(setup.out), limits, events)
        self._poison = PoisonPages()
        self.progress = Progress()
        events.listen(self.progress.take)
        self._outcome: RunOutcome | None = None
        self._wake = asyncio.Event()
        self._stopping = self._killed = self._drained = False
        self._error: BaseException | None = None

    async def run(self, *, resumed: bool) -> RunOutcome:
        """Work until the job is finished or stopped; the index is joined when it returns."""
        for host_id, pages in self._frontier.pending().items():
            self._schedule.add_pending(host_id, self._frontier.hosts.name(host_id), pages)
        self._schedule.backlog.add([(host, host, n) for host, n in self._frontier.requisites()], steady_ms())
        self._hosts.begin(steady_ms(), resumed=resumed)
        self._rounds.resume()
        await self._desk.open()
        try:
            outcome = await self._work()
        finally:
            self._desk.close()
        await self._stop_workers()
        if self._error is not None:
            await self._damaged.seal()
            raise self._error
        if self._killed:
            return RunOutcome(3, "stopped at once")
        return await self._damaged.finish(outcome, self._seed_feed.repeats() if self._seed_feed else ())

    async def _work(self) -> RunOutcome:
        if self._verdict() is None:
            await self._workers.hire()
        self._wake.set()  # a list is read at once
        while (outcome := self._verdict()) is None:
            try:
                await self._tick()
            except MunimentError as error:
                self._give_up(error)  # what was fetched is sealed all the same
        return outcome

    def stop(self, reason: str) -> None:
        """End the run as if a limit were reached: what is in flight lands first."""
        self._end(RunOutcome(3, reason))

    def kill(self, _reason: str) -> None:
        """End every worker at once; the run stays resumable, its index is joined by the next one."""
        self._killed = True
        self._workers.kill()

    def _end(self, outcome: RunOutcome) -> None:
        self._outcome = self._outcome or outcome
        self._wake.set()

    def _verdict(self) -> RunOutcome | None:
        if self._outcome is not None:
            return self._outcome
        held = self._workers.pages_held()
        more = self._schedule.pending or (self._seed_feed is not None and self._seed_feed.waiting)
        if not (held or more or self._frontier.repairing or self._settings.judging or self._rounds.begin()):
            # a shard may have no line at all
            nothing = self._frontier.empty and not (self._seed_feed and self._seed_feed.fruitless)
            return RunOutcome(0 if self._frontier.totals.starts_captured or nothing else 4, "finished")
        limit = self._limits.reached(self._frontier.totals, idle=not held)
        return RunOutcome(3, f"limit: {limit}") if limit else None

    async def _tick(self) -> None:
        """Four times a second, and when asked for: the list, more workers, disk space, repairs, pages that came due."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._wake.wait(), _TICK_S)
        self._wake.clear()  # after the wait: the tick before may have asked for this one
        self._disk.tick()
        self._hosts.tick(steady_ms())
        self._inflight.tick(steady_ms(), self._workers.hosts_held)
        if given_up := self._patience.tick(steady_ms(), self._workers.pages_held()):
            self._end(RunOutcome(3, given_up))
        self._settle()
        if self._frontier.repairing:
            self._add_pending(self._frontier.repair(), {})
        self._add_pending(self._damaged.step(), {})
        if self._seed_feed is not None and not self._disk.paused:
            pending, hosts = self._schedule.pending, self._schedule.hosts
            self._add_pending(self._seed_feed.step(pending, hosts, idle=self._workers.idle), {})
        if self._settings.judging:
            self._add_pending(self._settings.judge(), {})
        if self._hurried or self._settings.judging:
            self._wake.set()
            await asyncio.sleep(0)  # others have their turn between two batches
        self._serve()
        self._workers.end_silent()
        self._workers.keep(self._settings.setup.workers, _GRACE_S)
        if self._short_of_workers or not self._workers.staying:
            await self._workers.hire()

    @property
    def _hurried(self) -> bool:
        return self._seed_feed is not None and self._seed_feed.hurried(self._schedule.pending) and not self._disk.paused

    def _settle(self) -> None:
        """Move the job between ACTIVE and DRAINING when its last page goes out, or more come in."""
        drained = not self._schedule.pending
        if drained != self._drained:
            self._drained = drained
            self._frontier.settle(steady_ms())

    # -- workers

    def _received(self, worker: WorkerHandle, message: protocol.FromWorker) -> None:
        try:
            self._answer(worker, message)
        except MemoryError:
            raise  # an end in good order takes memory, too
        except Exception as error:
            self._give_up(error)

    def _give_up(self, error: BaseException) -> None:
        self._error = self._error or error
        self._end(RunOutcome(1, str(error)))

    def _answer(self, worker: WorkerHandle, message: protocol.FromWorker) -> None:
        match message:
            case protocol.Alive():
                self._inflight.wanted(steady_ms())
            case protocol.WantPages(most):
                worker.wants = most
                self._serve_one(worker)
            case protocol.Finish():
                self._finish(worker, message)
            case protocol.AskKnown(digests, number=n):
                worker.send(protocol.KnownDigests(self._frontier.payloads.known(digests), number=n))
            case protocol.AskCookies(url, number=n):
                worker.send(protocol.CookieField(self._frontier.cookies.header(url, steady_ms() // 1000), number=n))
            case protocol.AskRobots(origin, number=number):
                self._robots.asked(worker.number, number, origin)
            case protocol.RobotsReport(origin, answer):
                # before any worker that waits for it goes on
                if answer is not None:
                    self._hosts.learn(origin, answer)
                self._robots.told(worker.number, origin, answer)
            case protocol.HostNews(host, sign):
                sign = structs.replace(sign, asked_at=steadied(sign.asked_at))
                crowded = self._inflight.crowded(steady_ms())
                if self._hosts.told(worker.number, host, sign, crowded=crowded):
                    self._inflight.fell_silent(host, sign.asked_at, steady_ms())
                self._serve()
            case protocol.AskFile(number=number):
                worker.open_file = self._warc_files.next_name()
                worker.send(protocol.FileName(worker.open_file, number=number))
            case protocol.FileEnd(name):
                worker.file_ended(name)
                self._warc_files.ended(name)
            case protocol.PermitsReport(held):
                self._hosts.permits_held(worker.number, held)
                self._serve()
            case protocol.GiveBack(claims):
                self._release(worker, claims)
            case protocol.Hello():
                self._welcome(worker)
            case protocol.WorkerFailure(disk_full, text):
                self._give_up(DiskFullError(text) if disk_full else ArchiveError(f"a worker gave up: {text}"))
                worker.dismiss()
            case protocol.NameAddresses():
                self._settings.found(worker, message)
            case protocol.Bye():
                worker.goodbye()

    def _tell(self, worker: int, message: protocol.FromOrchestrator) -> None:
        if worker in self._workers.members:
            self._workers.members[worker].send(message)

    def _welcome(self, worker: WorkerHandle) -> None:
        lowered = self._schedule.add_worker(worker.number)
        self._inflight.staff(self._schedule.workers)
        part = self._inflight.part(worker.number)
        worker.send(structs.replace(self._settings.setup, number=worker.number, inflight=part))
        for other, permits in lowered.items():
            self._workers.members[other].send(protocol.PermitsUpdate(permits))
        for origin, reason in self._hosts.dead.items():
            worker.send(protocol.DeadHost(origin, reason))
        self._events.publish(WorkerEvent(number=worker.number, pid=worker.process.pid, state="started"))
        if self._stopping or worker.leaving:
            worker.send(protocol.Stop(0.0))

    def _worker_ended(self, worker: WorkerHandle) -> None:
        """What a worker held goes back; its file is cut to what its journal vouches for."""
        held = list(worker.held)
        try:
            if worker.open_file:
                self._warc_files.mend(worker.open_file)
            self._release(worker, [(page, claim.claim_id) for page, (claim, _) in worker.held.items()])
            self._events.publish(worker.end(stopping=self._stopping))
        except MunimentError as error:
            self._give_up(error)
        self._schedule.remove_worker(worker.number, steady_ms())
        self._inflight.staff(self._schedule.workers)
        self._robots.gone(worker.number)
        if not self._stopping:
            self._poison.died(held if worker.lost else [], worker.ending)
            if worker.finished or worker.leaving:
                self._poison.worked()
            elif complaint := self._poison.too_many():
                self._give_up(ProtocolError(complaint))
        self._wake.set()  # another one is hired, if it was the last

    async def _stop_workers(self) -> None:
        self._stopping = True
        for worker in self._workers.members.values():
            worker.send(protocol.Stop(_GRACE_S))
        if not self._killed:
            await self._warc_files.prepare()
        if not await self._workers.ended(_GRACE_S + 20):
            self._workers.kill()
            await self._workers.ended(10)

    # -- pages

    def _serve(self) -> None:
        for worker in self._workers.members.values():
            if worker.wants:
                self._serve_one(worker)

    def _serve_one(self, worker: WorkerHandle) -> None:
        """Claim pages for a worker that asked; without any, the question stays open."""
        if self._stopping or self._disk.paused or self._outcome or worker.leaving or self._poison.alone(worker.held):
            return
        out = self._workers.linked_held() if self._limits.counts else 0
        most = self._limits.room(self._frontier.totals, out, worker.wants)
        now = steady_ms()
        picked = self._schedule.pick(worker.number, self._hosts.most(most, now), now, len(worker.held))
        if not picked:
            return
        claims = self._frontier.claim(picked, now)
        left_out = self._frontier.take_left_out()
        if left_out:
            self._add_pending({host: -n for host, n in Counter(host for host, _, _ in left_out).items()}, {})
            self._events.publish(*skip_events((url, why) for _, url, why in left_out))
        got = Counter(claim.host for claim in claims)
        permits: dict[str, int] = {}
        ids: dict[str, int] = {}
        for host_id, asked in picked:
            name = self._frontier.hosts.name(host_id)
            ids[name] = host_id
            _, granted = self._schedule.claimed(worker.number, host_id, got[name], asked, now)
            permits[name] = granted
        if claims:
            self._hand_out(worker, claims, ids, {host: n for host, n in permits.items() if got[host]})

    def _hand_out(
        self, worker: WorkerHandle, claims: list[Claim], ids: dict[str, int], permits: dict[str, int]
    ) -> None:
        """Send a worker its pages; what may not go beside others goes back, and the question stays open for it."""
        out, back = self._poison.sift(self._hosts.judged(claims, ids), idle=not worker.held)
        worker.take(claims, ids)
        if out:
            worker.wants = 0
            cookies, more = self._frontier.cookies.some_of(permits)
            worker.send(protocol.ClaimedPages(out, permits, cookies, self._hosts.gaps(permits), more))
        self._release(worker, [(claim.page_id, claim.claim_id) for claim in back])

    def _finish(self, worker: WorkerHandle, message: protocol.Finish) -> None:
        batch, spared = self._hosts.spare(message.batch, worker.held)
        self._hosts.stuck(worker.held[page][1] for page, _ in spared if page in worker.held)
        self._release(worker, spared)
        held = worker.held
        self._events.prepare(lambda: page_events((held[p.page_id][0], p) for p in batch.pages if p.page_id in held))
        report = self._frontier.finish(batch, worker.number, steady_ms())
        if message.batch.cookies:
            # committed, so that what a page is asked for with is never newer than what a resumed run knows
            self._workers.tell_cookies(worker, message.batch.cookies)
        worker.worked(message.cpu_s)
        worker.finished += len(report.accepted)
        self._poison.worked()
        ended = [(worker.held[page.page_id][0], page) for page in report.accepted]
        self._events.publish(TransferEvent(message.wire_bytes), *page_events(ended), *skip_events(report.skipped))
        now = steady_ms()
        self._schedule.backlog.add(report.requisites, now)
        for page in report.accepted:
            claim, host_id = worker.drop(page.page_id)
            self._poison.cleared(page.page_id)
            self._schedule.landed(worker.number, host_id)
            self._schedule.backlog.tried(claim, host_id, now, done=page.done)
            self._hosts.answered(host_id, claim.url, page)
            if page.done:
                self._patience.went_on()
        self._add_pending(report.pending, report.retries)
        self._serve()
        worker.send(protocol.FinishAck())  # after the requisites of these pages: no further page takes their place
        if not self._schedule.pending or self._short_of_workers or self._hurried:
            self._wake.set()

    @property
    def _short_of_workers(self) -> bool:
        few = len(self._workers.staying) < self._settings.setup.workers
        return few and self._schedule.pending > 100 and self._workers.busy and not self._disk.paused

    def _add_pending(self, pending: dict[int, int], retries: dict[int, int]) -> None:
        for host_id, pages in pending.items():
            self._schedule.add_pending(host_id, self._frontier.hosts.name(host_id), pages, retries.get(host_id, 0))
            self._hosts.plan(host_id)

    def _release(self, worker: WorkerHandle, claims: list[tuple[int, int]]) -> None:
        held = [(page, claim) for page, claim in claims if page in worker.held]
        if not held:
            return
        self._frontier.release(held)
        back: Counter[int] = Counter()
        for page, _ in held:
            _, host_id = worker.drop(page)
            self._schedule.landed(worker.number, host_id)
            back[host_id] += 1
        self._add_pending(dict(back), {})

    def snapshot(self) -> Snapshot:
        """The crawl now."""
        return self.progress.snapshot(
            self._frontier.totals,
            queued=self._schedule.pending,
            in_flight=self._workers.pages_held(),
            workers=len(self._workers.members),
            note=self._disk.note or self._hosts.note() or self._rounds.note(),
            waiting=[WaitingHost(*one) for one in self._hosts.waited() if one[2] > steady_ms()],
            ending=self._stopping,
            more=self._seed_feed is not None and self._seed_feed.waiting,
        )
