"""The session of a pipeline: it greets, keeps the lease, hears the news, and begins anew when the session has ended."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Protocol, TypeVar

from msgspec import Struct

from muniment import __version__
from muniment.clock import steady_ms
from muniment.errors import ServerError, ServerLostError, SessionEndedError
from muniment.model.network.sessions import (
    GreetAnswer,
    GreetCall,
    HeartbeatAnswer,
    HeartbeatCall,
    NewsAnswer,
)
from muniment.model.pipeline import HostReport, SessionEnding
from muniment.remote.connection import Retries, ServerConnection

__all__ = ["HeldJobs", "SessionKeeper", "SessionListener"]

_Answer = TypeVar("_Answer")
_NEWS_S = 40.0
"""How long the server may wait for news."""
_LOOK_S = 0.1
"""How often the lease is looked at."""
_REPORT_EVERY = 3
"""Heartbeats from one report to the next."""


class HeldJobs(Struct, frozen=True):
    """What is here of jobs."""

    ask: int = 0
    """The number of the next claim; 0 when there is no saying."""
    jobs: list[int] = []
    """Those of which pages are here, or something is not answered yet."""


class SessionListener(Protocol):
    """Hears what becomes of a session."""

    def began(self, session: GreetAnswer) -> None:
        """A session begins, or goes on."""

    def ended(self, ending: str) -> None:
        """It has ended: what was held is given up."""

    def heard(self, news: NewsAnswer) -> None:
        """What the pipeline goes by from now on."""

    def confirmed(self, *, confirmed: bool) -> None:
        """Whether a server has said within the last lease that the session goes on."""

    def reached(self, *, reached: bool, why: str = "") -> None:
        """Whether the server answers."""


class SessionKeeper:
    """Keeps the session of one process of a pipeline."""

    def __init__(
        self,
        connection: ServerConnection,
        instance: str,
        slots: int,
        listener: SessionListener,
        report: Callable[[], HostReport],
        held: Callable[[], HeldJobs] = HeldJobs,
    ) -> None:
        """`report` returns the facts about this machine, `held` what is here of jobs."""
        self._connection, self._instance, self._slots = connection, instance, slots
        self._listener, self._report, self._held = listener, report, held
        self.session: GreetAnswer | None = None
        """None while there is none."""
        self.paused = ""
        """Why no pages are taken, as heartbeats say it."""
        self._confirmed_until = 0
        self._confirmed = self._reached = True
        self._news = 0
        self._over: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._beat = asyncio.Event()

    async def run(self) -> None:
        """Keep a session until cancelled. Raises RefusedError; SessionEndedError when another process has begun."""
        while True:
            session = await self._retries().until_answered(self._greet)
            self.session, self._news = session, 0
            self._over = asyncio.get_running_loop().create_future()
            self._listener.began(session)
            ending = await self._keep(session)
            self.session = None
            self._listener.ended(ending)
            if ending == SessionEnding.REPLACED:
                raise SessionEndedError(ending, session.epoch)

    async def _keep(self, session: GreetAnswer) -> str:
        """Keep a session until it has ended; how it did. Raises what is more than that."""
        loops = (self._send_heartbeats(session), self._hear_news(session.epoch), self._watch_lease())
        tasks = [asyncio.create_task(one) for one in loops]
        try:
            waiting: list[asyncio.Future[Any]] = [*tasks, self._over]
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            for task in tasks:
                if task.done():
                    task.result()
            return self._over.result()
        except SessionEndedError as error:
            return error.ending
        finally:
            for task in tasks:
                task.cancel()

    def over(self, epoch: int, error: SessionEndedError) -> None:
        """Note that a call was answered that the session has ended."""
        if self.session is not None and self.session.epoch == epoch and not self._over.done():
            self._over.set_result(error.ending)

    async def begin_anew(self, epoch: int) -> None:
        """End a session whose state the server knows otherwise, and greet again."""
        with suppress(ServerError, SessionEndedError):
            await self._connection.ask("DELETE", f"/v1/session/{epoch}", object)
        self.over(epoch, SessionEndedError(SessionEnding.GOODBYE, epoch))

    async def goodbye(self) -> None:
        """End the session. Raises a ServerError when no server takes that in."""
        if self.session is not None:
            with suppress(SessionEndedError):
                await self._connection.ask("DELETE", f"/v1/session/{self.session.epoch}", object)
            self.session = None

    def tell(self, paused: str) -> None:
        """Say at once why no pages are taken; an empty text when they are."""
        if paused != self.paused:
            self.paused = paused
            self._beat.set()

    # -- greeting

    async def _greet(self) -> GreetAnswer:
        sent = steady_ms()
        call = GreetCall(instance=self._instance, slots=self._slots, version=__version__, report=self._report())
        answer = await self._connection.ask("POST", "/v1/session", GreetAnswer, call)
        self._confirm(sent, answer.lease_s)
        return answer

    def _retries(self, longest_s: float = 10.0) -> Retries:
        return Retries(self.note_failure, longest_s)

    def note_failure(self, error: ServerLostError) -> None:
        """Note that a server did not answer."""
        if self._reached:
            self._reached = False
            self._listener.reached(reached=False, why=str(error))

    def _confirm(self, sent: int, lease_s: float) -> None:
        """A request of this moment was answered: the lease runs from it, at least."""
        self._confirmed_until = sent + int(lease_s * 1000)
        if not self._reached:
            self._reached = True
            self._listener.reached(reached=True)
        self._look()

    def _look(self) -> None:
        confirmed = steady_ms() < self._confirmed_until
        if confirmed != self._confirmed:
            self._confirmed = confirmed
            self._listener.confirmed(confirmed=confirmed)

    @property
    def lease_left_ms(self) -> int:
        """Milliseconds for which the session is confirmed still."""
        return max(0, self._confirmed_until - steady_ms())

    # -- while it lasts

    async def _watch_lease(self) -> None:
        while True:
            self._look()
            await asyncio.sleep(_LOOK_S)

    async def _send_heartbeats(self, session: GreetAnswer) -> None:
        retries, count = self._retries(session.heartbeat_s), 0
        while True:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._beat.wait(), session.heartbeat_s)
            self._beat.clear()
            count += 1
            report = self._report() if count % _REPORT_EVERY == 0 else None
            answer = await retries.until_answered(lambda report=report: self._heartbeat(session, report))  # type: ignore[misc]
            if answer.news > self._news:
                # the poll that should have heard of it may hang at a server that does not answer
                with suppress(ServerLostError):  # the next heartbeat says it again
                    await self._ask_news(session.epoch, 0.0)

    async def _heartbeat(self, session: GreetAnswer, report: HostReport | None) -> HeartbeatAnswer:
        sent = steady_ms()
        held = self._held()
        call = HeartbeatCall(report=report, paused=self.paused, ask=held.ask, jobs=held.jobs)
        path = f"/v1/session/{session.epoch}/heartbeat"
        deadline_s = max(1.0, min(10.0, session.lease_s / 3))
        answer = await self._connection.ask("POST", path, HeartbeatAnswer, call, deadline_s=deadline_s)
        self._confirm(sent, answer.lease_s)
        return answer

    async def _hear_news(self, epoch: int) -> None:
        while True:
            await self._retries().until_answered(lambda: self._ask_news(epoch, _NEWS_S))

    async def _ask_news(self, epoch: int, wait_s: float) -> None:
        path = f"/v1/session/{epoch}/news?after={self._news}&wait_s={wait_s:g}"
        news = await self._connection.ask("GET", path, NewsAnswer, wait_s=wait_s)
        if news.news > self._news:
            self._news = news.news
            self._listener.heard(news)
