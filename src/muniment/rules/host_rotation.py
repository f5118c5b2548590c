"""The rotation of hosts: the one order in which hosts that may have pages are asked. Pure."""

from __future__ import annotations

import heapq
from collections import OrderedDict

__all__ = ["HostRotation"]


class HostRotation:
    """Hosts by number in the order of their turns, each once; those that were put off come after all others."""

    __slots__ = ("_heap", "_here", "_later")

    def __init__(self) -> None:
        self._heap: list[tuple[int, int]] = []
        self._here: set[int] = set()
        self._later: OrderedDict[int, None] = OrderedDict()

    def add(self, turn: int, host_id: int) -> None:
        """Put a host into the queue unless it is there; lower turns go first."""
        if host_id not in self._here:
            self._later.pop(host_id, None)
            self._here.add(host_id)
            heapq.heappush(self._heap, (turn, host_id))

    def add_later(self, host_id: int) -> None:
        """Put a host behind all others."""
        self._here.discard(host_id)
        self._later[host_id] = None

    def take(self, *, later: bool = False) -> int | None:
        """Remove the next host and return it; `later`: also one that was put off, when there are no others."""
        while self._heap:
            _, host_id = heapq.heappop(self._heap)
            if host_id in self._here:
                self._here.discard(host_id)
                return host_id
        return self._later.popitem(last=False)[0] if later and self._later else None
