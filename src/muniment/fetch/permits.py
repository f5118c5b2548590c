"""Permits: how many connections to each host may be open. A permit is a connection, kept idle ones count.

They are kept here alone. The pool opens and closes connections by them; whoever decides on a host grants them, and
asks here what it has granted.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from muniment.fetch.connection import Connection
    from muniment.fetch.request import ServerOrigin

__all__ = ["HostPermits", "Permits", "Waiter"]


class Waiter:
    """A request that waits for a connection of its origin, or (with `fresh` always) for room to open one."""

    __slots__ = ("fresh", "origin", "ready")

    def __init__(self, origin: ServerOrigin, ready: asyncio.Future[Connection | None], *, fresh: bool) -> None:
        self.origin = origin
        self.ready = ready
        self.fresh = fresh


class HostPermits:
    """The permits of one host, the connections that are open by them, and the requests that wait for one."""

    __slots__ = ("decided", "granted", "guests", "idle", "limit", "name", "open", "opening", "waiters")

    def __init__(self, name: str, limit: int) -> None:
        self.name = name
        self.limit = limit
        """Connections that may be open now."""
        self.decided = False
        """Somebody decides on the host; until then it has the default limit."""
        self.granted = 0
        self.guests = 0
        """Requests that may go out without a permit: all of them together have one connection."""
        self.open = self.opening = 0
        """Connections that are open, being opened or being closed, and those of them that are being opened."""
        self.idle: list[Connection] = []
        self.waiters: deque[Waiter] = deque()

    def grant(self, permits: int) -> None:
        """Allow so many connections; lowered, idle ones are closed first and busy ones when they are done."""
        if permits != self.granted or not self.decided:
            self.granted, self.decided = permits, True
            self._settle()

    def enter(self) -> None:
        """A request that needs no permit begins to wait for its turn."""
        self.guests += 1
        self._settle()

    def leave(self) -> None:
        """Such a request has ended; after the last of them, what it had opened without a permit is closed."""
        self.guests -= 1
        self._settle()

    def close_idle(self) -> None:
        """Close the connections that are kept for the next request."""
        while self.idle:
            self.idle.pop().abort()

    def serve(self) -> None:
        """Give room to those who wait; where idle connections take it, close one."""
        waiters = self.waiters
        while waiters and (waiters[0].ready.done() or self.open < self.limit):
            waiter = waiters.popleft()
            if not waiter.ready.done():
                self.open += 1
                waiter.ready.set_result(None)
        if waiters and self.idle and self.open <= self.limit:
            self.idle.pop(0).abort()

    def _settle(self) -> None:
        self.limit = self.granted or min(1, self.guests)
        surplus = self.open - self.limit
        while surplus > 0 and self.idle:
            self.idle.pop(0).abort()
            surplus -= 1
        self.serve()


class Permits(dict[str, HostPermits]):
    """The permits of each host by its name, as in the URL, without port."""

    def __init__(self, default: int) -> None:
        """Hosts on which nobody decides have the default."""
        super().__init__()
        self._default = default

    def __missing__(self, name: str) -> HostPermits:
        host = self[name] = HostPermits(name, self._default)
        return host

    def drop(self, name: str) -> None:
        """Nobody decides on a host any more; what is open stays."""
        host = self.get(name)
        if host is not None:
            host.decided, host.granted, host.limit = False, 0, self._default
            host.serve()
            self.tidy(host)

    def tidy(self, host: HostPermits) -> None:
        """Forget a host that has nothing to do: a long crawl meets millions of them."""
        if not (host.decided or host.open or host.waiters) and self.get(host.name) is host:
            del self[host.name]
