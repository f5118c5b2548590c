"""What records the requests of hooks that run over captured pages: an orchestrator and a worker without pages."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from msgspec import Struct, structs

from muniment.app.run import open_files
from muniment.app.run_facts import plain_setup
from muniment.clock import now_ms
from muniment.crawl.orchestrator.limits import Limits
from muniment.crawl.orchestrator.loop import Orchestrator
from muniment.crawl.ports import Events
from muniment.model.job import JobState
from muniment.model.queue import Backlog, QueueChanges, QueueState, UpkeepOutcome, UpkeepRequest
from muniment.procs.children.launch import launch_worker
from muniment.procs.registry import ProcessRegistry
from muniment.settings.option_table import defaults
from muniment.tracker.db.database import Database
from muniment.tracker.jobs.store import find_job, settings_of, start_urls
from muniment.tracker.open import StartPages, load_frontier, open_job
from muniment.tracker.queue.frontier import Frontier
from muniment.tracker.queue.local import LocalQueue

__all__ = ["HookRecording", "RecordingPlace", "open_recording"]


class RecordingPlace(Struct, frozen=True, kw_only=True):
    """Where and for whom hooks are recorded."""

    out: Path
    locks: Sequence[int]
    registry: ProcessRegistry
    private: bool
    command_line: str
    """For the warcinfo record, secrets masked."""


class HookRecording:
    """What records; `close` keeps what is known of hosts."""

    def __init__(self, orchestrator: Orchestrator, limits: Limits, frontier: Frontier) -> None:
        self.orchestrator, self.limits, self._frontier = orchestrator, limits, frontier

    def close(self) -> None:
        """Keep what is known of hosts."""
        self._frontier.hosts.keep_rest()


class _NoPages(LocalQueue):
    """The queue of a job that is not gone on with: it knows what was recorded, and hands out no page."""

    async def pending(self, now: int) -> Backlog:
        """No page waits."""
        return Backlog(QueueChanges(QueueState()))

    async def upkeep(self, request: UpkeepRequest) -> UpkeepOutcome:
        """Have the pages of lost captures wait for the next run of the job, and do nothing else."""
        if request.lost:
            return await super().upkeep(UpkeepRequest(request.ask, lost=request.lost))
        return UpkeepOutcome(QueueChanges(QueueState()))

    async def settle(self, now: int) -> str:
        """The state of the job stays as it is."""
        return JobState.DRAINING.value


async def open_recording(db: Database, place: RecordingPlace, starts: Sequence[str], events: Events) -> HookRecording:
    """What records in a directory, with the settings of its job; `starts` are start pages for one without a job.

    Raises MunimentError.
    """
    job, out = find_job(db), place.out
    if job is None:
        settings = structs.replace(defaults("crawl"), out=str(out))
        job = open_job(db, out.name, settings, StartPages(), now_ms()).job
    else:
        settings = structs.replace(settings_of(job), engine="http")
        starts = start_urls(db, job.job_id) or starts
    db.hold(job.job_id)
    setup = await plain_setup(str(place.out.absolute()), settings, starts, place.command_line, private=place.private)
    setup = structs.replace(setup, hooked=True)
    files, _, _ = await open_files(db, setup, place.locks, place.registry)
    frontier = load_frontier(db, job.job_id)  # of what is lost it knows nothing
    limits = Limits(settings, out)

    launch = partial(launch_worker, *place.locks, registry=place.registry)
    orchestrator = Orchestrator(_NoPages(frontier), files, events, setup, limits, launch)
    return HookRecording(orchestrator, limits, frontier)
