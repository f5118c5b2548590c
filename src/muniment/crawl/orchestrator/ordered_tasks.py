"""The orchestrator's tasks, one after the other: none begins while another waits for the queue."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, TypeVar, cast

__all__ = ["OrderedTasks"]

A = TypeVar("A")
T = TypeVar("T")
Task = Callable[[], Awaitable[Any]]


class OrderedTasks:
    """Tasks in the order in which they came; `run` carries them out until it is cancelled.

    `failed` gets the error of a task whose result is not awaited.
    """

    def __init__(self, failed: Callable[[Exception], None]) -> None:
        self._failed = failed
        self._tasks: deque[tuple[Task, asyncio.Future[Any] | None]] = deque()
        self._any = asyncio.Event()

    def add(self, task: Task) -> None:
        """Have a task carried out after those before it."""
        self._tasks.append((task, None))
        self._any.set()

    async def carry_out(self, task: Callable[[], Awaitable[T]]) -> T:
        """The same, and wait for its result or error."""
        done: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._tasks.append((task, done))
        self._any.set()
        return cast("T", await done)

    def in_turn(self, task: Callable[[A], Awaitable[T]]) -> Callable[[A], Awaitable[T]]:
        """Carry out the tasks that are queued when this is called."""
        return lambda about: self.carry_out(partial(task, about))

    async def run(self) -> None:
        """Carry out queued tasks, and those that come."""
        while True:
            while self._tasks:
                await self._do(*self._tasks.popleft())
            self._any.clear()
            await self._any.wait()

    async def _do(self, task: Task, done: asyncio.Future[Any] | None) -> None:
        try:
            result = await task()
        except MemoryError as error:
            # an orderly end takes memory, too
            asyncio.get_running_loop().call_exception_handler({"message": "no memory", "exception": error})
        except Exception as error:
            if done is None:
                self._failed(error)
            elif not done.done():
                done.set_exception(error)
        else:
            if done is not None and not done.done():
                done.set_result(result)
