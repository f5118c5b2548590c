"""What a slot's job says to the server, within the session of its pipeline."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from muniment.errors import MunimentError, SessionEndedError
from muniment.model.capture import Capture
from muniment.model.network.sessions import (
    FinishAnswer,
    FinishCall,
    LostAnswer,
    LostCall,
    LostCapture,
    PermitsAnswer,
    PermitsCall,
    ReleaseAnswer,
    ReleaseCall,
    SessionJob,
)
from muniment.remote.connection import Retries, ServerConnection

__all__ = ["JobLink", "Releases"]

_Answer = TypeVar("_Answer")
_MOST_RELEASED = 1_000
"""Claims of one message."""


class JobLink:
    """Calls about one job. Each goes on until it is answered, unless the session has ended."""

    def __init__(
        self, connection: ServerConnection, epoch: int, job: int, over: Callable[[int, SessionEndedError], None]
    ) -> None:
        """`over` is called when the session has ended."""
        self._connection, self._epoch, self.job, self._over = connection, epoch, job, over

    async def finish(self, call: FinishCall) -> FinishAnswer:
        """Send what became of pages, once. Raises a ServerError, and SessionEndedError."""
        return await self._guarded(
            lambda: self._connection.ask("POST", f"/v1/session/{self._epoch}/finish", FinishAnswer, call)
        )

    async def release(self, claims: Sequence[tuple[int, int]], *, died: bool) -> None:
        """Give pages back: page id and claim id of each."""
        call = ReleaseCall(job=self.job, claims=list(claims), died=died)
        path = f"/v1/session/{self._epoch}/release"
        await self._patiently(lambda: self._connection.ask("POST", path, ReleaseAnswer, call))

    async def lost(self, captures: Sequence[Capture]) -> None:
        """Report captures that are gone: their pages wait again."""
        gone = [
            LostCapture(url=one.url, attempt=one.attempt, digest=one.digest, record_id=one.record_id)
            for one in captures
        ]
        call = LostCall(job=self.job, captures=gone)
        path = f"/v1/session/{self._epoch}/lost"
        await self._patiently(lambda: self._connection.ask("POST", path, LostAnswer, call))

    async def free(self, hosts: Sequence[str]) -> None:
        """Give back the connections to hosts that others want and the pipeline does not use."""
        call = PermitsCall(want=dict.fromkeys(hosts, 0))
        path = f"/v1/session/{self._epoch}/permits"
        await self._patiently(lambda: self._connection.ask("POST", path, PermitsAnswer, call))

    async def describe(self) -> SessionJob:
        """The settings and the rules of the job as they are now."""
        path = f"/v1/session/{self._epoch}/jobs/{self.job}"
        return await self._patiently(lambda: self._connection.ask("GET", path, SessionJob))

    async def _patiently(self, ask: Callable[[], Awaitable[_Answer]]) -> _Answer:
        return await self._guarded(lambda: Retries().until_answered(ask))

    async def _guarded(self, ask: Callable[[], Awaitable[_Answer]]) -> _Answer:
        try:
            return await ask()
        except SessionEndedError as error:
            self._over(self._epoch, error)
            raise


class Releases:
    """Pages on their way back to the server, in the order in which they were given back."""

    def __init__(
        self, link: JobLink, ready: Callable[[], Awaitable[None]], failed: Callable[[MunimentError], None]
    ) -> None:
        """`ready` waits until what the server has to know before is sent; `failed` gets what cannot be sent at all."""
        self._link, self._ready, self._failed = link, ready, failed
        self._waiting: deque[tuple[tuple[int, int], bool]] = deque()
        self._changed = asyncio.Event()
        self._under_way = self._closed = False
        self._task: asyncio.Task[None] | None = None

    def open(self) -> None:
        """Begin to send."""
        self._task = asyncio.create_task(self._run())

    def close(self) -> None:
        """Send nothing any more."""
        self._closed = True
        self._waiting.clear()
        if self._task is not None:
            self._task.cancel()
        self._wake()

    def add(self, claims: Sequence[tuple[int, int]], *, died: bool = False) -> None:
        """Give pages back; `died`: the worker that held them has."""
        if not self._closed and claims:
            self._waiting.extend((claim, died) for claim in claims)
            self._wake()

    def _wake(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    @property
    def idle(self) -> bool:
        """Whether all have gone back."""
        return not (self._waiting or self._under_way)

    async def drained(self) -> None:
        """Wait until all have gone back."""
        while not self._closed and not self.idle:
            await self._changed.wait()

    async def _run(self) -> None:
        try:
            while True:
                while not self._waiting:
                    await self._changed.wait()
                self._under_way = True
                await self._ready()
                died = self._waiting[0][1]
                going: list[tuple[int, int]] = []
                while self._waiting and self._waiting[0][1] == died and len(going) < _MOST_RELEASED:
                    going.append(self._waiting.popleft()[0])
                await self._link.release(going, died=died)
                self._under_way = False
                self._wake()
        except SessionEndedError:
            self.close()
        except MunimentError as error:
            self._failed(error)
            self.close()
