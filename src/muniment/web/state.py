"""What all requests of a server share: its databases, what wakes those who wait, and how it ends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cached_property, partial
from typing import TYPE_CHECKING, TypeVar

from muniment.app.dry_run_process import DryRuns
from muniment.app.serve import ServedTracker
from muniment.clock import now_ms
from muniment.control.fleet.attempts import AttemptCaptures
from muniment.control.fleet.backends import CaptureBackend
from muniment.control.fleet.processes import end_here
from muniment.control.runs.answer_cache import AnswerCache
from muniment.errors import MunimentError
from muniment.live.entries import ServerEntries
from muniment.model.network.scopes import Caller
from muniment.settings.environment import processes_directory
from muniment.tracker.connect import opened
from muniment.tracker.db.database import Database
from muniment.tracker.fleet.dispatch import Dispatch
from muniment.tracker.fleet.job_logs import JobLogs
from muniment.tracker.fleet.tokens import caller_of
from muniment.web.authentication import Authentication
from muniment.web.bodies import BodyReader
from muniment.web.database_thread import DatabaseThread
from muniment.web.monitoring.metrics import ServerMetrics
from muniment.web.polls import Polls

if TYPE_CHECKING:
    from muniment.tracker.fleet.notices import NoticeBoard
    from muniment.tracker.views.figures import FleetFigures

__all__ = ["ServerState", "TrackerConnection"]

_T = TypeVar("_T")
_LOOKERS = 2
"""Questions about archives, and ends of processes, at once."""

_MOST_WAITING = 500
"""Calls of a database that may wait; more are refused."""
_PAGES_EACH_S, _NEWS_EACH_S = 0.01, 0.004
"""Between two looks for pages, which every finish may bring, and for news, which are few and reach all within 2 s."""
_PAGES_S, _SESSIONS_S, _OPERATORS_S = 15.0, 5.0, 600.0
"""Seconds after which a call is stalled, and not just large."""


class TrackerConnection:
    """A database of a server's thread, and what pipelines may ask of it."""

    def __init__(self, tracker: ServedTracker, metrics: ServerMetrics, *, read_only: bool = False) -> None:
        self.kept = AnswerCache()
        """Counts of jobs, which take long to make."""
        self.db: Database = opened(tracker.place, read_only=read_only, written=True)
        self._lease_s, self._metrics = tracker.order.lease_s, metrics
        self._shows = tracker.order.plane is not None

    @cached_property
    def fleet(self) -> Dispatch:
        """The calls of pipelines; for a database that is written."""
        logs = JobLogs(ServerEntries, shows=self._shows)
        return Dispatch(self.db, lease_s=self._lease_s, finishes=self._metrics.finishes, logs=logs)

    def close(self) -> None:
        """Give the connection back."""
        self.db.close()


TrackerThread = DatabaseThread[TrackerConnection]


class ServerState:
    """The state of one server; used in the thread of its loop alone."""

    def __init__(self, tracker: ServedTracker) -> None:
        self.tracker = tracker
        self.metrics = ServerMetrics()
        self.figures: tuple[float, FleetFigures] | None = None
        """The latest of its tracker, and when they were looked up."""
        writing = partial(TrackerConnection, tracker, self.metrics)
        self.pages = TrackerThread("pages", writing, _MOST_WAITING, _PAGES_S)
        """Claims and finishes."""
        # whatever takes long in one of them holds up nobody in the others
        if tracker.on_server:
            self.sessions = TrackerThread("sessions", writing, _MOST_WAITING, _SESSIONS_S)
            """Greetings, heartbeats and news."""
            self.operators = TrackerThread("operators", writing, _MOST_WAITING, _OPERATORS_S)
            """Changes by operators."""
            self.reads = TrackerThread("reads", writing, _MOST_WAITING, _OPERATORS_S)
            """What operators only look at."""
            self.lookups = self.sessions
            """Tokens."""
        else:
            # SQLite has one writer, beside which others may read
            self.sessions = self.operators = self.pages
            reading = partial(TrackerConnection, tracker, self.metrics, read_only=True)
            self.reads = TrackerThread("reads", reading, _MOST_WAITING, _OPERATORS_S)
            self.lookups = TrackerThread("lookups", reading, _MOST_WAITING, _SESSIONS_S)
        self.dry_runs = DryRuns(tracker.place, tracker.registry)
        """What rules would do."""
        self.searches = TrackerThread(
            "searches", partial(TrackerConnection, tracker, self.metrics, read_only=True), 20, _OPERATORS_S
        )
        """What looks through all attempts."""
        self._lookers = ThreadPoolExecutor(_LOOKERS, "muniment-archives")
        self.notices: DatabaseThread[NoticeBoard] | None = None
        """What other servers of the database changed."""
        if tracker.on_server:
            from muniment.tracker.fleet.notices import NoticeBoard  # noqa: PLC0415  (SQLite needs no driver of it)

            board = partial(NoticeBoard, tracker.place.database)
            self.notices = DatabaseThread("notices", board, 2, _PAGES_S)
        self.bodies = BodyReader()
        self.authentication = Authentication(self._look_up)
        self.page_polls, self.news_polls = Polls(_PAGES_EACH_S), Polls(_NEWS_EACH_S)
        self.stopping = False
        self.swept = 0
        """Times that it swept; it grows while pages are handed out and taken in."""
        self.used: set[str] = set()
        """Tokens that were used since that was last noted."""

    def threads(self) -> list[TrackerThread]:
        """All that requests go to."""
        return list(dict.fromkeys([self.pages, self.sessions, self.operators, self.reads, self.lookups, self.searches]))

    async def look(self, question: Callable[[CaptureBackend], _T]) -> _T:
        """The answer to a question about captures, from the archives at hand, else from the tracker's attempts."""
        archives = self.tracker.archives
        if archives is None:
            return await self.searches.run(lambda tracker: question(AttemptCaptures(tracker.db)))
        return await asyncio.get_running_loop().run_in_executor(self._lookers, question, archives)

    async def kill(self, process_id: str) -> None:
        """End a process of this machine, of the user who serves, and all below it."""
        homes = [processes_directory(), *([self.tracker.order.state] if self.tracker.order.state else [])]
        await asyncio.get_running_loop().run_in_executor(self._lookers, end_here, homes, process_id)

    async def _look_up(self, token: str) -> Caller | None:
        found = await self.lookups.run(lambda tracker: caller_of(tracker.db, token, now_ms()))
        if found is not None and not found.pipeline:
            self.used.add(found.name)
        return found

    async def changed(self, job_id: int) -> None:
        """An operator's change of a job is committed: it counts from here on, and all who wait look again."""
        await self.pages.run(lambda tracker: tracker.fleet.changed(job_id))
        self.wake()
        await self.give_notice()

    async def give_notice(self) -> None:
        """Have the other servers of the database look again, too; should that fail, they do it a moment later."""
        if self.tracker.on_server:
            from muniment.tracker.fleet.notices import give_notice  # noqa: PLC0415  (as above)

            with suppress(MunimentError):
                await self.operators.run(lambda tracker: give_notice(tracker.db))

    def wake(self) -> None:
        """Something was changed: all who wait look again."""
        self.metrics.news.changed()
        self.page_polls.wake()
        self.news_polls.wake()

    def stop(self) -> None:
        """Let waiting requests end, and answer no new ones."""
        self.stopping = True
        self.page_polls.end()
        self.news_polls.end()

    async def close(self, patience_s: float) -> None:
        """Close all databases."""
        self.dry_runs.close()
        closing = [thread.close(patience_s) for thread in self.threads()]
        if self.notices is not None:
            closing.append(self.notices.close(0))  # it waits for notices, and nobody for it
        await asyncio.gather(*closing)
        self._lookers.shutdown(wait=False, cancel_futures=True)
        if self.tracker.archives is not None:
            await asyncio.to_thread(self.tracker.archives.close)
