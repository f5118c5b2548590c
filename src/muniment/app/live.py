"""The live plane of a crawl or a fetch, between its tracker and Redis."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Coroutine
from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import Any, TypeVar

from msgspec import structs

from muniment.app.inputs.redis_server import redis_server
from muniment.app.request import RunContext
from muniment.clock import now_ms
from muniment.control.verbs.steering import take_over
from muniment.crawl.orchestrator.loop import Orchestrator
from muniment.crawl.ports import Events
from muniment.live.entries import last_lines
from muniment.live.job_sync import JobSync
from muniment.live.link import RedisLink
from muniment.live.log_file import LOG_FILE, JobLog
from muniment.live.pipelines import PipelineRecord
from muniment.live.plane import Plane
from muniment.live.ports import PlaneOptions
from muniment.live.reaper import Reaper
from muniment.model.network.live import LiveJob, Outside
from muniment.settings.environment import operator_name
from muniment.settings.live_plane import parse_roles
from muniment.settings.option_table import Settings
from muniment.tracker.db.database import Database
from muniment.tracker.jobs import live
from muniment.tracker.jobs.audit import settings_age
from muniment.tracker.open import OpenJob

__all__ = ["LivePlane", "plane_options"]

T = TypeVar("T")
_PATIENCE_S = 5.0
_KEEP_EVERY_S = 0.1


def plane_options(settings: Settings) -> PlaneOptions:
    """How the live plane is run."""
    return PlaneOptions(
        roles=parse_roles(settings.redis_roles),
        keep=settings.redis_log_keep,
        announce=settings.announce,
        reap_after=settings.reap_after,
    )


class LivePlane:
    """Built before the crawl's first commit, closed after its last."""

    def __init__(self, db: Database, opened: OpenJob, taken: RunContext, target: str, events: Events) -> None:
        settings, job_id, out = opened.settings, opened.job.job_id, taken.out
        address, password = redis_server(settings.redis, taken.secrets.accounts)
        self._db, self._job_id, self._opened = db, job_id, opened
        position = live.log_position(db, job_id, now_ms())
        self._log = JobLog(out / LOG_FILE, position, reports=settings.ignore_reports == "on")
        self._kept = live.KeptLog(db, job_id, self._log)
        opened.frontier.counters.log = self._kept
        self._log.commit(opened.frontier.totals)
        self._port = _Port(db, job_id)
        pipeline = PipelineRecord(out)
        options = plane_options(settings)
        sync = JobSync(self._log, self._port, options, pipeline.key, target)
        reaper = Reaper(options.reap_after) if "reaper" in options.roles else None
        self._plane = Plane(RedisLink(address, password), sync, pipeline, reaper)
        events.listen(self._log.take)
        events.listen(self._plane.take)

    async def run(self, orchestrator: Orchestrator) -> None:
        """Begin; then keep what is said beside pages, ten times a second."""
        self._port.attach(asyncio.get_running_loop(), orchestrator)
        self._plane.start()
        while True:
            if self._log.waiting:
                self._kept.keep(self._opened.frontier.totals)
            await asyncio.sleep(_KEEP_EVERY_S)

    async def close(self) -> None:
        """End, after the job has been settled."""
        job = self._port.now()
        self._log.tell_unreported(now_ms())
        if job.ident:
            for line in last_lines(job):
                self._log.say(line)
        self._kept.keep(self._opened.frontier.totals)
        await asyncio.to_thread(self._plane.close, job)
        self._log.close()


class _Port:
    """Calls of the plane's thread, carried out in the crawl's loop."""

    def __init__(self, db: Database, job_id: int) -> None:
        self._db, self._job_id = db, job_id
        self._loop: asyncio.AbstractEventLoop | None = None
        self._orchestrator: Orchestrator | None = None

    def attach(self, loop: asyncio.AbstractEventLoop, orchestrator: Orchestrator) -> None:
        """Answer from now on."""
        self._loop, self._orchestrator = loop, orchestrator

    def job(self) -> LiveJob:
        """The job as it is now."""
        return self._ask(self._now())

    def now(self) -> LiveJob:
        """The same, from the crawl's own thread."""
        job = live.live_job(self._db, self._job_id)
        if job.started_by:
            return job
        return structs.replace(job, started_by=operator_name(), started_in=socket.gethostname().partition(".")[0])

    async def _now(self) -> LiveJob:
        return self.now()

    def age(self) -> int:
        """The age of its settings, asked often."""
        return self._ask(self._age())

    async def _age(self) -> int:
        return settings_age(self._db, self._job_id)

    def keep_ident(self, ident: str, url: str) -> None:
        """Keep its name in Redis."""
        self._ask(self._call(live.keep_ident, ident, url))

    def keep_epoch(self, epoch: str) -> None:
        """Keep which server has all of it."""
        self._ask(self._keep_epoch(epoch))

    async def _keep_epoch(self, epoch: str) -> None:
        live.keep_epochs(self._db, [self._job_id], epoch)

    def keep_counted(self, outcome: str) -> None:
        """Keep which outcome the counts in Redis have."""
        self._ask(self._call(live.keep_counted, outcome))

    def steer(self, outside: Outside) -> list[str]:
        """Change the job; a line for each thing that is refused."""
        return self._ask(self._steer(outside))

    async def _call(self, function: Callable[..., T], *values: str) -> T:
        return function(self._db, self._job_id, *values)

    async def _steer(self, outside: Outside) -> list[str]:
        assert self._orchestrator is not None  # attached before the plane begins
        paused = live.live_job(self._db, self._job_id).paused
        return await take_over(self._orchestrator.change, outside, paused=paused)

    def _ask(self, call: Coroutine[Any, Any, T]) -> T:
        assert self._loop is not None  # as above
        try:
            return asyncio.run_coroutine_threadsafe(call, self._loop).result(_PATIENCE_S)
        except (FutureTimeoutError, RuntimeError) as error:
            call.close()
            raise LookupError("the crawl does not answer") from error
