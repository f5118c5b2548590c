"""A run in a locked directory: tracker, archive and orchestrator, built in a safe order."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import sys
from collections.abc import Coroutine, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import uvloop
from msgspec import structs

from muniment import __version__
from muniment.app.crawl_hooks import crawl_hooks, write_hook_tables
from muniment.app.inputs.credentials import list_credentials
from muniment.app.inputs.secrets import COOKIE_FILE, save_cookies
from muniment.app.inputs.seed_list import spooled_list
from muniment.app.rendering import browser_of, clear_after_lost, clear_profiles
from muniment.app.request import RunContext, Watch, output_directory
from muniment.app.run_facts import plain_setup
from muniment.app.signals import stopped_by_signals
from muniment.archive.event_log import EventLog
from muniment.archive.index.journal import PARTS
from muniment.archive.recovery.cut import RepairReport
from muniment.clock import now_ms
from muniment.control.fleet.trackers import refuse_crawl
from muniment.control.privacy import keep_private, make_private
from muniment.control.tracker_location import keep_place
from muniment.crawl import protocol
from muniment.crawl.events import Publisher
from muniment.crawl.orchestrator.limits import Limits, no_room
from muniment.crawl.orchestrator.loop import Orchestrator
from muniment.crawl.orchestrator.seed_feed import SeedFeed
from muniment.crawl.orchestrator.warc_files import WarcFiles
from muniment.crawl.orchestrator.workers import most_workers
from muniment.crawl.ports import Events
from muniment.crawl.progress import RunOutcome, Summary, summary_of
from muniment.errors import AbortedError, DiskFullError, MunimentError, UsageError
from muniment.model.event import EventBatch, FinishEvent, Snapshot, StartEvent, StopEvent
from muniment.model.failure import NO_MEMORY, advice
from muniment.model.job import JobState, JobTerms
from muniment.model.network.counts import RunFacts
from muniment.model.place import TrackerPlace
from muniment.model.seed import SeedPlace
from muniment.model.url import is_web
from muniment.procs.children.launch import Indexer, LaunchedWorker, launch_worker, most_descriptors
from muniment.procs.lock import EVENTS_FILE
from muniment.procs.registry import ProcessRegistry
from muniment.procs.sweep import SWEEP_S, tend
from muniment.rules.resume import changed_fixed
from muniment.seeds.read import batches
from muniment.seeds.source import SeedSource
from muniment.settings.environment import operator_name, redis_given
from muniment.settings.option_table import Settings
from muniment.tracker.connect import tracker_at
from muniment.tracker.db.database import Database
from muniment.tracker.jobs import store as jobs
from muniment.tracker.jobs.terms import change_terms
from muniment.tracker.open import OpenJob, StartPages, open_job
from muniment.tracker.queue.counters import totals_of
from muniment.tracker.queue.local import LocalQueue as JobQueue
from muniment.tracker.queue.rounds import any_failed, any_to_revive
from muniment.tracker.views.counts import job_summary, keep_facts

if TYPE_CHECKING:
    from muniment.app.live import LivePlane

__all__ = ["open_files", "run_locked"]

_log = logging.getLogger(__name__)
_WATCH_S = 0.25
_LEAST_DESCRIPTORS = 64
"""Files and sockets that a process of a crawl needs at least: half of them are for connections."""


def run_locked(taken: RunContext, watch: Watch) -> Summary:
    """Run or resume a job that had not finished before. Raises MunimentError."""
    out, place = taken.out, taken.place
    try:
        paired = keep_place(out, place)
        with tracker_at(place) as db:
            return _run_on(db, taken, watch, paired=paired)
    except DiskFullError as error:
        raise no_room(error, out, place.directory, taken.request.settings) from error


def _run_on(db: Database, taken: RunContext, watch: Watch, *, paired: bool) -> Summary:
    request, settings, out, place = taken.request, taken.request.settings, taken.out, taken.place
    refuse_crawl(db)
    if settings.seed and taken.source is None:
        taken = _with_stream(taken)
    starts = StartPages(request.urls, taken.source.digest if taken.source else b"")
    job = jobs.find_job(db)
    if job is None:
        _check_empty(out, place)
    else:
        _check_same(out, job, settings, starts, "" if paired else str(place))
        _check_going(out, job)
        retried = request.retry_failed and any_failed(db, job.job_id)
        if job.over and not (retried or any_to_revive(db, job.job_id, settings)):
            return _finished_before(db, job.job_id, out)
    return uvloop.run(_while_it_can(_run(taken, db, starts, watch)))


def _with_stream(taken: RunContext) -> RunContext:
    """The list that came as a stream, kept, and what it says of accounts."""
    source = spooled_list(taken.request.settings, taken.out)
    credentials = list_credentials(taken.secrets, source, taken.request.accounts)
    if credentials.secret and not taken.private:
        keep_private()
        make_private(taken.out, taken.place.directory)
    return structs.replace(taken, source=source, credentials=credentials, private=taken.private or credentials.secret)


_T = TypeVar("_T")


class _Launching:
    """Launches workers; the first is on its way already."""

    def __init__(self, taken: RunContext) -> None:
        self._locks, self._registry, self._ready = taken.locks, taken.registry, [taken.first]

    def __call__(self) -> LaunchedWorker:
        return self._ready.pop() if self._ready else launch_worker(*self._locks, registry=self._registry)


def _check_empty(out: Path, place: TrackerPlace) -> None:
    if (out / "captures.parquet").exists() or any(out.glob("*.warc.gz*")):
        raise UsageError(
            f"{out} holds captures, but {place} has no tracker for them; give --state as before or another -o"
        )


def _check_same(out: Path, job: jobs.Job, settings: Settings, starts: StartPages, new_state: str) -> None:
    before = jobs.settings_of(job)
    if new_state and output_directory(before) != out:
        raise UsageError(f"{new_state} is the tracker of {output_directory(before)}; choose another --state")
    if job.start_digest != starts.digest:
        holds = "the fetch of another list" if before.seed else "a crawl of other start URLs"
        raise UsageError(f"{out} holds {holds}; choose another directory with -o")
    changed = changed_fixed(before, settings)
    if changed:
        raise UsageError(f"{out} was begun {', '.join(changed)}; resume with the same or choose another -o")


def _check_going(out: Path, job: jobs.Job) -> None:
    if job.state == JobState.ABORTED:
        raise AbortedError(
            f"the crawl in {out} was aborted; to go on with it, give `muniment job resume -o {out}` first"
        )


async def _run(taken: RunContext, db: Database, starts: StartPages, watch: Watch) -> Summary:
    most_descriptors(least=_LEAST_DESCRIPTORS)
    with closing(Publisher()) as events:
        events.listen(EventLog(taken.locks[0], taken.out.absolute() / EVENTS_FILE).take)
        events.subscribe(lambda batch: _show(batch, watch), Snapshot, most=1)
        return await _run_job(taken, db, starts, events)


async def _setup_of(taken: RunContext, urls: Sequence[str], db: Database) -> protocol.Setup:
    request, job = taken.request, jobs.find_job(db)
    setup = await plain_setup(
        str(taken.out.absolute()), request.settings, urls, request.command_line, private=taken.private
    )
    return structs.replace(
        setup,
        workers=most_workers(request.settings),
        credentials=taken.credentials,
        browser=await browser_of(taken, jobs.latest_rules(db, job.job_id)[1].in_order if job is not None else ()),
    )


async def _run_job(taken: RunContext, db: Database, starts: StartPages, events: Events) -> Summary:
    request, secrets, source, locks = taken.request, taken.secrets, taken.source, taken.locks
    out, settings = taken.out.absolute(), request.settings
    urls = request.urls if source is None else _first_urls(source)
    setup = await _setup_of(taken, urls, db)
    files, repaired, lost = await open_files(db, setup, locks, taken.registry)
    emptied = files.empty
    wanted = taken.hooks.wanted if taken.hooks else None
    opened = open_job(
        *(db, out.name, settings, starts, now_ms(), request.sets), retry_failed=request.retry_failed, hooked=wanted
    )
    workers = most_workers(opened.settings)
    setup = structs.replace(setup, settings=opened.settings, workers=workers, hooked=opened.hooks is not None)
    keep_facts(db, opened.job.job_id, None)
    opened.frontier.add_cookies(secrets.cookies)
    if setup.browser is not None:
        events.listen(partial(clear_after_lost, out, pids={}))
    if emptied:
        _warn_of_lost_index(out, opened.frontier.totals.captured)
    if opened.job.paused:
        _log.warning("the crawl in %s is paused: muniment job resume -o %s goes on", taken.out, taken.out)
    queue, plane = JobQueue(opened.frontier, opened.seeds, opened.hooks), _shown(db, opened, taken, urls, events)
    events.publish(StartEvent(os.getpid(), __version__, opened.resumed, repaired, lost))
    seed_feed = SeedFeed(source, settings, events) if source and opened.seeds else None
    limits, launch = Limits(opened.settings, out), _Launching(taken)
    limits.held = opened.job.paused
    orchestrator = Orchestrator(queue, files, events, setup, limits, launch, seed_feed)
    watching = _beside(orchestrator, events, taken.registry, plane)
    try:
        # once: stop when what is in flight has landed; twice: at once
        loop, leave = asyncio.get_running_loop(), taken.registry.leave_others
        ends = await crawl_hooks(taken, opened, orchestrator, limits, events) or orchestrator
        with stopped_by_signals(loop, lambda why: events.publish(StopEvent(why)), ends.stop, ends.kill, leave=leave):
            outcome = await orchestrator.run(resumed=opened.resumed)
            write_hook_tables(opened, out)
    finally:
        for task in watching:
            task.cancel()
        if setup.browser is not None:
            clear_profiles(out)
    opened.frontier.hosts.keep_rest()
    save_cookies(out / COOKIE_FILE, opened.frontier.cookies.everything(now_ms() // 1000))
    summary = await _conclude(db, opened, taken.out, orchestrator, files, events, outcome, plane)
    return (
        structs.replace(summary, list_read=seed_feed.read, bad_lines=tuple(seed_feed.named)) if seed_feed else summary
    )


def _warn_of_lost_index(out: Path, captured: int) -> None:
    if captured:
        _log.warning(
            "the index and all WARC files of %d captured pages are gone from %s: stop this run and put back what was "
            "moved away, or names of files are given out twice",
            *(captured, out),
        )


async def open_files(
    db: Database, setup: protocol.Setup, locks: Sequence[int], registry: ProcessRegistry
) -> tuple[WarcFiles, int, int]:
    """The WARC files of a directory, how many were repaired, and how many captures are lost; the tracker knows these.

    Raises MunimentError.
    """
    out = Path(setup.out)
    files = WarcFiles(out, setup.settings.prefix, lambda name: Indexer.start(locks, out, name, registry))
    repaired = files.open()
    if rebuilt := await files.take_stock():
        _regain(db, out, files, rebuilt)
    return files, len(repaired), _look_for_lost(out, repaired)


def _regain(db: Database, out: Path, files: WarcFiles, rebuilt: list[str]) -> None:
    """The values of lost rows that only the tracker has."""
    from muniment.app.lost_rows import complete_rows, lost_failures  # noqa: PLC0415  (pyarrow: after damage only)

    if (job := jobs.find_job(db)) is not None:
        complete_rows(db, job, out / PARTS, rebuilt)
        missing, rows = lost_failures(db, job, out)
        left = missing - (files.keep(rows) if missing else 0)
        if left:
            _log.warning(
                "of %d pages that were captured, %s has no record: put back the files that were moved away, or have "
                "these pages fetched again by muniment check %s --repair and the same command",
                *(left, out, out),
            )
    files.regained()


def _look_for_lost(out: Path, repaired: list[RepairReport]) -> int:
    """Captures that were safe and are gone, as far as is known; their pages wait again, with a warning."""
    lost = sum(one.dropped_rows for one in repaired)
    if not lost and not any(one.torn for one in repaired):
        return 0
    from muniment.control.missing_rows import fetch_again  # noqa: PLC0415  (pyarrow: after damage only)

    pages = fetch_again(out)
    if lost or pages:
        _log.warning(
            "captures that were safe are gone from %s: the disk lost them, and their %d pages are fetched again",
            *(out, pages),
        )
    return max(lost, pages)


def _first_urls(source: SeedSource) -> list[str]:
    """The first web addresses of a list; raises UsageError when it holds nothing at all."""
    batch = None
    for batch in batches(source, SeedPlace()):
        if urls := [line.url for line in batch.lines if is_web(line.url)]:
            return urls
    if batch is None:
        raise UsageError(f"the list {source.name} is empty")
    return []


def _shown(db: Database, opened: OpenJob, taken: RunContext, urls: Sequence[str], events: Events) -> LivePlane | None:
    """The live plane, when the job is to be shown in Redis; why it runs is kept in any case."""
    why = opened.settings.explanation
    if why is not None and not (opened.resumed and jobs.given_of(db, opened.job).settings.explanation == why):
        change_terms(db, opened.job.job_id, operator_name(), JobTerms(explanation=why), now_ms())
    if not (opened.settings.redis or redis_given()):
        return None
    from muniment.app.live import LivePlane  # noqa: PLC0415  (a crawl without Redis imports none of it)

    return LivePlane(db, opened, taken, urls[0] if urls else "", events)


async def _watch(orchestrator: Orchestrator, events: Events) -> None:
    while True:
        events.publish(orchestrator.snapshot())
        await asyncio.sleep(_WATCH_S)


def _show(batch: EventBatch, watch: Watch) -> None:
    for event in batch.events:
        if isinstance(event, Snapshot):
            watch(event)


async def _tend(registry: ProcessRegistry) -> None:
    """Keep the rows of processes true, beside the crawl; those that a killed one left behind at once."""
    while True:
        await asyncio.to_thread(tend, registry)
        await asyncio.sleep(SWEEP_S)


def _beside(
    orchestrator: Orchestrator, events: Events, registry: ProcessRegistry, plane: LivePlane | None
) -> list[asyncio.Task[None]]:
    """What goes on beside a crawl, as tasks."""
    tasks = [_watch(orchestrator, events), _tend(registry), *([plane.run(orchestrator)] if plane else [])]
    return [asyncio.create_task(task) for task in tasks]


async def _conclude(
    db: Database,
    opened: OpenJob,
    out: Path,
    orchestrator: Orchestrator,
    files: WarcFiles,
    events: Events,
    outcome: RunOutcome,
    plane: LivePlane | None,
) -> Summary:
    job_id = opened.job.job_id
    # those of the crawl's end run when the job has finished
    hooks_wait = opened.hooks is not None and (opened.hooks.busy or outcome.reason != "finished")
    if not hooks_wait and jobs.settle(db, job_id, now_ms()) == "FINISHED" and files.joined:
        jobs.set_outcome(db, job_id, "failed" if outcome.exit_code == 4 else "completed")
    summary = _run_summary(db, opened, out, orchestrator, files, outcome)
    pages = summary.all_pages
    told = pages.captured, pages.failed, pages.queued, pages.missing, pages.skipped
    events.publish(orchestrator.snapshot(), FinishEvent(outcome.reason, outcome.exit_code, *told))
    if plane is not None:
        await plane.close()
    return summary


def _run_summary(
    db: Database, opened: OpenJob, out: Path, orchestrator: Orchestrator, files: WarcFiles, outcome: RunOutcome
) -> Summary:
    """Keep what a run leaves behind, and sum it up with its job."""
    job_id, last, progress = opened.job.job_id, orchestrator.snapshot(), orchestrator.progress
    opened.frontier.counters.keep_run(orchestrator.rendering.take_new(0))
    warc_files, stored = files.files()
    facts = RunFacts(
        reason="" if outcome.reason == "finished" else outcome.reason,
        exit=outcome.exit_code,
        seconds=round(last.elapsed_s, 3),
        answers={str(status): count for status, count in progress.answers.most_common()},
        errors=dict(progress.errors.most_common()),
        warc_files=warc_files,
        stored=stored,
    )
    keep_facts(db, job_id, facts)
    return _summed(
        db,
        job_id,
        out,
        hooks=dict(sorted(progress.hooks.items())),
        browsers_replaced=orchestrator.rendering.sums.replaced,
        unanswered=last.unanswered,
    )


def _finished_before(db: Database, job_id: int, out: Path) -> Summary:
    """The summary of a job that had finished before, as it was."""
    return _summed(db, job_id, out, already_finished=True)


def _summed(db: Database, job_id: int, out: Path, **more: Any) -> Summary:
    totals = totals_of(db, job_id)
    old = {"pages": totals.captured, "requisites": totals.requisites}
    return summary_of(job_summary(db, job_id), directory=str(out), **old, **more)


# -- without memory or descriptors


async def _while_it_can(run: Coroutine[Any, Any, _T]) -> _T:
    """Carry out a run; without memory or descriptors it ends here and now, as by a kill.

    To end in good order takes some of both. The workers go with their parent.
    """
    asyncio.get_running_loop().set_exception_handler(_gone_wrong)
    try:
        return await run
    except Exception as error:
        _end_if_spent(error)
        raise


def _gone_wrong(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """What a callback or a task raised and nobody took in."""
    _end_if_spent(context.get("exception"))
    loop.default_exception_handler(context)


def _end_if_spent(error: BaseException | None) -> None:
    # a thread has a stack, for which Python has no word of its own
    if isinstance(error, MemoryError) or "can't start new thread" in str(error):
        _end_at_once(NO_MEMORY)
    said = error.__cause__ if isinstance(error, MunimentError) else error
    if isinstance(said, OSError) and said.errno in (errno.EMFILE, errno.ENFILE):
        _end_at_once(str(error) if error is not said else f"{said.strerror}{advice(said.errno)}")


def _end_at_once(text: str) -> None:
    try:
        print(f"muniment: {text}", file=sys.stderr, flush=True)
    finally:
        os._exit(1)
