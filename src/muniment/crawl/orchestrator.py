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
from muniment.crawl import messages as say
from muniment.crawl.change_desk import ChangeDesk
from muniment.crawl.crew import Crew, Member
from muniment.crawl.disk_desk import DiskDesk
from muniment.crawl.events import EventLog
from muniment.crawl.feeder import Feeder
from muniment.crawl.hosts_desk import HostsDesk
from muniment.crawl.inflight_desk import InflightDesk
from muniment.crawl.limits import Limits
from muniment.crawl.patience import Patience
from muniment.crawl.progress import Outcome, Progress, Snapshot, Waited
from muniment.crawl.robots_desk import RobotsDesk
from muniment.crawl.rounds import Rounds
from muniment.crawl.salvage import Salvage
from muniment.crawl.schedule import Schedule
from muniment.crawl.shelf import Shelf
from muniment.crawl.steering import Steering
from muniment.crawl.suspects import Suspects
from muniment.errors import ArchiveError, DiskFullError, MunimentError, ProtocolError
from muniment.model.page import Claim
from muniment.tracker.frontier import FinishReport, Frontier

__all__ = ["Orchestrator"]

_TICK_S = 0.2
_GRACE_S = 10.0


class Orchestrator:
    """One run of one job on this machine."""

    def __init__(
        self,
        frontier: Frontier,
        shelf: Shelf,
        events: EventLog,
        setup: say.Setup,
        limits: Limits,
        launch: Any,
        feeder: Feeder | None = None,
    ) -> None:
        settings = setup.settings
        self._frontier, self._shelf, self._events = frontier, shelf, events
        self._limits, self._feeder = limits, feeder
        self._schedule = Schedule(settings.per_host, gap_ms=settings.delay.high, spread=settings.reorder == "on")
        self._hosts = HostsDesk(frontier.hosts, self._schedule, events, self._tell, settings.user_agent)
        self._rounds = Rounds(frontier, events, self._add_pending)
        self._patience = Patience(self._hosts, self._rounds, settings.give_up_after)
        self._inflight = InflightDesk(settings, events, self._tell)
        self._salvage = Salvage(frontier, shelf, events)
        self._robots = RobotsDesk(frontier.robots, self._tell)
        self._crew = Crew(launch, self._received, self._worker_ended)
        self._steering = Steering(
            setup, frontier, self._schedule, limits, self._patience, self._inflight, events, self._crew
        )
        self._desk = ChangeDesk(Path(setup.out), self._steering.change)
        self._disk = DiskDesk(Path(setup.out), limits, events)
        self._suspects = Suspects()
        self.progress = Progress()
        self._outcome: Outcome | None = None
        self._wake = asyncio.Event()
        self._stopping = self._killed = self._drained = False
        self._error: BaseException | None = None

    async def run(self, *, resumed: bool) -> Outcome:
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
            await self._salvage.seal()
            raise self._error
        if self._killed:
            return Outcome(3, "stopped at once")
        return await self._salvage.finish(outcome, self._feeder.repeats() if self._feeder else ())

    async def _work(self) -> Outcome:
        if self._verdict() is None:
            await self._crew.hire()
        self._wake.set()  # a list is read at once
        while (outcome := self._verdict()) is None:
            try:
                await self._tick()
            except MunimentError as error:
                self._give_up(error)  # what was fetched is sealed all the same
        return outcome

    def stop(self, reason: str) -> None:
        """End the run as if a limit were reached: what is in flight lands first."""
        self._end(Outcome(3, reason))

    def kill(self, _reason: str) -> None:
        """End every worker at once; the run stays resumable, its index is joined by the next one."""
        self._killed = True
        self._crew.kill()

    def _end(self, outcome: Outcome) -> None:
        self._outcome = self._outcome or outcome
        self._wake.set()

    def _verdict(self) -> Outcome | None:
        if self._outcome is not None:
            return self._outcome
        held = self._crew.pages_held()
        more = self._schedule.pending or (self._feeder is not None and self._feeder.waiting)
        if not (held or more or self._frontier.repairing or self._steering.judging or self._rounds.begin()):
            # a shard may have no line at all
            nothing = self._frontier.empty and not (self._feeder and self._feeder.fruitless)
            return Outcome(0 if self._frontier.totals.starts_captured or nothing else 4, "finished")
        limit = self._limits.reached(self._frontier.totals, idle=not held)
        return Outcome(3, f"limit: {limit}") if limit else None

    async def _tick(self) -> None:
        """Four times a second, and when asked for: the list, more workers, disk space, repairs, pages that came due."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._wake.wait(), _TICK_S)
        self._wake.clear()  # after the wait: the tick before may have asked for this one
        self._disk.tick()
        self._hosts.tick(steady_ms())
        self._inflight.tick(steady_ms(), self._crew.hosts_held)
        if given_up := self._patience.tick(steady_ms(), self._crew.pages_held()):
            self._end(Outcome(3, given_up))
        self._settle()
        if self._frontier.repairing:
            self._add_pending(self._frontier.repair(), {})
        self._add_pending(self._salvage.step(), {})
        if self._feeder is not None and not self._disk.paused:
            self._add_pending(self._feeder.step(self._schedule.pending, self._schedule.hosts, idle=self._crew.idle), {})
        if self._steering.judging:
            self._add_pending(self._steering.judge(), {})
        if self._hurried or self._steering.judging:
            self._wake.set()
            await asyncio.sleep(0)  # others have their turn between two batches
        self._serve()
        self._crew.end_silent()
        self._crew.keep(self._steering.setup.workers, _GRACE_S)
        if self._short_of_workers or not self._crew.staying:
            await self._crew.hire()

    @property
    def _hurried(self) -> bool:
        return self._feeder is not None and self._feeder.hurried(self._schedule.pending) and not self._disk.paused

    def _settle(self) -> None:
        """Move the job between ACTIVE and DRAINING when its last page goes out, or more come in."""
        drained = not self._schedule.pending
        if drained != self._drained:
            self._drained = drained
            self._frontier.settle(steady_ms())

    # -- workers

    def _received(self, member: Member, message: say.FromWorker) -> None:
        try:
            self._answer(member, message)
        except MemoryError:
            raise  # an end in good order takes memory, too
        except Exception as error:
            self._give_up(error)

    def _give_up(self, error: BaseException) -> None:
        self._error = self._error or error
        self._end(Outcome(1, str(error)))

    def _answer(self, member: Member, message: say.FromWorker) -> None:
        match message:
            case say.Alive():
                self._inflight.wanted(steady_ms())
            case say.WantPages(most):
                member.wants = most
                self._serve_one(member)
            case say.Finish():
                self._finish(member, message)
            case say.AskKnown(digests):
                member.send(say.Known(self._frontier.payloads.known(digests)))
            case say.AskCookies(url):
                member.send(say.CookieField(self._frontier.cookies.header(url, steady_ms() // 1000)))
            case say.AskRobots(origin):
                self._robots.asked(member.number, origin)
            case say.RobotsTold(origin, answer):
                # before any worker that waits for it goes on
                if answer is not None:
                    self._hosts.learn(origin, answer)
                self._robots.told(member.number, origin, answer)
            case say.HostSays(host, sign):
                sign = structs.replace(sign, asked_at=steadied(sign.asked_at))
                crowded = self._inflight.crowded(steady_ms())
                if self._hosts.told(member.number, host, sign, crowded=crowded):
                    self._inflight.fell_silent(host, sign.asked_at, steady_ms())
                self._serve()
            case say.AskFile():
                member.open_file = self._shelf.next_name()
                member.send(say.FileName(member.open_file))
            case say.FileEnded(name):
                member.file_ended(name)
                self._shelf.ended(name)
            case say.PermitsHeld(held):
                self._hosts.permits_held(member.number, held)
                self._serve()
            case say.GiveBack(claims):
                self._release(member, claims)
            case say.Hello():
                self._welcome(member)
            case say.Trouble(disk_full, text):
                self._give_up(DiskFullError(text) if disk_full else ArchiveError(f"a worker gave up: {text}"))
                member.dismiss()
            case say.NameFound():
                self._steering.found(member, message)
            case say.Bye():
                member.goodbye()

    def _tell(self, worker: int, message: say.FromOrchestrator) -> None:
        if worker in self._crew.members:
            self._crew.members[worker].send(message)

    def _welcome(self, member: Member) -> None:
        lowered = self._schedule.add_worker(member.number)
        self._inflight.staff(self._schedule.workers)
        part = self._inflight.part(member.number)
        member.send(structs.replace(self._steering.setup, number=member.number, inflight=part))
        for other, permits in lowered.items():
            self._crew.members[other].send(say.PermitsSet(permits))
        for origin, reason in self._hosts.dead.items():
            member.send(say.HostDead(origin, reason))
        self._events.write("worker", number=member.number, pid=member.process.pid, state="started")
        if self._stopping or member.leaving:
            member.send(say.Stop(0.0))

    def _worker_ended(self, member: Member) -> None:
        """What a worker held goes back; its file is cut to what its journal vouches for."""
        held = list(member.held)
        try:
            if member.open_file:
                self._shelf.mend(member.open_file)
            self._release(member, [(page, claim.claim_id) for page, (claim, _) in member.held.items()])
            self._events.write("worker", number=member.number, **member.end(stopping=self._stopping))
        except MunimentError as error:
            self._give_up(error)
        self._schedule.remove_worker(member.number, steady_ms())
        self._inflight.staff(self._schedule.workers)
        self._robots.gone(member.number)
        if not self._stopping:
            self._suspects.died(held if member.lost else [], member.ending)
            if member.finished or member.leaving:
                self._suspects.worked()
            elif complaint := self._suspects.too_many():
                self._give_up(ProtocolError(complaint))
        self._wake.set()  # another one is hired, if it was the last

    async def _stop_workers(self) -> None:
        self._stopping = True
        for member in self._crew.members.values():
            member.send(say.Stop(_GRACE_S))
        if not self._killed:
            await self._shelf.prepare()
        if not await self._crew.ended(_GRACE_S + 20):
            self._crew.kill()
            await self._crew.ended(10)

    # -- pages

    def _serve(self) -> None:
        for member in self._crew.members.values():
            if member.wants:
                self._serve_one(member)

    def _serve_one(self, member: Member) -> None:
        """Claim pages for a worker that asked; without any, the question stays open."""
        if self._stopping or self._disk.paused or self._outcome is not None or member.leaving:
            return
        if self._suspects.alone(member.held):
            return
        out = self._crew.linked_held() if self._limits.counts else 0
        most = self._limits.room(self._frontier.totals, out, member.wants)
        now = steady_ms()
        picked = self._schedule.pick(member.number, self._hosts.most(most, now), now, len(member.held))
        if not picked:
            return
        claims = self._frontier.claim(picked, now)
        left_out = self._frontier.take_left_out()
        if left_out:
            self._add_pending({host: -n for host, n in Counter(host for host, _, _ in left_out).items()}, {})
            self._events.skipped([(url, why) for _, url, why in left_out])
        got = Counter(claim.host for claim in claims)
        permits: dict[str, int] = {}
        ids: dict[str, int] = {}
        for host_id, asked in picked:
            name = self._frontier.hosts.name(host_id)
            ids[name] = host_id
            _, granted = self._schedule.claimed(member.number, host_id, got[name], asked, now)
            permits[name] = granted
        if claims:
            self._hand_out(member, claims, ids, {host: n for host, n in permits.items() if got[host]})

    def _hand_out(self, member: Member, claims: list[Claim], ids: dict[str, int], permits: dict[str, int]) -> None:
        """Send a worker its pages; what may not go beside others goes back, and the question stays open for it."""
        out, back = self._suspects.sift(self._hosts.judged(claims, ids), idle=not member.held)
        member.take(claims, ids)
        if out:
            member.wants = 0
            cookies, more = self._frontier.cookies.some_of(permits)
            member.send(say.PagesOut(out, permits, cookies, self._hosts.gaps(permits), more))
        self._release(member, [(claim.page_id, claim.claim_id) for claim in back])

    def _finish(self, member: Member, message: say.Finish) -> None:
        batch, spared = self._hosts.spare(message.batch, member.held)
        self._hosts.stuck(member.held[page][1] for page, _ in spared if page in member.held)
        self._release(member, spared)
        report = self._frontier.finish(batch, member.number, steady_ms())
        if message.batch.cookies:
            # committed, so that what a page is asked for with is never newer than what a resumed run knows
            self._crew.tell_cookies(member, message.batch.cookies)
        member.worked(message.cpu_s)
        member.finished += len(report.accepted)
        self._suspects.worked()
        self.progress.received(message.wire_bytes)
        self._announce(member, report)
        now = steady_ms()
        self._schedule.backlog.add(report.requisites, now)
        for page in report.accepted:
            claim, host_id = member.drop(page.page_id)
            self._suspects.cleared(page.page_id)
            self._schedule.landed(member.number, host_id)
            self._schedule.backlog.tried(claim, host_id, now, done=page.done)
            self._hosts.answered(host_id, claim.url, page)
            if page.done:
                self._patience.went_on()
        self._add_pending(report.pending, report.retries)
        self._serve()
        member.send(say.FinishAck())  # after the requisites of these pages: no further page takes their place
        if not self._schedule.pending or self._short_of_workers or self._hurried:
            self._wake.set()

    @property
    def _short_of_workers(self) -> bool:
        few = len(self._crew.staying) < self._steering.setup.workers
        return few and self._schedule.pending > 100 and self._crew.busy and not self._disk.paused

    def _add_pending(self, pending: dict[int, int], retries: dict[int, int]) -> None:
        for host_id, pages in pending.items():
            self._schedule.add_pending(host_id, self._frontier.hosts.name(host_id), pages, retries.get(host_id, 0))
            self._hosts.plan(host_id)

    def _release(self, member: Member, claims: list[tuple[int, int]]) -> None:
        held = [(page, claim) for page, claim in claims if page in member.held]
        if not held:
            return
        self._frontier.release(held)
        back: Counter[int] = Counter()
        for page, _ in held:
            _, host_id = member.drop(page)
            self._schedule.landed(member.number, host_id)
            back[host_id] += 1
        self._add_pending(dict(back), {})

    def _announce(self, member: Member, report: FinishReport) -> None:
        told = [(member.held[page.page_id][0], page) for page in report.accepted]
        for claim, page in told:
            self.progress.page(claim.url, claim.host, page)
        self._events.finished([(claim.url, page) for claim, page in told])
        self._events.skipped(report.skipped)

    def snapshot(self) -> Snapshot:
        """The crawl now."""
        return self.progress.snapshot(
            self._frontier.totals,
            queued=self._schedule.pending,
            in_flight=self._crew.pages_held(),
            workers=len(self._crew.members),
            note=self._disk.note or self._hosts.note() or self._rounds.note(),
            waiting=[Waited(*one) for one in self._hosts.waited() if one[2] > steady_ms()],
            ending=self._stopping,
            more=self._feeder is not None and self._feeder.waiting,
        )
