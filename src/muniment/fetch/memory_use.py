"""How much of a process's memory bodies and header blocks take, against one budget."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

__all__ = ["MEMORY_BUDGET", "SMALL", "MemoryUse"]

SMALL = 64 << 10
"""Bytes above which a body, or a header block that is not complete, goes to a file when memory is scarce."""
MEMORY_BUDGET = 64 << 20
"""Bytes of all bodies and header blocks in memory above which memory is scarce."""
_MOST_OF_HEADS = 4
"""The part of the budget that large header blocks, which are in memory when complete, may have: one of so many."""
_FEWEST = 4
"""Requests that may be under way when it is crowded no more; one more with each answer that does not crowd it."""


class MemoryUse:
    """Counts the bytes of bodies and of header blocks that are in memory, against a budget."""

    __slots__ = ("_asked", "_paused", "_waiters", "_window", "budget", "heads", "used")

    def __init__(self, budget: int = MEMORY_BUDGET) -> None:
        self.budget = budget
        self.used = 0
        self.heads = 0
        """Of these, the bytes of large header blocks that are complete and wait to be recorded."""
        self._waiters: deque[asyncio.Future[None]] = deque()
        self._paused: deque[Callable[[], None]] = deque()
        self._asked, self._window = 0, _FEWEST

    @property
    def scarce(self) -> bool:
        """Whether what is larger than `SMALL` belongs in a file."""
        return self.used > self.budget

    @property
    def crowded(self) -> bool:
        """Whether a request has to wait for its turn, because many large header blocks wait to be recorded."""
        return bool(self._waiters) or self.full

    @property
    def full(self) -> bool:
        """Whether no other large header block should be completed before some of them are recorded."""
        return self.heads > self.budget // _MOST_OF_HEADS

    def add_head(self, size: int) -> None:
        """A large header block is complete, or (below 0) was recorded."""
        self.used += size
        self.heads += size
        if self.full:
            self._window = _FEWEST
        else:
            self._wake()

    async def turn(self) -> None:
        """Wait until another request may go out; `end_turn` is to be called when its exchange is over."""
        while self.full or self._asked >= self._window:
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            try:
                await waiter
            except asyncio.CancelledError:
                self._wake()  # it may have been this one's turn
                raise
        self._asked += 1

    def end_turn(self) -> None:
        """An exchange that waited for its turn is over."""
        self._asked -= 1
        if not self.full:
            self._window += 1
            self._wake()

    def when_room(self, resume: Callable[[], None]) -> None:
        """Call `resume` when it is full no more: what comes until then is not read."""
        self._paused.append(resume)

    def resume_some(self) -> None:
        """Let some go on that were paused, if there is room; to be called regularly, for they may need none."""
        for _ in range(0 if self.full else min(_FEWEST, len(self._paused))):
            self._paused.popleft()()

    def _wake(self) -> None:
        self.resume_some()
        room = 0 if self.full else self._window - self._asked
        while room > 0 and self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)
                room -= 1
