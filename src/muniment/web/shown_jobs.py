"""The live plane of a server: what its thread asks of the tracker is carried out in the server's loop."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import Any, TypeVar

from muniment.clock import now_ms
from muniment.control.fleet import queued as queues
from muniment.control.fleet.jobs import all_made, job_of
from muniment.control.verbs.steering import take_over
from muniment.errors import MunimentError, UsageError
from muniment.live.entries import ServerEntries
from muniment.live.fleet_plane import FleetPlane
from muniment.live.layout import target_of
from muniment.live.link import RedisLink
from muniment.model.change import Change, ChangeMade
from muniment.model.network.live import ConnectedPipeline, LiveJob, LogEntry, Outside, QueuedJob, ShownJob
from muniment.tracker.db.database import Database
from muniment.tracker.fleet.lease_clock import clock_of
from muniment.tracker.fleet.session_leases import tracker_id
from muniment.tracker.jobs import job_log, live, shown, store
from muniment.tracker.views.jobs import job_view
from muniment.tracker.views.machines import machines
from muniment.web.state import ServerState

__all__ = ["begun_plane"]

T = TypeVar("T")
_PATIENCE_S = 10.0
_HELD_MS = 10_000


def begun_plane(server: ServerState) -> FleetPlane | None:
    """The live plane of a server, if it has one; it runs."""
    order = server.tracker.order.plane
    if order is None:
        return None
    port = _ServerPort(server, asyncio.get_running_loop())
    plane = FleetPlane(RedisLink(order.address, order.password), port, order.options)
    plane.start()
    return plane


class _ServerPort:
    """Calls of the plane's thread; each raises LookupError when the tracker does not answer."""

    def __init__(self, server: ServerState, loop: asyncio.AbstractEventLoop) -> None:
        self._server, self._loop = server, loop
        self._name, self._tracker = secrets.token_hex(8), ""
        self._text = ServerEntries()
        self._look = shown.ShownLook()
        self.ages: dict[int, int] = {}
        """Of the settings of jobs, at the last look."""

    @property
    def tracker(self) -> str:
        """The random name of the tracker."""
        self._tracker = self._tracker or self._write(lambda db: tracker_id(db, now_ms()))
        return self._tracker

    def holds(self) -> bool:
        """Whether this server has the live plane: in a file it is the only one."""
        if not self._server.tracker.on_server:
            return True
        return self._write(lambda db: shown.hold_plane(db, self._name, clock_of(db).now(), _HELD_MS))

    def leave(self) -> None:
        """Let another server have it."""
        if self._server.tracker.on_server:
            self._write(lambda db: shown.hold_plane(db, self._name, clock_of(db).now(), -1))

    def swept(self) -> int:
        """How often the server has swept."""
        return self._server.swept

    def begin(self) -> None:
        """Have all jobs shown that run."""
        if fresh := self._read(shown.unshown_jobs):
            self._write(lambda db: shown.begin_shown(db, fresh, now_ms()))

    def jobs(self) -> list[ShownJob]:
        """The jobs that are shown."""
        before = self._look
        self._look = self._read(lambda db: shown.shown_jobs(db, before))
        self.ages = {job.job_id: job.age for job in self._look.jobs}
        return self._look.jobs

    def recent(self, epoch: str, within_s: int) -> list[ShownJob]:
        """The jobs that ended within this time, but for aborted ones, whose records a server in this state lacks."""
        return self._read(lambda db: shown.recent_jobs(db, epoch, now_ms() - within_s * 1000))

    def ended(self, epoch: str, within_s: int) -> list[tuple[str, int]]:
        """Ident and number of those of them whose records a server in this state was given."""
        return self._read(lambda db: shown.ended_jobs(db, epoch, now_ms() - within_s * 1000))

    def job(self, job_id: int) -> _JobPort:
        """One of them."""
        return _JobPort(self, job_id)

    def several(self, job_ids: Sequence[int]) -> dict[int, LiveJob]:
        """Some of them as they are now."""
        return self._read(lambda db: live.several_live(db, job_ids))

    def tails(self, ends: Mapping[int, tuple[int, int]]) -> dict[int, list[bytes]]:
        """By job: the entries of its log after a number, up to another."""
        return self._read(lambda db: job_log.tails(db, ends))

    def keep_epochs(self, job_ids: Sequence[int], epoch: str) -> None:
        """Keep which server has all of some jobs."""
        self._write(lambda db: live.keep_epochs(db, job_ids, epoch))

    def target(self, job_id: int) -> str:
        """What it archives."""
        return self._read(lambda db: _target(db, job_id))

    def known(self, job_id: int) -> int:
        """The pages that are, or were, in its scope."""
        pages = self._read(lambda db: job_view(db, job_id)).pages
        return pages.pending + pages.claimed + pages.captured + pages.requisites + pages.failed

    def entries(self, job_id: int, after: int, end: int) -> list[bytes]:
        """The entries of its log after a number, up to another."""
        return self._read(lambda db: job_log.entries_after(db, job_id, after, end))

    def say(self, job_id: int, lines: Sequence[LogEntry]) -> None:
        """Add lines to its log."""
        self._write(lambda db: job_log.add_lines(db, job_id, lines, self._text))

    def say_changes(self, job_id: int) -> None:
        """Add a line for each change of it that has none."""
        self._write(lambda db: job_log.say_changes(db, job_id, self._text))

    def say_end(self, job_id: int, lines: Sequence[LogEntry]) -> None:
        """Add its last lines, once."""
        self._write(lambda db: shown.say_end(db, job_id, lines, self._text))

    def set_shown(self, job_id: int, *, ended: bool) -> None:
        """Keep that Redis shows its end, or that it goes on."""
        ending = shown.ShownEnding.SHOWN if ended else shown.ShownEnding.NONE
        self._write(lambda db: shown.set_ending(db, job_id, ending))

    def set_gone(self, job_id: int) -> None:
        """Keep that others took its record away."""
        self._write(lambda db: shown.set_ending(db, job_id, shown.ShownEnding.GONE))

    def keep_pipeline(self, job_id: int, instance: str) -> None:
        """Keep which pipeline works at it."""
        self._write(lambda db: shown.keep_pipeline(db, job_id, instance))

    def machines(self) -> list[ConnectedPipeline]:
        """The pipelines that are connected."""
        return self._read(machines)

    def admit(self, queued: QueuedJob, epoch: str) -> str | None:
        """Make a job of what was taken from a queue: empty when it is made, None when it was before, or why not."""
        private = self._server.tracker.order.allow_private
        try:
            made = self._write(lambda db: queues.admit(db, queued, epoch, now_ms(), allow_private=private))
        except UsageError as error:
            return str(error)
        if made is None:
            return None
        self._ask(self._server.changed(made))
        return ""

    def carried_out(self, job_id: int, outside: Outside) -> list[str]:
        """Change a job as others want it."""
        return self._ask(self._steer(job_id, outside))

    async def _steer(self, job_id: int, outside: Outside) -> list[str]:
        async def carry_out(change: Change) -> tuple[ChangeMade, ...]:
            made = await self._server.operators.run(
                lambda tracker: all_made(tracker.db, job_of(tracker.db, job_id), [change])
            )
            return tuple(made.changes)

        before = await self._server.reads.run(lambda tracker: live.live_job(tracker.db, job_id))
        refused = await take_over(carry_out, outside, paused=before.paused)
        await self._server.changed(job_id)
        return refused

    def _read(self, work: Callable[[Database], T]) -> T:
        return self._ask(self._server.reads.run(lambda tracker: work(tracker.db)))

    def _write(self, work: Callable[[Database], T]) -> T:
        return self._ask(self._server.operators.run(lambda tracker: work(tracker.db)))

    def _ask(self, call: Coroutine[Any, Any, T]) -> T:
        try:
            return asyncio.run_coroutine_threadsafe(call, self._loop).result(_PATIENCE_S)
        except UsageError:
            raise
        except (FutureTimeoutError, RuntimeError, MunimentError) as error:
            call.close()
            raise LookupError("the tracker does not answer") from error


class _JobPort:
    """One job of the server."""

    def __init__(self, port: _ServerPort, job_id: int) -> None:
        self._port, self._job_id = port, job_id

    def job(self) -> LiveJob:
        """The job as it is now."""
        return self._port._read(lambda db: live.live_job(db, self._job_id))

    def age(self) -> int:
        """The age of its settings."""
        return self._port.ages[self._job_id]

    def keep_ident(self, ident: str, url: str) -> None:
        """Keep its name in Redis."""
        self._port._write(lambda db: live.keep_ident(db, self._job_id, ident, url))

    def keep_epoch(self, epoch: str) -> None:
        """Keep which server has all of it."""
        self._port._write(lambda db: live.keep_epochs(db, [self._job_id], epoch))

    def keep_counted(self, outcome: str) -> None:
        """Keep which outcome the counts in Redis have."""
        self._port._write(lambda db: live.keep_counted(db, self._job_id, outcome))

    def steer(self, outside: Outside) -> list[str]:
        """Change the job; a line for each thing that is refused."""
        return self._port.carried_out(self._job_id, outside)


def _target(db: Database, job_id: int) -> str:
    """The first start URL of a job; of a list that came over the network, its name."""
    seed = store.settings_of(store.load_job(db, job_id)).seed
    return target_of("", f"list-{job_id}") if seed else store.start_urls(db, job_id)[0]
