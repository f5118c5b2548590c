"""The connections that are open, each by a permit of its host."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from muniment.clock import monotonic
from muniment.fetch.body_spool import PROCESS_USE
from muniment.fetch.connection import Connection
from muniment.fetch.permits import HostPermits, Permits, Waiter
from muniment.fetch.request import ServerOrigin
from muniment.model.failure import Failure

__all__ = ["SWEEP", "ConnectionPool", "Opener"]

SWEEP = 0.25
"""Seconds between two looks at the silence and the age of all exchanges; no request has a timer of its own."""

_MOST_IDLE = 500
"""Connections over all hosts that are kept for the next request: each takes some 10 KB of memory."""


class Opener(Protocol):
    """Opens connections."""

    async def open(self, connection: Connection) -> Failure | None:
        """Connect `connection`, or say why not."""


class ConnectionPool:
    """Keeps at most a host's limit of connections open, counting from the first step of opening to the close."""

    def __init__(
        self,
        opener: Opener,
        closed: Callable[[str], None],
        permits: Permits,
        *,
        silence: float,
        longest: float,
        idle: float,
        most: int,
    ) -> None:
        self._opener = opener
        self._closed = closed
        self.silence = silence
        """Seconds after which a busy connection is given up."""
        self.longest = longest
        """Seconds from its request after which an exchange is ended, however much still comes."""
        self._idle = idle
        self._most = most
        self._hosts = permits
        self._connections: set[Connection] = set()
        self._sweeper: asyncio.TimerHandle | None = None
        self._closing = False
        self._emptied: asyncio.Future[None] | None = None

    def take(self, origin: ServerOrigin) -> Connection | None:
        """A kept connection of this origin that is fit to use, if there is one at once."""
        host = self._hosts.get(origin.host)
        if host is None or not host.idle:
            return None
        for at in range(len(host.idle) - 1, -1, -1):
            connection = host.idle[at]
            if connection.origin.key == origin.key:
                del host.idle[at]
                if connection.quiet():
                    return connection
                connection.abort()
        return None

    async def acquire(self, origin: ServerOrigin, *, fresh: bool = False) -> Connection | Failure:
        """A connection, waiting for one as long as the host's limit demands; `fresh`: one never used before."""
        host = self._hosts[origin.host]
        if host.open < host.limit and not host.waiters:
            host.open += 1
        else:
            connection = await self._wait(host, origin, fresh=fresh)
            if connection is not None:
                return connection
        return await self._open(host, origin)

    def release(self, connection: Connection) -> None:
        """An exchange is over: hand the connection on, keep it, or let it go."""
        if connection.dirty:
            return
        host = self._hosts[connection.origin.host]
        while host.waiters and host.waiters[0].ready.done():
            host.waiters.popleft()
        if host.open > host.limit or self._closing:
            connection.abort()
        elif not host.waiters:
            host.idle.append(connection)
        else:
            first = host.waiters[0]
            if first.fresh or first.origin.key != connection.origin.key or not connection.quiet():
                connection.abort()
            else:
                host.waiters.popleft().ready.set_result(connection)

    def lost(self, connection: Connection) -> None:
        """A connection is closed (called by the connection)."""
        self._connections.discard(connection)
        host = self._hosts[connection.origin.host]
        if connection in host.idle:
            host.idle.remove(connection)
        self._give_back(host)

    async def close(self) -> None:
        """Close every connection and wait until they are."""
        self._closing = True
        if self._sweeper:
            self._sweeper.cancel()
        for host in self._hosts.values():
            for waiter in host.waiters:
                waiter.ready.cancel()
        for connection in list(self._connections):
            connection.abort()
        if self._connections:
            self._emptied = asyncio.get_running_loop().create_future()
            await self._emptied

    async def _wait(self, host: HostPermits, origin: ServerOrigin, *, fresh: bool) -> Connection | None:
        """Wait for a connection, or for room (None; it is then already counted)."""
        waiter = Waiter(origin, asyncio.get_running_loop().create_future(), fresh=fresh)
        host.waiters.append(waiter)
        host.serve()
        try:
            return await waiter.ready
        except asyncio.CancelledError:
            if waiter.ready.done() and not waiter.ready.cancelled():
                connection = waiter.ready.result()
                if connection is None:
                    self._give_back(host)
                else:
                    self.release(connection)
            raise

    async def _open(self, host: HostPermits, origin: ServerOrigin) -> Connection | Failure:
        connection = Connection(self, origin)
        failure = None
        host.opening += 1
        try:
            failure = await self._opener.open(connection)
        except BaseException:
            failure = Failure("cut", "given up")
            raise
        finally:
            host.opening -= 1
            if connection.opened and not connection.dirty:
                self._connections.add(connection)
            if failure or self._closing:
                connection.abort()
                if not connection.opened:
                    self._give_back(host)
        if failure:
            return failure
        self._sweep_later()
        return connection

    def _give_back(self, host: HostPermits) -> None:
        host.open -= 1
        host.serve()
        self._closed(host.name)
        self._hosts.tidy(host)
        if self._emptied and not self._connections and not self._emptied.done():
            self._emptied.set_result(None)

    def _sweep_later(self) -> None:
        if self._sweeper is None and not self._closing:
            self._sweeper = asyncio.get_running_loop().call_later(SWEEP, self._sweep)

    def _sweep(self) -> None:
        self._sweeper = None
        now = monotonic()
        for connection in list(self._connections):
            quiet_for = now - connection.active_at
            if connection.busy:
                if now - connection.sent_at > self.longest:
                    connection.overrun(f"after {self.longest:.10g} s (--max-fetch-time)")
                elif connection.paused:
                    continue
                elif quiet_for > self.silence or connection.drips(now, self.silence):
                    connection.expire()
            elif quiet_for > self._idle:
                connection.abort()
        self._spare()
        PROCESS_USE.resume_some()
        if self._connections:
            self._sweep_later()

    def _spare(self) -> None:
        """Close the kept connections that were idle longest while there are more of all, or of them, than should be."""
        idle = [one for one in self._connections if not one.busy]
        surplus = max(len(self._connections) - self._most, len(idle) - _MOST_IDLE)
        if surplus > 0:
            idle.sort(key=lambda one: one.active_at)
            for connection in idle[:surplus]:
                connection.abort()
