"""Long polls: requests that wait until there is something to answer."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from muniment.clock import monotonic

__all__ = ["Poll", "Polls"]

_LOOK_S = 1.0
"""After this a request looks again that waits for pages which are there and not due."""
_SPREAD_S = 0.5
"""So long, at most, until all look that were woken at once."""
_LEAST = 0.7
"""The part of its time that a request waits at least: those that came together must not come together again."""
_SHORTEST_S = 0.1
"""Between two looks of one request."""


class Polls:
    """The requests that wait for one thing."""

    def __init__(self, each_s: float) -> None:
        """`each_s`: between two looks of any, for whoever waits must not keep the database from working."""
        self._each_s = each_s
        self._rung = asyncio.Event()
        self._ended = asyncio.Event()
        self._count = 0

    def wake(self) -> None:
        """Have all look again."""
        rung, self._rung = self._rung, asyncio.Event()
        rung.set()

    def end(self) -> None:
        """Let none wait any longer."""
        self._ended.set()
        self.wake()

    @asynccontextmanager
    async def waiting(self, seconds: float) -> AsyncIterator[Poll]:
        """Count one request among those that wait."""
        self._count += 1
        try:
            yield Poll(self, monotonic() + seconds * random.uniform(_LEAST, 1.0))
        finally:
            self._count -= 1

    @property
    def count(self) -> int:
        """How many requests wait."""
        return self._count

    @property
    def ring(self) -> asyncio.Event:
        """The next time that it wakes all."""
        return self._rung

    @property
    def ended(self) -> asyncio.Event:
        """Set when none is to wait any longer."""
        return self._ended

    @property
    def share_s(self) -> float:
        """Seconds between two looks of one request, so that all together do not look too often."""
        return max(_SHORTEST_S, self._each_s * self._count)


class Poll:
    """One request that waits."""

    def __init__(self, polls: Polls, until: float) -> None:
        self._polls, self._until = polls, until
        self.repeated = False
        """Whether it has looked before: other requests go first then."""
        self.look()

    def look(self) -> None:
        """Note that it looks now: what happens from here on wakes it."""
        self._ring, self._looked = self._polls.ring, monotonic()

    async def again(self, *, soon: bool = False) -> bool:
        """Wait until it makes sense to look again: when something wakes it or, if it is to be `soon`, a moment later.

        False when its time is over: nothing has changed then since it looked.
        """
        left = self._until - monotonic()
        await _heard(self._ring, min(_LOOK_S, left) if soon else left)
        if self._until <= monotonic():
            return False
        turn = monotonic() + random.random() * min(_SPREAD_S, self._polls.share_s - _SHORTEST_S)
        await _heard(self._polls.ended, max(self._looked + self._polls.share_s, turn) - monotonic())
        self.repeated = True
        return not self._polls.ended.is_set()


async def _heard(ring: asyncio.Event, seconds: float) -> None:
    with suppress(TimeoutError):
        await asyncio.wait_for(ring.wait(), seconds)
