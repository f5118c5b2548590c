"""How much of a process's memory bodies and header blocks take, against one budget."""

from __future__ import annotations

import asyncio

__all__ = ["MEMORY_BUDGET", "SMALL", "MemoryUse"]

SMALL = 64 << 10
"""Bytes above which a body, or a header block that is not complete, goes to a file when memory is scarce."""
MEMORY_BUDGET = 64 << 20
"""Bytes of all bodies and header blocks in memory above which memory is scarce."""
_MOST_OF_HEADS = 2
"""The part of the budget that large header blocks, which are in memory when complete, may have: one of so many."""


class MemoryUse:
    """Counts the bytes of bodies and of header blocks that are in memory, against a budget."""

    __slots__ = ("_waiters", "budget", "heads", "used")

    def __init__(self, budget: int = MEMORY_BUDGET) -> None:
        self.budget = budget
        self.used = 0
        self.heads = 0
        """Of these, the bytes of large header blocks that are complete and wait to be recorded."""
        self._waiters: list[asyncio.Future[None]] = []

    @property
    def scarce(self) -> bool:
        """Whether what is larger than `SMALL` belongs in a file."""
        return self.used > self.budget

    @property
    def crowded(self) -> bool:
        """Whether so many large header blocks wait to be recorded that nothing more should be asked for."""
        return self.heads > self.budget // _MOST_OF_HEADS

    def add_head(self, size: int) -> None:
        """A large header block is complete, or (below 0) was recorded."""
        self.used += size
        self.heads += size
        if self._waiters and not self.crowded:
            waiters, self._waiters = self._waiters, []
            for waiter in waiters:
                if not waiter.done():
                    waiter.set_result(None)

    async def room(self) -> None:
        """Wait until it is not crowded."""
        while self.crowded:
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            await waiter
