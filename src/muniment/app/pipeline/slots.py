"""The slots of a pipeline within one session: which job each is at, the runs of these jobs, and what they want."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import Any

from muniment.app.pipeline.job_run import JobRun
from muniment.clock import monotonic
from muniment.errors import MunimentError, RefusedError, ServerError, SessionEndedError
from muniment.model.job import JobState
from muniment.model.network.pipeline_events import ServerRefused, SlotChange
from muniment.model.network.sessions import JobNews, JobPages, NewsAnswer, SlotWant
from muniment.remote.host_shares import HostShares
from muniment.remote.job import JobTermsInForce, job_in_force
from muniment.remote.job_link import JobLink
from muniment.remote.prefetch_buffer import LEAST_STOCK, stock_target

__all__ = ["RunFactory", "Slots"]

_log = logging.getLogger(__name__)
_MOVED_S = 2.0
"""News that does not know of a slot's job yet may be older than the pages that came for it."""
_AGAIN_S = 10.0
"""Before a run begins again that failed."""

_OVER = frozenset({JobState.FINISHED, JobState.ABORTED})

RunFactory = Callable[[JobLink, JobTermsInForce, HostShares], Awaitable[JobRun]]


class _Pace:
    """How fast a run finishes pages."""

    def __init__(self) -> None:
        self.rate = 0.0
        self._looked_at, self._finished = monotonic(), 0

    def look(self, finished: int) -> None:
        now = monotonic()
        if now - self._looked_at >= 0.5:
            lately = (finished - self._finished) / (now - self._looked_at)
            self.rate = max(lately, (self.rate + lately) / 2)
            self._looked_at, self._finished = now, finished


class _Active:
    """A run that is under way, and the pages that came for the next one."""

    def __init__(self, run: JobRun) -> None:
        self.run, self.pace = run, _Pace()
        self.stopping = False
        self.fed_at = monotonic()
        self.later: list[JobPages] = []


class Slots:
    """The slots of one session."""

    def __init__(
        self,
        count: int,
        link: Callable[[int], JobLink],
        make: RunFactory,
        publish: Callable[[ServerRefused | SlotChange], None],
        failed: Callable[[BaseException], None],
    ) -> None:
        """`link` speaks to the server about a job; `failed` gets what ends the pipeline."""
        self._count, self._link, self._make, self._publish, self._failed = count, link, make, publish, failed
        self._jobs: dict[int, int] = {}
        """Slot to job."""
        self._said: set[int] = set()
        """The jobs of slots as the last news said."""
        self._active: dict[int, _Active] = {}
        self._opening: dict[int, list[JobPages]] = {}
        """Pages of jobs whose run is about to begin."""
        self._going_back: Counter[int] = Counter()
        """Messages by job that give back pages which no run had."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._refreshing: set[int] = set()
        self._not_before: dict[int, float] = {}
        self._shares = HostShares()
        self._lowered: dict[str, int] = {}
        """Hosts of which others want connections, by the latest news."""
        self.held = self.returning = self._closed = False
        self.wanted: Callable[[], None] = lambda: None
        """Called when more pages are wanted."""

    # -- what is wanted

    def wants(self) -> list[SlotWant]:
        """The pages that slots want now."""
        if self.held or self.returning or self._closed:
            return []
        wants: list[SlotWant] = []
        short = False
        for slot in range(self._count):
            job = self._jobs.get(slot)
            active = self._active.get(job) if job is not None else None
            if job in self._opening or (active is not None and active.stopping):
                continue
            if active is None:
                wants.append(SlotWant(slot, LEAST_STOCK))
                short = True
                continue
            slots = sum(other == job for other in self._jobs.values())
            active.pace.look(active.run.queue.finished)
            target = stock_target(active.pace.rate, active.run.queue.out)
            room = target - active.run.queue.stocked
            if room > 0:
                wants.append(SlotWant(slot, -(-room // slots)))
                short = short or room >= target // 2
        return wants if short else []

    @property
    def pages(self) -> int:
        """Pages that are here."""
        opening = sum(len(pages.claims) for some in self._opening.values() for pages in some)
        return opening + sum(active.run.queue.held for active in self._active.values())

    @property
    def open_jobs(self) -> list[int]:
        """The jobs of which pages are here, or something is not answered yet."""
        runs = [job for job, active in self._active.items() if active.later or not active.run.queue.idle]
        return sorted({*self._opening, *self._going_back, *runs})

    @property
    def jobs(self) -> set[int]:
        """The jobs with a run that is under way or about to begin."""
        return {*self._active, *self._opening}

    @property
    def runs(self) -> list[JobRun]:
        """The runs that are under way."""
        return [active.run for active in self._active.values()]

    # -- what comes

    def take(self, pages: JobPages) -> None:
        """Pages came for a slot."""
        job = pages.job
        self._jobs[pages.slot] = job
        active = self._active.get(job)
        if self._closed or self.returning:
            self._return(pages)
        elif active is None:
            self._open(job, [pages])
        elif active.stopping:
            active.later.append(pages)
        else:
            active.fed_at = monotonic()
            if active.run.take(pages):
                self._refresh(job)

    def _return(self, pages: JobPages) -> None:
        claims = [(claim.page_id, claim.claim_id) for claim in pages.claims]
        if claims:
            self._going_back[pages.job] += 1
            self._start(self._release(pages.job, claims))

    async def _release(self, job: int, claims: list[tuple[int, int]]) -> None:
        with suppress(ServerError):
            await self._link(job).release(claims, died=False)
        self._going_back -= Counter([job])

    def heard(self, news: NewsAnswer) -> None:
        """What the slots are at, and how their jobs stand."""
        said = {one.slot: one.job for one in news.slots if one.job}
        told = {one.job: one for one in news.jobs}
        self._said = set(said.values())
        for job, active in list(self._active.items()):
            self._hear(job, active, told.get(job))
        self._jobs = said | {slot: job for slot, job in self._jobs.items() if self._is_fresh(job) and slot not in said}
        self._lowered = news.permits
        self._shares.lower(news.permits)
        self._free_hosts()
        self.wanted()

    def _free_hosts(self) -> None:
        """Give back the connections to hosts that others wait for, and no run here knows of."""
        coming = {host for some in self._opening.values() for pages in some for host in pages.permits}
        idle = [
            host for host in self._lowered if host not in coming and not any(run.queue.knows(host) for run in self.runs)
        ]
        if idle and not self._closed:
            self._start(self._free(idle))

    async def _free(self, hosts: list[str]) -> None:
        with suppress(SessionEndedError, ServerError):
            await self._link(0).free(hosts)

    def _is_fresh(self, job: int) -> bool:
        active = self._active.get(job)
        return job in self._opening or (active is not None and monotonic() - active.fed_at < _MOVED_S)

    def _hear(self, job: int, active: _Active, news: JobNews | None) -> None:
        if news is not None and news.state in _OVER:
            self._stop(active, "the job has ended", join=True)
        elif news is not None and news.paused:
            self._stop(active, "the job is paused")
        elif job not in self._said:
            self._leave(job)
        elif news is not None and news.settings_age > active.run.queue.age:
            self._refresh(job)

    def _leave(self, job: int) -> None:
        active = self._active.get(job)
        if active is None or job in self._said or self._closed:
            return
        if self._is_fresh(job):
            asyncio.get_running_loop().call_later(_MOVED_S, self._leave, job)
            return
        self._jobs = {slot: other for slot, other in self._jobs.items() if other != job}
        self._stop(active, "no slot is at the job now")
        self._start(self._left(job, active))

    async def _left(self, job: int, active: _Active) -> None:
        """No slot is at a job any more: it is paused, or has ended, or another one is better."""
        with suppress(SessionEndedError, ServerError):
            if await self.has_ended(job) and self._active.get(job) is active:
                self._stop(active, "the job has ended", join=True)

    async def has_ended(self, job: int) -> bool:
        """Ask the server whether a job has ended. Raises ServerError, SessionEndedError."""
        return job_in_force(await self._link(job).describe()).state in _OVER

    def _stop(self, active: _Active, reason: str, *, join: bool = False) -> None:
        if not active.stopping or join:
            active.stopping = True
            active.run.stop(reason, join=join)

    def _refresh(self, job: int) -> None:
        if job not in self._refreshing:
            self._refreshing.add(job)
            self._start(self._describe_again(job))

    async def _describe_again(self, job: int) -> None:
        try:
            described = job_in_force(await self._link(job).describe())
        except SessionEndedError:
            return
        except MunimentError as error:
            self._complain(job, error)
            return
        finally:
            self._refreshing.discard(job)
        if (active := self._active.get(job)) is not None:
            goes_on = active.run.renew(described)
            if not goes_on:
                self._stop(active, "its pages are to be rendered from now on")

    # -- runs

    def _open(self, job: int, pages: list[JobPages]) -> None:
        if job in self._opening:
            self._opening[job] += pages
            return
        self._opening[job] = pages
        self._start(self._run(job))

    async def _run(self, job: int) -> None:
        """Begin a run, and see it to its end; then another one, if pages came meanwhile."""
        try:
            active = await self._begin(job)
        except MunimentError as error:
            self._opening.pop(job, None)
            self._complain(job, error)
            return
        if active is None:
            return
        reason = "stopped"
        try:
            outcome = await active.run.run()
            reason = outcome.reason
        except MunimentError as error:
            reason = str(error)
            self._not_before[job] = monotonic() + _AGAIN_S
            self._complain(job, error)
            active.run.queue.close()
        finally:
            del self._active[job]
            self._shares.leave(job)
            self._publish(SlotChange(job=job, state="ended", reason=reason))
        if active.later and not self._closed:
            self._open(job, active.later)
        self._free_hosts()
        self.wanted()

    async def _begin(self, job: int) -> _Active | None:
        link = self._link(job)
        try:
            described = job_in_force(await link.describe())
        except SessionEndedError:
            self._opening.pop(job, None)
            return None
        await asyncio.sleep(max(0.0, self._not_before.pop(job, 0.0) - monotonic()))
        run = await self._make(link, described, self._shares)
        active = self._active[job] = _Active(run)
        run.queue.taken = self.wanted
        run.hold(held=self.held)
        for pages in self._opening.pop(job):
            if run.take(pages):
                self._refresh(job)
        self._shares.lower(self._lowered)
        self._publish(SlotChange(job=job, state="started"))
        if self._closed:
            self._stop(active, "stopped")
        return active

    def _complain(self, job: int, error: MunimentError) -> None:
        self._publish(ServerRefused(reason=str(error), job=job))
        _log.warning("job %d: %s", job, error)
        if isinstance(error, RefusedError) and error.code == "token":
            self._failed(error)

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._over)

    def _over(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._failed(error)

    # -- the whole

    def hold(self, *, held: bool) -> None:
        """Begin nothing, in any run; or go on."""
        self.held = held
        for run in self.runs:
            run.hold(held=held)
        self.wanted()

    def give_back(self, *, all_of_it: bool) -> None:
        """Have what was not begun go to the server; or take pages again."""
        self.returning = all_of_it
        for run in self.runs:
            run.queue.give_back(all_of_it=all_of_it)

    def stop(self, reason: str, *, join: bool) -> None:
        """End all runs."""
        self._closed = True
        for active in self._active.values():
            self._stop(active, reason, join=join)

    def abandon(self, reason: str) -> None:
        """End all runs without a word to the server."""
        self._closed = True
        for active in self._active.values():
            active.stopping = True
            active.run.abandon(reason)

    @property
    def landed(self) -> float:
        """When all workers have ended while something is left to be sent (`clock.monotonic`); 0 for not yet."""
        moments = [active.run.landed for active in self._active.values()]
        return max(moments) if moments and all(moments) else 0.0

    async def ended(self, timeout_s: float | None = None) -> bool:
        """Wait until all runs have ended; False when some have not in time."""
        if self._tasks:
            await asyncio.wait(set(self._tasks), timeout=timeout_s)
        return not self._tasks
