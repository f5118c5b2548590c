"""Hooks over pages that a directory holds already, without fetching them."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import uvloop
from msgspec import Struct

from muniment.app.hooks import HookPlan, keep_tables, new_supervisor
from muniment.app.signals import stopped_by_signals
from muniment.archive.event_log import EventLog
from muniment.archive.index.journal import CAPTURES, PARTS
from muniment.control.privacy import is_private, keep_private
from muniment.control.tracker_location import tracker_place
from muniment.crawl.events import Publisher
from muniment.errors import MunimentError, UsageError
from muniment.model.event import EventBatch, HookEvent, StopEvent
from muniment.model.hooks.runs import HookPage
from muniment.model.place import TrackerPlace
from muniment.procs.lock import EVENTS_FILE, lock_both
from muniment.procs.registry import ProcessRegistry
from muniment.tracker.connect import tracker_at
from muniment.tracker.db.database import Database
from muniment.tracker.db.sqlite import SqliteDatabase
from muniment.tracker.hooks.queue import JobHooks
from muniment.tracker.jobs.store import find_job
from muniment.tracker.stores.hooks import HookStore

__all__ = ["HooksDone", "run_hooks"]

_ALONE = "hooks.sqlite"
_AT_ONCE = 1000
_LOOK_S = 0.05


class HooksDone(Struct, frozen=True):
    """What became of the hooks of a run."""

    pages: int
    statuses: dict[str, int]
    """Tries by status."""
    stopped: bool


def run_hooks(plan: HookPlan, out: Path, registry: ProcessRegistry, urls: frozenset[str]) -> HooksDone:
    """Run hooks over the pages of a directory, or over those of some URLs. Raises MunimentError."""
    if not (out / CAPTURES).exists() and not (out / PARTS).is_dir():
        raise UsageError(f"{out} holds no index of captures")
    place = tracker_place(out)
    if place.server:
        raise UsageError(f"{out} is of a pipeline: run hooks over a copy of it")
    if is_private(out):
        keep_private()
    locks = lock_both(out, place.directory)
    try:
        with _database(out, place) as (db, job_id):
            descriptors = [lock.descriptor for lock in locks]
            return uvloop.run(_run(plan, out, registry, urls, HookStore(db, job_id, plan.wanted), descriptors))
    finally:
        for lock in locks:
            os.close(lock.descriptor)


@contextmanager
def _database(out: Path, place: TrackerPlace) -> Iterator[tuple[Database, int]]:
    """The tracker with the job of a directory; one of its own for hooks where there is none."""
    if place.database or place.file.exists():
        with tracker_at(place) as db:
            job = find_job(db)
            yield db, job.job_id if job else 1
        return
    with closing(SqliteDatabase.open(out / _ALONE)) as alone:
        yield alone, 1


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


async def _run(
    plan: HookPlan, out: Path, registry: ProcessRegistry, urls: frozenset[str], store: HookStore, locks: list[int]
) -> HooksDone:
    queue = _SomePages(JobHooks(store.db, store.job_id, store))
    statuses: Counter[str] = Counter()

    def count(batch: EventBatch) -> None:
        statuses.update(event.status for event in batch.events if isinstance(event, HookEvent))

    stopped, log = asyncio.Event(), EventLog(locks[0], Path(plan.setup.out) / EVENTS_FILE)
    with closing(Publisher()) as events:
        events.listen(log.take)
        events.listen(count)
        supervisor = new_supervisor(
            *(queue, plan, registry, locks, events, ("", "")),
            private=is_private(out),
            held=lambda: False,
            failed=lambda _: stopped.set(),
        )
        await supervisor.begin()
        try:
            # while the worker starts
            keys = _queue_pages(store, out, urls)
        except MunimentError:
            supervisor.kill()
            await supervisor.end()
            raise
        queue.keys = frozenset(keys) if urls else None

        def stop(_: str) -> None:
            supervisor.stop()
            stopped.set()

        def kill(_: str) -> None:
            supervisor.kill()
            stopped.set()

        loop = asyncio.get_running_loop()
        with stopped_by_signals(loop, lambda why: events.publish(StopEvent(why)), stop, kill):
            while not stopped.is_set() and await queue.due(1, ()):  # noqa: ASYNC110  (the tracker calls nobody)
                await asyncio.sleep(_LOOK_S)
            await supervisor.finish(finished=False)
        keep_tables(store, out)
    return HooksDone(len(keys), dict(statuses), stopped.is_set())


def _queue_pages(store: HookStore, out: Path, urls: frozenset[str]) -> set[bytes]:
    """Have all pages wait; those of which nothing is to be run are done at once."""
    from muniment.archive.hooks.pages import captured_pages  # noqa: PLC0415  (pyarrow loads while the worker starts)

    keys: set[bytes] = set()
    batch = []
    found = set[str]()
    for page in captured_pages(out):
        if page.url in urls:
            found.add(page.url)
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
    return keys
