"""The prefetch buffer of a slot: pages that are claimed and not handed to a worker yet, by host."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from itertools import islice

from muniment.model.page import Claim

__all__ = ["LEAST_STOCK", "PrefetchBuffer", "stock_target"]

LEAST_STOCK = 100
"""Pages of a job that a slot has in stock, at least."""
_MOST_STOCK = 2_000
_AHEAD_S = 4.0
"""What is fetched in this time is kept in stock: an answer of the server may be slow."""


def stock_target(rate: float, out: int) -> int:
    """How many pages of a job to keep in stock at so many finished a second and so many at workers."""
    return int(min(_MOST_STOCK, max(LEAST_STOCK, rate * _AHEAD_S, out / 2)))


class PrefetchBuffer:
    """Pages by the number of their host, in the order in which they are to go out. Times are Unix ms."""

    def __init__(self) -> None:
        self._hosts: dict[int, deque[Claim]] = {}
        self._since: dict[int, int] = {}
        """Since when a host's pages are here and none of them was taken."""
        self._ids: set[int] = set()

    def add(self, claims: Iterable[Claim], now: int) -> None:
        """Put pages in that came from the server."""
        for claim in claims:
            self._queue(claim.host_id, now).append(claim)
            self._ids.add(claim.page_id)

    def put_back(self, claims: Iterable[Claim], now: int) -> None:
        """Put pages in that were out; they go first again."""
        for claim in reversed(list(claims)):
            self._queue(claim.host_id, now).appendleft(claim)
            self._ids.add(claim.page_id)

    @property
    def size(self) -> int:
        """How many there are."""
        return len(self._ids)

    def has(self, page_id: int) -> bool:
        """Whether a page is here."""
        return page_id in self._ids

    def _queue(self, host_id: int, now: int) -> deque[Claim]:
        if host_id not in self._hosts:
            self._hosts[host_id] = deque()
            self._since[host_id] = now
        return self._hosts[host_id]

    def has_host(self, host_id: int) -> bool:
        """Whether pages of a host are here."""
        return host_id in self._hosts

    def take(self, host_id: int, most: int, now: int, without: tuple[str, ...] = ()) -> list[Claim]:
        """Take pages of a host out, but for those whose URLs begin as one of `without`."""
        queue = self._hosts.get(host_id)
        if queue is None or most <= 0:
            return []
        if without:
            taken = [*islice((claim for claim in queue if not claim.url.startswith(without)), most)]
            gone = {claim.page_id for claim in taken}
            self._hosts[host_id] = deque(claim for claim in queue if claim.page_id not in gone)
        else:
            taken = [queue.popleft() for _ in range(min(most, len(queue)))]
        self._since[host_id] = now
        self._left(host_id, taken)
        return taken

    def shed(self, which: Callable[[Claim], bool]) -> list[Claim]:
        """Take out all pages of a kind."""
        out: list[Claim] = []
        for host_id in list(self._hosts):
            queue = self._hosts[host_id]
            going = [claim for claim in queue if which(claim)]
            if going:
                self._hosts[host_id] = deque(claim for claim in queue if not which(claim))
                out += going
                self._left(host_id, going)
        return out

    def shed_hosts(self, host_ids: Iterable[int]) -> list[Claim]:
        """Take out all pages of some hosts."""
        out: list[Claim] = []
        for host_id in host_ids:
            if (queue := self._hosts.get(host_id)) is not None:
                going = list(queue)
                out += going
                queue.clear()
                self._left(host_id, going)
        return out

    def idle_hosts(self, before: int) -> list[int]:
        """The hosts of which no page was taken since a moment."""
        return [host_id for host_id, since in self._since.items() if since < before]

    def _left(self, host_id: int, gone: list[Claim]) -> None:
        self._ids.difference_update([claim.page_id for claim in gone])
        if not self._hosts[host_id]:
            del self._hosts[host_id]
            del self._since[host_id]
