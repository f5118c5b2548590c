"""Task pool: the tasks that fetch a worker's pages. A finished one waits for the next page instead of ending."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from muniment.model.page import Claim

__all__ = ["TaskPool"]


class TaskPool:
    """Runs `work` for each claim, all at the same time.

    To begin and end a task takes more than twice as long as to wake a waiting one. There would be a new task for each
    page: whenever a batch is written the window is full, so that no page is there to go on with.
    """

    def __init__(self, work: Callable[[Claim], Awaitable[None]], failed: Callable[[BaseException], None]) -> None:
        """`failed` gets the errors of `work`."""
        self._work, self._failed = work, failed
        self._tasks: set[asyncio.Task[None]] = set()
        self._idle: list[asyncio.Future[Claim | None]] = []
        self._ending = False

    def take(self, claim: Claim) -> None:
        """Begin with a claim at the loop's next turn."""
        if self._idle:
            self._idle.pop().set_result(claim)
            return
        task = asyncio.create_task(self._run(claim))
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    async def end(self, grace_s: float) -> None:
        """Let what is under way finish within the grace; the rest is cancelled. No claim may come after it."""
        self._ending = True
        for waiting in self._idle:
            waiting.set_result(None)
        self._idle.clear()
        if not self._tasks:
            return
        _, late = await asyncio.wait(self._tasks, timeout=grace_s)
        for task in late:
            task.cancel()
        if late:
            await asyncio.wait(late)

    async def _run(self, claim: Claim | None) -> None:
        while claim is not None:
            await self._work(claim)
            claim = None  # it may be large, and the next one may be long in coming
            if not self._ending:
                claim = await self._next()

    def _next(self) -> asyncio.Future[Claim | None]:
        waiting: asyncio.Future[Claim | None] = asyncio.get_running_loop().create_future()
        self._idle.append(waiting)
        return waiting

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._failed(error)
