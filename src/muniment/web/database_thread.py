"""Databases of a server, each in a thread of its own: a bounded number of calls wait, and answers have a deadline."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from contextvars import Context, copy_context
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

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
_Line = deque[tuple[Future[Any], Callable[[_Open], Any]]]


class DatabaseThread(Generic[_Open]):
    """A thread with a database: calls run one after the other, in their order but for those that can wait.

    After a failure of the database it is opened anew, as often as that takes, and calls are refused meanwhile.
    """

    def __init__(self, name: str, opening: Callable[[], _Open], most_waiting: int, stalled_s: float) -> None:
        self.name, self._opening, self._most, self._stalled_s = name, opening, most_waiting, stalled_s
        self._open: _Open | None = None
        self._thread = ThreadPoolExecutor(1, f"muniment-{name}")
        self._soon: _Line[_Open] = deque()
        self._later: _Line[_Open] = deque()
        self._waiting = 0
        self._next_try = 0.0
        self._failure = ""
        self._began: float | None = None
        """When the call that is under way began."""

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
        self._waiting += 1
        call: Future[_Answer] = Future()
        # what it logs is of the request that it is for
        (self._later if later else self._soon).append((call, _within(copy_context(), work)))
        self._thread.submit(self._run_next)
        call.add_done_callback(partial(_call_soon, asyncio.get_running_loop(), self._done))
        return await self._answered(asyncio.wrap_future(call), monotonic() + patience_s)

    async def _answered(self, call: asyncio.Future[_Answer], until: float) -> _Answer:
        try:
            while not call.done():
                left = until - monotonic()
                if left <= 0 or self.stalled:
                    raise database_away("the database takes too long; ask again in a moment")
                await asyncio.wait({call}, timeout=min(left, _LOOK_S))
            return call.result()
        finally:
            call.cancel()  # one that has not begun does not

    def _done(self) -> None:
        self._waiting -= 1

    async def close(self, patience_s: float) -> None:
        """Close the database, unless a call does not end."""
        for call, _ in (*self._soon, *self._later):
            call.cancel()
        with suppress(TimeoutError):
            await asyncio.wait_for(asyncio.wrap_future(self._thread.submit(self._drop)), patience_s)
        self._thread.shutdown(wait=False, cancel_futures=True)

    # -- in the thread

    def _run_next(self) -> None:
        # it is called once for each that waits, so there is one
        call, work = (self._soon or self._later).popleft()
        if not call.set_running_or_notify_cancel():
            return
        try:
            answer = self._run(work)
        except BaseException as error:
            call.set_exception(error)
        else:
            call.set_result(answer)

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


def _within(context: Context, work: Callable[[_Open], _Answer]) -> Callable[[_Open], _Answer]:
    return lambda opened: context.run(work, opened)


def _call_soon(loop: asyncio.AbstractEventLoop, what: Callable[[], None], _call: object) -> None:
    with suppress(RuntimeError):  # the loop has ended before the call
        loop.call_soon_threadsafe(what)
