"""How many connections a server has open at one time, as its peers see it; standard library only."""

from __future__ import annotations

import select
import threading

__all__ = ["Connections"]


class Connections:
    """Counts connections of many threads.

    One that its peer has closed counts no more, though the thread that serves it may see that late: a peer that closes
    one before it opens another has one.
    """

    def __init__(self) -> None:
        self.most = 0
        """The most that were open at one time."""
        self._descriptors: set[int] = set()
        self._lock = threading.Lock()

    @property
    def open(self) -> int:
        """How many there are now."""
        with self._lock:
            return self._alive()

    def add(self, descriptor: int) -> None:
        """Count one that was accepted."""
        with self._lock:
            self._descriptors.add(descriptor)
            self.most = max(self.most, self._alive())

    def remove(self, descriptor: int) -> None:
        """Count one no more; before it is closed, since another may get its descriptor then."""
        with self._lock:
            self._descriptors.discard(descriptor)

    def _alive(self) -> int:
        ended = select.poll()
        for descriptor in self._descriptors:
            ended.register(descriptor, select.POLLRDHUP)
        return len(self._descriptors) - len(ended.poll(0))
