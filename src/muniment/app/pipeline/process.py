"""The process of a pipeline: one session after the other, until it is stopped, refused, idle or lost."""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
from contextlib import suppress

import uvloop
from msgspec import Struct

from muniment import __version__
from muniment.app.pipeline.browser import MachineBrowser
from muniment.app.pipeline.home import PipelineHome
from muniment.app.pipeline.job_run import JobRun
from muniment.app.pipeline.leftover_indexes import LeftJobs
from muniment.app.pipeline.report import host_report
from muniment.app.pipeline.settings import PipelineSettings
from muniment.app.pipeline.slots import Slots
from muniment.app.signals import stopped_by_signals
from muniment.clock import monotonic, now_ms
from muniment.crawl.orchestrator.limits import Limits
from muniment.errors import (
    LinksLostError,
    MunimentError,
    RefusedError,
    ServerError,
    ServerLostError,
    SessionEndedError,
    UsageError,
)
from muniment.model.event import Event, EventBatch
from muniment.model.network.pipeline_events import (
    PipelineFinish,
    PipelinePause,
    PipelineResume,
    PipelineStart,
    PipelineStop,
    ServerFound,
    ServerLost,
    ServerRefused,
    SessionBegun,
)
from muniment.model.network.sessions import GreetAnswer, NewsAnswer
from muniment.model.pipeline import HostReport
from muniment.procs.children.launch import most_descriptors
from muniment.procs.registry import ProcessRegistry
from muniment.procs.sweep import SWEEP_S, tend
from muniment.remote.claim_poller import WRONG_ASK, ClaimPoller
from muniment.remote.connection import Retries, ServerConnection
from muniment.remote.host_shares import HostShares
from muniment.remote.job import JobTermsInForce
from muniment.remote.job_link import JobLink
from muniment.remote.session import HeldJobs, SessionKeeper

__all__ = ["run_pipeline"]

_log = logging.getLogger(__name__)
_LEAST_DESCRIPTORS = 64
_LOOK_S = 0.25
_FLUSH_S = 10.0
"""How long a stop waits for a server to hear what is left, and the goodbye."""
_ANEW_S = 600.0
"""Between two sessions that begin because a server lacks links."""
_LANDING_S = 45.0
"""How long runs may take to end: what is in flight lands, files are walked and sealed."""


class _TrackerFacts(Struct):
    """What `GET /v1/server` says that matters here."""

    tracker_id: str
    protocols: list[int] = []


def run_pipeline(order: PipelineSettings, home: PipelineHome, registry: ProcessRegistry) -> int:
    """Work for a server until there is a reason to end; the exit code. Raises MunimentError."""
    most_descriptors(least=_LEAST_DESCRIPTORS)
    browser = MachineBrowser(order.machine, registry)
    return uvloop.run(_Pipeline(order, home, registry, browser).run())


class _Ending(Struct):
    """Why a pipeline ends."""

    reason: str
    exit_code: int = 0
    error: BaseException | None = None


class _Pipeline:
    """One process of a pipeline: it hears what becomes of its session (`SessionListener`)."""

    def __init__(
        self, order: PipelineSettings, home: PipelineHome, registry: ProcessRegistry, browser: MachineBrowser
    ) -> None:
        self._order, self._home, self._registry, self._browser = order, home, registry, browser
        self._limits = Limits(order.machine, order.out)
        self._ending: asyncio.Future[_Ending]
        self._connection: ServerConnection
        self._keeper: SessionKeeper
        self._slots: Slots | None = None
        self._old: list[Slots] = []
        """Those of sessions that have ended, as long as runs of theirs end."""
        self._claims: ClaimPoller | None = None
        self._polling: asyncio.Task[None] | None = None
        self._full = self._unconfirmed = False
        self._killed = False
        self._keeping: asyncio.Task[None]
        self._tending: asyncio.Task[None]
        self._leaving: asyncio.Task[None]
        self._renewing: asyncio.Task[None]
        self._renewed, self._anew_after = 0, 0.0
        self._busy_at = monotonic()
        self._left = LeftJobs(home, registry, self._at_work, self._has_ended)

    def _publish(self, *events: Event) -> None:
        self._home.log.take(EventBatch(now_ms(), events))

    async def run(self) -> int:
        """Work until there is a reason to end."""
        order = self._order
        loop = asyncio.get_running_loop()
        self._ending = loop.create_future()
        self._connection = ServerConnection(order.address)
        instance = secrets.token_hex(16)
        self._keeper = SessionKeeper(self._connection, instance, order.slots, self, self._report, self._held)
        self._publish(PipelineStart(pid=os.getpid(), version=__version__, server=order.address.url, slots=order.slots))
        steps = self._stop, self._kill
        with stopped_by_signals(loop, lambda why: self._publish(PipelineStop(reason=why)), *steps):
            ending = await self._until_ended()
            code = await self._end(ending)
        await self._connection.close()
        self._publish(PipelineFinish(reason=ending.reason, exit=code))
        if ending.error is not None and not self._killed:
            raise ending.error
        return code

    def _report(self) -> HostReport:
        processes = sum(run.processes for slots in self._all_slots() for run in slots.runs)
        return host_report(self._order.out, 1 + processes, self._registry.own_tree(), self._browser.version)

    def _held(self) -> HeldJobs:
        if self._claims is None or self._slots is None or any(slots.runs for slots in self._old):
            return HeldJobs()
        return HeldJobs(self._claims.ask, self._slots.open_jobs)

    def _at_work(self) -> set[int]:
        return {job for slots in self._all_slots() for job in slots.jobs}

    async def _has_ended(self, job: int) -> bool:
        return self._slots is not None and await self._slots.has_ended(job)

    def _all_slots(self) -> list[Slots]:
        return [*self._old, *([self._slots] if self._slots is not None else [])]

    # -- why it ends

    def _stop(self, reason: str) -> None:
        self._end_with(_Ending(reason))

    def _kill(self, _reason: str) -> None:
        self._killed = True
        for slots in self._all_slots():
            for run in slots.runs:
                run.kill()

    def _end_with(self, ending: _Ending) -> None:
        if not self._ending.done():
            self._ending.set_result(ending)

    def _failed(self, error: BaseException) -> None:
        """Something ends the pipeline."""
        match error:
            case SessionEndedError():
                return  # the keeper hears it, too
            case LinksLostError() if self._begins_anew(str(error)):
                return
            case RefusedError():
                self._publish(ServerRefused(reason=str(error)))
                self._end_with(_Ending("refused", 2, UsageError(str(error))))
            case MunimentError():
                self._end_with(_Ending(str(error), error.exit_code, error))
            case _:
                self._end_with(_Ending(f"internal error: {error}", 1, error))

    def _begins_anew(self, why: str) -> bool:
        """Give all pages back, and fetch them again in a session whose workers send all that they find.

        False when that was tried just now.
        """
        session = self._keeper.session
        if session is None or session.epoch == self._renewed:
            return True
        if monotonic() < self._anew_after:
            return False
        _log.warning("%s; a new session begins", why)
        self._renewed, self._anew_after = session.epoch, monotonic() + _ANEW_S
        self._renewing = asyncio.create_task(self._keeper.begin_anew(session.epoch))
        return True

    async def _until_ended(self) -> _Ending:
        tasks = [asyncio.create_task(one) for one in (self._keep(), self._watch(), self._tend(), self._left.run())]
        try:
            return await self._ending
        finally:
            # the session is kept while what is in flight lands
            tasks[1].cancel()
            self._keeping, _, self._tending, self._leaving = tasks

    async def _keep(self) -> None:
        try:
            facts = await Retries(self._not_reached).until_answered(
                lambda: self._connection.ask("GET", "/v1/server", _TrackerFacts)
            )
            self._home.claim(facts.tracker_id, self._order.address.url)
            await self._keeper.run()
        except SessionEndedError:
            error = UsageError("another process of this pipeline has begun: this one ends")
            self._end_with(_Ending("replaced", 2, error))
        except asyncio.CancelledError:
            raise
        except BaseException as error:
            self._failed(error)

    def _not_reached(self, error: ServerLostError) -> None:
        self._keeper.note_failure(error)

    async def _watch(self) -> None:
        """The disk, and whether there is anything to do."""
        while True:
            await asyncio.sleep(_LOOK_S)
            try:
                self._look()
            except MunimentError as error:
                self._failed(error)

    def _look(self) -> None:
        order, now = self._order, monotonic()
        for slots in self._all_slots():
            for job_run in slots.runs:
                job_run.lease(self._keeper.lease_left_ms if slots is self._slots else 0)
        if self._slots is not None and self._slots.pages:
            self._busy_at = now
        self._look_at_disk()
        if order.idle_s is not None and now - self._busy_at >= order.idle_s and not self._full:
            self._publish(PipelineStop(reason="idle"))
            self._stop("idle")
        if order.lost_s is not None and now - self._connection.answered_at >= order.lost_s:
            self._publish(PipelineStop(reason="no server"))
            self._end_with(_Ending(f"no server has answered for {order.lost_s:g} s", 3))

    def _look_at_disk(self) -> None:
        full = self._limits.short_of_room
        if full == self._full:
            return
        self._full = full
        self._publish(PipelinePause(reason="disk") if full else PipelineResume(reason="disk"))
        self._keeper.tell("disk" if full else "")
        if self._slots is not None:
            self._slots.give_back(all_of_it=full)
        self._hold()

    def _hold(self) -> None:
        if self._slots is not None:
            self._slots.hold(held=self._full or self._unconfirmed)

    async def _tend(self) -> None:
        """Keep the rows of processes true."""
        while True:
            await asyncio.to_thread(tend, self._registry)
            await asyncio.sleep(SWEEP_S)

    # -- the session

    def began(self, session: GreetAnswer) -> None:
        """A session begins."""
        self._publish(SessionBegun(epoch=session.epoch, name=session.name, resumed=session.resumed))
        slots = Slots(
            self._order.slots,
            lambda job: JobLink(self._connection, session.epoch, job, self._keeper.over),
            lambda *what: self._new_run(session, *what),
            self._publish,
            self._failed,
        )
        poller = ClaimPoller(self._connection, session.epoch, slots.wants, slots.take)
        slots.wanted = poller.wake
        self._slots, self._claims = slots, poller
        self._busy_at = monotonic()
        slots.give_back(all_of_it=self._full)
        self._hold()
        self._polling = asyncio.create_task(self._claim(poller, session.epoch))

    async def _new_run(self, session: GreetAnswer, link: JobLink, job: JobTermsInForce, shares: HostShares) -> JobRun:
        # a run of an earlier session may be sealing its file
        for old in self._old:
            await old.ended()
        self._old.clear()
        out = self._home.job_directory(link.job, self._order.address.url)
        return JobRun(self._order, out, session.name, link, job, shares, self._registry, self._browser, self._failed)

    async def _claim(self, poller: ClaimPoller, epoch: int) -> None:
        try:
            await poller.run()
        except SessionEndedError as error:
            self._keeper.over(epoch, error)
        except RefusedError as error:
            if error.code != WRONG_ASK:
                self._failed(error)
                return
            _log.warning("%s; a new session begins", error)
            await self._keeper.begin_anew(epoch)
        except MunimentError as error:
            self._failed(error)

    def ended(self, ending: str) -> None:
        """The session has ended: what was held is given up."""
        self._publish(SessionBegun(ending=ending))
        if self._polling is not None:
            self._polling.cancel()
        if self._slots is not None:
            self._slots.abandon(f"the session has ended ({ending})")
            self._old.append(self._slots)
            self._slots = None

    def heard(self, news: NewsAnswer) -> None:
        """What the pipeline goes by from now on."""
        if news.stop:
            self._publish(PipelineStop(reason="asked by an operator"))
            self._stop("asked by an operator")
        if self._slots is not None:
            self._slots.heard(news)

    def confirmed(self, *, confirmed: bool) -> None:
        """Whether the session is known to go on."""
        self._unconfirmed = not confirmed
        self._publish(PipelineResume(reason="lease") if confirmed else PipelinePause(reason="lease"))
        self._hold()

    def reached(self, *, reached: bool, why: str = "") -> None:
        """Whether the server answers."""
        self._publish(ServerFound() if reached else ServerLost(reason=why))
        if not reached:
            _log.warning("%s; the pipeline goes on with what it has, and asks again", why)

    # -- the end

    async def _end(self, ending: _Ending) -> int:
        """What is in flight lands, the rest goes back, indexes are joined, and the goodbye is said; the exit code."""
        code = ending.exit_code
        if self._polling is not None:
            self._polling.cancel()
        slots = self._slots
        if slots is not None:
            if ending.exit_code == 2:
                slots.abandon(ending.reason)
            else:
                slots.stop(ending.reason, join=True)
        landed = await self._landed()
        if not self._killed:
            await self._left.join_all()
        self._keeping.cancel()
        said = ending.exit_code == 2 or await self._goodbye(1.0 if ending.exit_code else _FLUSH_S)
        self._tending.cancel()
        self._leaving.cancel()
        if code != 0 or (landed and said and not self._killed):
            return code
        _log.warning("stopped before a server had all of it: the same command in the same directory goes on")
        return 3

    async def _landed(self) -> bool:
        """Wait until every run has ended; False when something of them did not reach the server."""
        everything = self._all_slots()
        deadline = monotonic() + _LANDING_S
        for slots in everything:
            while not await slots.ended(_LOOK_S):
                if monotonic() > deadline or (slots.landed and monotonic() > slots.landed + _FLUSH_S):
                    slots.abandon("no server")
                    await slots.ended(_FLUSH_S)
                    return False
        return True

    async def _goodbye(self, patience_s: float) -> bool:
        with suppress(TimeoutError, ServerError):
            async with asyncio.timeout(patience_s):
                await Retries().until_answered(self._keeper.goodbye)
                return True
        return False
