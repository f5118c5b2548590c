"""Requests of others, of any method and with a body: sent as they were written, and their answers handed on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from muniment.clock import monotonic, now_us
from muniment.fetch.body_spool import EMPTY_BODY
from muniment.fetch.connect import Connector
from muniment.fetch.connection import Connection
from muniment.fetch.exchanges import answered, failed, finished
from muniment.fetch.forwarding.followed import FollowedBody, FollowedReader, Follower
from muniment.fetch.forwarding.tunnel import Peer, Tunnel
from muniment.fetch.pool import ConnectionPool
from muniment.fetch.request import Requests, UnsupportedSchemeError
from muniment.model.exchange import Body, Exchange
from muniment.model.failure import Failure
from muniment.rules.hosts.politeness import THROTTLED

__all__ = ["Forwarded", "Forwarder"]

_SMALL = 256 << 10
"""Bytes of a body up to which a request is one piece."""
_CUT = "because its page has ended"


class Forwarded(Struct, frozen=True):
    """A request as its client wrote it."""

    url: str
    """Normalised."""
    method: str
    target: str
    version: str
    headers: tuple[tuple[str, str], ...]
    body: Body | None = None


class Forwarder:
    """Forwards requests over the connections of a client; `cut` ends those under way with what has come."""

    def __init__(
        self,
        requests: Requests,
        pool: ConnectionPool,
        connector: Connector,
        spool_dir: Path,
        max_body: int | None,
        throttled: Callable[[Exchange], None],
    ) -> None:
        self._requests, self._pool, self._connector = requests, pool, connector
        self._spool_dir, self._max_body = spool_dir, max_body
        self._throttled = throttled
        self._under_way: set[Connection] = set()
        self._tunnels: set[Tunnel] = set()

    async def send(self, asked: Forwarded, start: Callable[[], bool], follower: Follower) -> Exchange | None:
        """The exchange of a request; None when `start`, asked when a connection is there, says that none may go out.

        The caller closes the bodies of both.
        """
        begun = now_us(), monotonic()
        try:
            origin, _ = self._requests.split(asked.url)
        except UnsupportedSchemeError as error:
            return failed(asked.url, Failure("scheme", str(error)), begun, asked.method)
        head = self._requests.forward(origin, asked.method, asked.target, asked.version, asked.headers)
        connection = self._pool.take(origin) or await self._pool.acquire(origin)
        while not isinstance(connection, Failure):
            if not start():
                self._pool.release(connection)
                return None
            exchange = await self._exchange(connection, asked, head, follower)
            if exchange is not None:
                return exchange
            connection = await self._pool.acquire(origin, fresh=True)
        return failed(asked.url, connection, begun, asked.method)

    async def tunnel(self, asked: Forwarded, peer: Peer) -> Tunnel | Failure:
        """Send a request that asks for another protocol, over a connection of its own whose bytes go to `peer`."""
        try:
            origin, _ = self._requests.split(asked.url)
        except UnsupportedSchemeError as error:
            return Failure("scheme", str(error))
        tunnel = Tunnel(origin, peer)
        failure = await self._connector.open(tunnel)
        if failure is not None:
            tunnel.hang_up()
            return failure
        tunnel.receive(self._requests.forward(origin, asked.method, asked.target, asked.version, asked.headers))
        self._tunnels.add(tunnel)
        tunnel.closed = self._tunnels.discard
        return tunnel

    def cut(self) -> None:
        """End what is under way."""
        for connection in list(self._under_way):
            connection.overrun(_CUT)
        for tunnel in list(self._tunnels):
            tunnel.hang_up()

    async def _exchange(
        self, connection: Connection, asked: Forwarded, head: bytes, follower: Follower
    ) -> Exchange | None:
        kept = connection.served > 0
        builder = FollowedBody(self._spool_dir, follower)
        reader = FollowedReader(builder, follower, self._max_body, head_only=asked.method == "HEAD")
        body = asked.body
        large = body if body is not None and body.length > _SMALL else None
        request = head if body is None or large else b"".join((head, *body.wire()))
        at = now_us()
        self._under_way.add(connection)
        try:
            await _carry(connection, request, large, reader)
            if reader.head is not None and reader.head.status in THROTTLED:
                self._throttled(
                    answered(connection, reader.head, EMPTY_BODY, ("", None), (asked.url, request, at), asked.method)
                )
                while connection.busy:
                    await connection.more()
            if connection.dirty:
                connection.abort()
        except BaseException:
            connection.abandon()
            builder.discard()
            raise
        finally:
            self._under_way.discard(connection)
        failure = reader.failure
        if failure is not None and kept and not connection.answered_at and failure.code in ("cut", "reset"):
            builder.discard()
            return None
        exchange = finished(connection, builder, reader, (asked.url, request, at), asked.method, large)
        self._pool.release(connection)
        return exchange


async def _carry(connection: Connection, request: bytes, large: Body | None, reader: FollowedReader) -> None:
    """Send a request, its large body piece by piece, and receive the answer or the head of one that throttles."""
    ended = connection.exchange(request, reader)
    if large is None:
        await ended
        return
    upload = asyncio.get_running_loop().create_task(connection.upload(large.wire()))
    try:
        await ended
    finally:
        if not upload.done():
            # answered before it was asked: what is left of the request would be taken for another one
            upload.cancel()
            connection.dirty = True
        await asyncio.wait([upload])
    if not upload.cancelled() and (error := upload.exception()) is not None:
        raise error
