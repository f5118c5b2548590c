"""Hooks over pages that a directory holds already, without fetching them."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import uvloop
from msgspec import Struct

from muniment.app.hooks import CapturedPages, HookPlan, LockedRun, keep_tables, new_supervisor
from muniment.app.signals import stopped_by_signals
from muniment.archive.event_log import EventLog
from muniment.control.privacy import is_private
from muniment.crawl.events import Publisher
from muniment.crawl.hooks.ports import PagePorts
from muniment.crawl.hooks.supervisor import HookSupervisor
from muniment.crawl.ports import Events
from muniment.errors import DiskFullError, MunimentError, UsageError
from muniment.model.event import EventBatch, HookEvent, StopEvent
from muniment.model.hooks.runs import HookPage
from muniment.model.place import TrackerPlace
from muniment.model.url import host_of
from muniment.procs.children.launch import most_descriptors
from muniment.procs.lock import EVENTS_FILE
from muniment.settings.option_table import defaults
from muniment.tracker.connect import tracker_at
from muniment.tracker.db.database import Database
from muniment.tracker.db.sqlite import SqliteDatabase
from muniment.tracker.hooks.queue import JobHooks
from muniment.tracker.jobs.store import find_job
from muniment.tracker.stores.hooks import HookStore

if TYPE_CHECKING:
    from muniment.app.hook_recording import HookRecording
    from muniment.crawl.progress import RunOutcome

__all__ = ["HooksDone", "run_hooks"]

_ALONE = "hooks.sqlite"
_AT_ONCE = 1000
_LOOK_S = 0.05
_MOST_STARTS = 1000
_log = logging.getLogger(__name__)


class HooksDone(Struct, frozen=True):
    """What became of the hooks of a run."""

    pages: int
    statuses: dict[str, int]
    """Tries by status."""
    stopped: bool
    reason: str = ""
    """Why hooks could not go on; empty when they could."""


def run_hooks(plan: HookPlan, pages: CapturedPages, locked: LockedRun) -> HooksDone:
    """Run hooks over the pages of a locked directory. Raises MunimentError."""
    try:
        with _database(pages.out, locked.place) as db:
            most_descriptors()
            return uvloop.run(_Run(plan, pages, locked, db).run())
    except DiskFullError as error:
        from muniment.crawl.orchestrator.limits import no_room  # noqa: PLC0415  (only recording needs more of it)

        raise no_room(error, pages.out, locked.place.directory, defaults("crawl")) from error


@contextmanager
def _database(out: Path, place: TrackerPlace) -> Iterator[Database]:
    """The tracker with the job of a directory; one of its own for hooks where there is none."""
    if place.database or place.file.exists():
        with tracker_at(place) as db:
            yield db
        return
    with closing(SqliteDatabase.open(out / _ALONE)) as alone:
        yield alone


class _SomePages:
    """The queue of a job, of which only some pages are to be had."""

    def __init__(self, queue: JobHooks) -> None:
        self._queue = queue
        self.keys: frozenset[bytes] | None = frozenset()
        """None: all."""
        self.prior, self.keep = queue.prior, queue.keep

    async def due(self, most: int, held: Iterable[bytes]) -> list[HookPage]:
        """The eldest pages that wait."""
        if self.keys is None:
            return await self._queue.due(most, held)
        found = await self._queue.due(1_000_000, held)
        return [page for page in found if page.page.key in self.keys][:most]


class _Run:
    """One run over captured pages."""

    def __init__(self, plan: HookPlan, pages: CapturedPages, locked: LockedRun, db: Database) -> None:
        self._plan, self._pages, self._locked, self._db = plan, pages, locked, db
        job = find_job(db)
        self._store = HookStore(db, job.job_id if job else 1, plan.wanted)
        self._queue = _SomePages(JobHooks(db, self._store.job_id, self._store))
        self._statuses: Counter[str] = Counter()
        self._stopped = asyncio.Event()
        self._reason = ""
        self._hooks: HookSupervisor | None = None
        self._starts: dict[str, str] = {}
        """By host: a start page."""

    async def run(self) -> HooksDone:
        """Run what is to be run. Raises MunimentError."""
        log = EventLog(self._locked.locks[0], Path(self._plan.setup.out) / EVENTS_FILE)
        with closing(Publisher()) as events:
            events.listen(log.take)
            events.listen(self._count)
            keys = await (self._run_recorded(events) if self._plan.recorded else self._run_direct(events))
            keep_tables(self._store, self._pages.out)
        return HooksDone(keys, dict(self._statuses), self._stopped.is_set(), self._reason)

    def _count(self, batch: EventBatch) -> None:
        self._statuses.update(event.status for event in batch.events if isinstance(event, HookEvent))

    def _supervisor(self, events: Events, recording: HookRecording | None = None) -> HookSupervisor:
        self._hooks = new_supervisor(
            *(self._queue, self._plan, self._locked.launch, events, ("", "")),
            private=is_private(self._pages.out),
            held=(lambda: False) if recording is None else (lambda: recording.limits.short_of_room),
            failed=self._fail,
            ports=None if recording is None else PagePorts(recording.orchestrator.recording_channel),
        )
        return self._hooks

    def _fail(self, reason: str) -> None:
        """Hooks cannot go on: what runs is stopped."""
        if not self._reason:
            _log.warning("hooks are stopped: %s", reason)
            self._reason = reason
        self._stop()

    def _stop(self, _: str = "") -> None:
        self._stopped.set()
        if self._hooks is not None:
            self._hooks.stop()

    def _kill(self, _: str = "") -> None:
        self._stopped.set()
        if self._hooks is not None:
            self._hooks.kill()

    async def _run_direct(self, events: Events) -> int:
        """Hooks reach the network by themselves; how many pages there are."""
        supervisor = self._supervisor(events)
        await supervisor.begin()
        try:
            # while the worker starts
            keys = self._queue_pages()
        except MunimentError:
            supervisor.kill()
            await supervisor.end()
            raise

        with self._stopped_by_signals(events, self._stop, self._kill):
            await self._until_done(supervisor)
        return keys

    async def _run_recorded(self, events: Events) -> int:
        """What hooks fetch is recorded; how many pages there are."""
        from muniment.app.crawl_hooks import attended  # noqa: PLC0415  (without recording none of it is needed)
        from muniment.app.hook_recording import RecordingPlace, open_recording  # noqa: PLC0415  (as above)

        pages, keys = self._pages, self._queue_pages()
        place = RecordingPlace(
            out=pages.out.absolute(),
            locks=self._locked.locks,
            registry=self._locked.registry,
            private=is_private(pages.out),
            command_line=pages.command_line,
        )
        recording = await open_recording(self._db, place, list(self._starts.values()), events)
        orchestrator, supervisor = recording.orchestrator, self._supervisor(events, recording)

        async def last(_outcome: RunOutcome, attend: Callable[[], Awaitable[bool]]) -> bool:
            await attended(self._until_done(supervisor), attend, self._kill)
            return True

        def kill(reason: str) -> None:
            self._kill()
            orchestrator.kill(reason)

        orchestrator.last_hooks = last
        await supervisor.begin()
        with self._stopped_by_signals(events, self._stop, kill):
            await orchestrator.run(resumed=True)
        recording.close()
        return keys

    def _stopped_by_signals(self, events: Events, *steps: Callable[[str], None]) -> AbstractContextManager[None]:
        return stopped_by_signals(asyncio.get_running_loop(), lambda why: events.publish(StopEvent(why)), *steps)

    async def _until_done(self, supervisor: HookSupervisor) -> bool:
        try:
            while not self._stopped.is_set() and await self._queue.due(1, ()):  # noqa: ASYNC110  (the tracker calls nobody)
                await asyncio.sleep(_LOOK_S)
        except MunimentError as error:
            self._fail(str(error))
        return await supervisor.finish(finished=False)

    def _queue_pages(self) -> int:
        """Have all pages wait, and count them; those of which nothing is to be run are done at once."""
        from muniment.archive.hooks.pages import captured_pages  # noqa: PLC0415  (pyarrow loads while the worker starts)

        out, urls, store = self._pages.out, self._pages.urls, self._store
        keys: set[bytes] = set()
        batch = []
        found = set[str]()
        for page in captured_pages(out):
            if page.url in urls:
                found.add(page.url)
            if page.depth == 0 and len(self._starts) < _MOST_STARTS:
                self._starts.setdefault(host_of(page.url), page.url)
            if (urls and page.url not in urls) or page.key in keys or not store.wants(page.url):
                continue
            keys.add(page.key)
            batch.append(page)
            if len(batch) >= _AT_ONCE:
                store.add(batch, again=True)
                batch = []
        store.add(batch, again=True)
        if missing := urls - found:
            raise UsageError(f"--url {min(missing)}: {out} holds no page of it")
        self._queue.keys = frozenset(keys) if urls else None
        return len(keys)
