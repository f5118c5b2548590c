"""Databases of a server, each in a thread of its own: a bounded number of calls wait, and answers have a deadline."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from contextvars import Context, copy_context
from queue import SimpleQueue
from threading import Thread
from typing import Any, Generic, Protocol, TypeVar

from msgspec import Struct

from muniment.clock import monotonic
from muniment.errors import DiskFullError, MunimentError, TrackerError
from muniment.web.refusals import busy, database_away

__all__ = ["DatabaseThread", "Opened"]

_log = logging.getLogger(__name__)
_Answer = TypeVar("_Answer")
_PATIENCE_S = 25.0
"""How long a caller waits: a pipeline and a balancer have deadlines, too."""
_LOOK_S = 1.0
"""How often one that waits sees whether the database answers at all."""
_OPENING_S = 1.0
"""Between two tries to open a database that failed."""


class Opened(Protocol):
    """What is open in a thread."""

    def close(self) -> None:
        """Give the connection back; safe to call twice."""


_Open = TypeVar("_Open", bound=Opened)


class _Call(Struct, Generic[_Open], frozen=True):
    context: Context
    work: Callable[[_Open], Any]
    answer: asyncio.Future[Any]


class DatabaseThread(Generic[_Open]):
    """A thread with a database: calls run one after the other, in their order but for those that can wait.

    After a failure of the database it is opened anew, as often as that takes, and calls are refused meanwhile.
    All calls come from one loop.
    """

    def __init__(self, name: str, opening: Callable[[], _Open], most_waiting: int, stalled_s: float) -> None:
        self.name, self._opening, self._most, self._stalled_s = name, opening, most_waiting, stalled_s
        self._open: _Open | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._turns: SimpleQueue[bool] = SimpleQueue()
        """True for each call that waits, and False at the end."""
        self._soon: deque[_Call[_Open]] = deque()
        self._later: deque[_Call[_Open]] = deque()
        self._waiting = 0
        self._next_try = 0.0
        self._failure = ""
        self._began: float | None = None
        """When the call that is under way began."""
        self._ended = asyncio.Event()

    @property
    def stalled(self) -> bool:
        """Whether a call takes longer than any that a database answers."""
        began = self._began
        return began is not None and monotonic() - began > self._stalled_s

    async def run(
        self, work: Callable[[_Open], _Answer], *, patience_s: float = _PATIENCE_S, later: bool = False
    ) -> _Answer:
        """The answer of a call. Raises what it raises; RefusedRequestError when the line is too long or time is over.

        `later`: any other call goes first. One that has begun goes on after its time, so every call can be made again.
        """
        if self.stalled:
            raise database_away()
        if self._waiting >= self._most:
            raise busy()
        answer: asyncio.Future[_Answer] = self._begun_loop().create_future()
        self._waiting += 1
        answer.add_done_callback(self._done)
        # what it logs is of the request that it is for
        (self._later if later else self._soon).append(_Call(copy_context(), work, answer))
        self._turns.put(True)
        return await self._answered(answer, monotonic() + patience_s)

    def _begun_loop(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            # of its own: each call is two messages, which a pool makes dear; and no end of the process waits for it
            Thread(target=self._work, name=f"muniment-{self.name}", daemon=True).start()
            self._loop = asyncio.get_running_loop()  # after it: a start that failed is tried again
        return self._loop

    async def _answered(self, answer: asyncio.Future[_Answer], until: float) -> _Answer:
        try:
            while not answer.done():
                left = until - monotonic()
                if left <= 0 or self.stalled:
                    raise database_away("the database takes too long; ask again in a moment")
                await asyncio.wait({answer}, timeout=min(left, _LOOK_S))
            return answer.result()
        finally:
            answer.cancel()  # one that has not begun does not

    def _done(self, _answer: object) -> None:
        self._waiting -= 1

    async def close(self, patience_s: float) -> None:
        """Close the database, unless a call does not end."""
        if self._loop is None:
            return
        for call in (*self._soon, *self._later):
            call.answer.cancel()
        self._turns.put(False)
        with suppress(TimeoutError):
            await asyncio.wait_for(self._ended.wait(), patience_s)

    # -- in the thread

    def _work(self) -> None:
        while self._turns.get():
            call = (self._soon or self._later).popleft()
            if not call.answer.cancelled():
                self._carry_out(call)
        self._drop()
        self._tell(self._ended.set)

    def _carry_out(self, call: _Call[_Open]) -> None:
        try:
            found = call.context.run(self._run, call.work)
        except BaseException as error:
            self._tell(_settle, call.answer, None, error)
        else:
            self._tell(_settle, call.answer, found, None)

    def _tell(self, what: Callable[..., None], *values: Any) -> None:
        assert self._loop is not None
        with suppress(RuntimeError):  # the loop has ended before the call
            self._loop.call_soon_threadsafe(what, *values)

    def _run(self, work: Callable[[_Open], _Answer]) -> _Answer:
        self._began = monotonic()
        try:
            return work(self._opened())
        except (TrackerError, DiskFullError) as error:
            # what is kept in memory may be ahead of the database; a connection that met a full disk writes no more
            self._failed(error)
            raise
        except MunimentError:
            raise
        except Exception:
            self._drop()
            raise
        finally:
            self._began = None

    def _opened(self) -> _Open:
        if self._open is None:
            if monotonic() < self._next_try:
                raise database_away(self._failure)
            try:
                self._open = self._opening()
            except MunimentError as error:
                self._failed(error)
                raise database_away(self._failure) from error
        return self._open

    def _failed(self, error: MunimentError) -> None:
        self._failure = str(error)
        self._next_try = monotonic() + _OPENING_S
        self._drop()

    def _drop(self) -> None:
        opened, self._open = self._open, None
        if opened is not None:
            try:
                opened.close()
            except Exception as error:  # it is of no use any more, whatever is wrong with it
                _log.info("closing a database: %s", error)


def _settle(answer: asyncio.Future[Any], found: Any, error: BaseException | None) -> None:
    if answer.done():
        return
    if error is None:
        answer.set_result(found)
    else:
        answer.set_exception(error)
