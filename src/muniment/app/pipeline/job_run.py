"""A run of one job in a pipeline: its directory, workers and queue, from the first pages until it is stopped."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from contextlib import closing, suppress
from functools import partial
from pathlib import Path

from muniment import __version__
from muniment.app.pipeline.browser import MachineBrowser
from muniment.app.pipeline.payloads import filled_payloads
from muniment.app.pipeline.settings import PipelineSettings
from muniment.app.rendering import clear_after_lost, clear_profiles
from muniment.archive.event_log import EventLog
from muniment.clock import monotonic
from muniment.crawl import protocol
from muniment.crawl.events import Publisher
from muniment.crawl.orchestrator.limits import Limits
from muniment.crawl.orchestrator.loop import Orchestrator
from muniment.crawl.orchestrator.warc_files import WarcFiles
from muniment.crawl.orchestrator.workers import most_workers
from muniment.crawl.progress import RunOutcome
from muniment.errors import MunimentError
from muniment.model.event import FinishEvent, StartEvent, StopEvent
from muniment.model.network.sessions import JobPages
from muniment.procs.children.launch import Indexer, launch_worker
from muniment.procs.lock import EVENTS_FILE, lock_directory
from muniment.procs.registry import ProcessRegistry
from muniment.remote.host_shares import HostShares
from muniment.remote.job import JobTermsInForce
from muniment.remote.job_link import JobLink
from muniment.remote.queue import PipelineQueue
from muniment.settings.environment import operator_name
from muniment.settings.option_table import Settings
from muniment.tracker.stores.payload_file import PAYLOADS_FILE, PayloadFile
from muniment.tracker.stores.text_file import TextFile

__all__ = ["JobRun"]

_EVERYWHERE = ("loopback", "link-local", "private", "reserved")
_SURRENDER_S = 10.0


class JobRun:
    """One run of one job."""

    def __init__(
        self,
        order: PipelineSettings,
        out: Path,
        name: str,
        link: JobLink,
        job: JobTermsInForce,
        shares: HostShares,
        registry: ProcessRegistry,
        browser: MachineBrowser,
        failed: Callable[[MunimentError], None],
    ) -> None:
        """In the output directory of the job; `name` is the pipeline's. `failed` gets what its server refuses."""
        self._order, self._out, self._name, self._link, self._job = order, out, name, link, job
        self._registry, self._browser = registry, browser
        # open before its workers are: pages may come at once
        self._payloads = PayloadFile(out / PAYLOADS_FILE)
        self._texts = TextFile(out)
        self.queue = PipelineQueue(link, job, self._payloads, self._texts, shares, failed)
        self._orchestrator: Orchestrator | None = None
        self._files: WarcFiles | None = None
        self._renders = job.renders
        self._held = False
        self._stopped = ""
        self._joins = False
        self.landed = 0.0
        """When its workers had ended (`clock.monotonic`); 0 for not yet."""

    @property
    def job(self) -> int:
        """The number of the job."""
        return self._link.job

    @property
    def processes(self) -> int:
        """The processes that work at it."""
        return self._orchestrator.snapshot().workers if self._orchestrator is not None else 0

    # -- from outside

    def take(self, pages: JobPages) -> bool:
        """Take pages in; whether the job has to be described again before they can be handed out."""
        return self.queue.take(pages)

    def renew(self, job: JobTermsInForce) -> bool:
        """The job was changed: what is held is judged anew, and workers go by its settings from now on.

        Whether it goes on: one without a browser cannot render pages.
        """
        if job.age <= self._job.age:
            return True
        self._job = job
        self.queue.renew(job)
        if self._orchestrator is not None:
            self._orchestrator.settings.apply(self._settings())
        return self._renders or not job.renders

    def hold(self, *, held: bool) -> None:
        """Begin nothing, and take back what workers have not begun; or go on."""
        self._held = held
        if self._orchestrator is not None:
            self._orchestrator.settings.hold(held=held)
            self._orchestrator.wake()

    def lease(self, left_ms: int) -> None:
        """The session is confirmed for so long."""
        if self._orchestrator is not None:
            self._orchestrator.settings.lease(left_ms)

    def stop(self, reason: str, *, join: bool) -> None:
        """End the run: what is in flight lands, the rest goes back, files are sealed; with `join`, so is the index."""
        self._stopped = self._stopped or reason
        self._joins = self._joins or join
        self.queue.give_back(all_of_it=True)
        if self._files is not None:
            self._files.joins_index = self._joins
        if self._orchestrator is not None:
            self._orchestrator.stop(reason)

    def abandon(self, reason: str) -> None:
        """End the run without a word to the server: the session has ended."""
        self.queue.close()
        self.stop(reason, join=False)

    def kill(self) -> None:
        """End it at once."""
        self.queue.close()
        self._stopped = self._stopped or "killed"
        if self._orchestrator is not None:
            self._orchestrator.kill("")

    # -- the run

    async def run(self) -> RunOutcome:
        """Work at the job until it is stopped. Raises MunimentError."""
        exit_code: int | None = None
        self._registry = self._registry.part("orchestrator", f"job {self.job}")
        try:
            outcome = await self._run_and_drain()
            exit_code = outcome.exit_code
        finally:
            self._registry.leave(exit_code)
        return outcome

    async def _run_and_drain(self) -> RunOutcome:
        self.queue.open()
        try:
            with closing(self._payloads):
                outcome = await self._locked()
            self.landed = monotonic()
            await self.queue.drained()
        except MunimentError:
            # its workers have ended: what they held can be given to others
            self.queue.surrender()
            with suppress(TimeoutError):
                await asyncio.wait_for(self.queue.drained(), _SURRENDER_S)
            raise
        finally:
            self.queue.close()
            self._texts.close()
        return outcome

    async def _locked(self) -> RunOutcome:
        locks = await asyncio.to_thread(lock_directory, self._out)
        try:
            with closing(Publisher()) as events:
                events.listen(EventLog(locks[0], self._out / EVENTS_FILE).take)
                return await self._run(locks, events)
        finally:
            for lock in locks:
                os.close(lock)

    async def _run(self, locks: list[int], events: Publisher) -> RunOutcome:
        setup = await self._setup()
        if self._renders:
            clear_profiles(self._out)
            events.listen(partial(clear_after_lost, self._out, pids={}))
        files = self._files = WarcFiles(
            self._out,
            setup.settings.prefix,
            lambda name: Indexer.start(locks, self._out, name, self._registry),
        )
        files.joins_index = self._joins
        repaired = files.open()
        if await files.take_stock():
            files.regained()
        lost = sum(one.dropped_rows for one in repaired)
        if not files.empty:
            await filled_payloads(self._payloads, self._out, anew=lost > 0 or any(one.torn for one in repaired))
        events.publish(StartEvent(os.getpid(), __version__, not files.empty, len(repaired), lost))
        limits = Limits(setup.settings, self._out)
        orchestrator = Orchestrator(
            self.queue, files, events, setup, limits, lambda: launch_worker(*locks, registry=self._registry)
        )
        return await self._work(orchestrator, limits, events)

    async def _work(self, orchestrator: Orchestrator, limits: Limits, events: Publisher) -> RunOutcome:
        self._orchestrator, limits.held = orchestrator, self._held
        self.queue.wake = orchestrator.wake
        if self._stopped:
            orchestrator.stop(self._stopped)
        try:
            outcome = await orchestrator.run(resumed=True)
        finally:
            if self._renders:
                clear_profiles(self._out)
        if self._stopped:
            events.publish(StopEvent(self._stopped))
        last = orchestrator.snapshot()
        events.publish(FinishEvent(outcome.reason, outcome.exit_code, last.captured, last.failed, last.queued))
        return outcome

    def _settings(self) -> Settings:
        return self._order.settings_for(self._job, self._out, self._name, self.job)

    async def _setup(self) -> protocol.Setup:
        settings = self._settings()
        credentials = self._order.credentials_for(self._job)
        return protocol.Setup(
            number=0,
            out=str(self._out),
            settings=settings,
            operator=operator_name(),
            command_line=self._order.command_line,
            allowed_classes=_EVERYWHERE if settings.allow_private else (),
            workers=most_workers(settings),
            credentials=credentials,
            private=credentials.secret,
            # the settings of a server's job have the text of the script, and no file
            browser=await self._browser.setup(settings.custom_js or "") if self._renders else None,
        )
