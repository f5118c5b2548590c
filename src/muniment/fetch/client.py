"""The HTTP engine's face: a URL in, an exchange out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from muniment.clock import monotonic, now_us
from muniment.fetch.body_spool import EMPTY_BODY, PROCESS_USE, BodyBuilder
from muniment.fetch.config import FetchConfig
from muniment.fetch.connect import Connector
from muniment.fetch.connection import Connection
from muniment.fetch.exchanges import answered, failed, finished
from muniment.fetch.permits import Permits
from muniment.fetch.pool import ConnectionPool
from muniment.fetch.request import Requests, ServerOrigin, UnsupportedSchemeError
from muniment.fetch.wire import ResponseReader
from muniment.model.exchange import Exchange
from muniment.model.failure import Failure
from muniment.rules.hosts.politeness import THROTTLED

if TYPE_CHECKING:
    from muniment.fetch.forwarding.forward import Forwarder

__all__ = ["Client", "unreached"]


def _nothing(_host: str) -> None:
    return


def _always() -> bool:
    return True


def _unheard(_exchange: Exchange) -> None:
    return


class Client:
    """Fetches URLs over kept connections; must be made and used inside one running event loop, and closed there."""

    def __init__(self, config: FetchConfig, spool_dir: Path, closed: Callable[[str], None] = _nothing) -> None:
        """Large bodies go to unnamed files in `spool_dir`; `closed` gets the host of each connection that is closed.

        Raises UsageError for a proxy URL or a certificate file that cannot be used.
        """
        self.spool_dir = spool_dir
        """Where large bodies are kept meanwhile."""
        self._max_body = config.max_body
        self._requests = Requests(config)
        self._connector = Connector(config)
        self._throttled: Callable[[Exchange], None] = _unheard
        self.permits = Permits(config.per_host)
        """How many connections each host may have."""
        self._pool = ConnectionPool(
            self._connector,
            closed,
            self.permits,
            silence=config.timeout,
            longest=config.longest,
            idle=config.idle,
            most=config.most_open,
        )

    async def fetch(self, url: str, extra_headers: tuple[tuple[str, str], ...] = ()) -> Exchange:
        """One GET of a normalised URL; the network's faults are in the exchange's `failure`.

        The caller closes the exchange's body. Cancelled, it closes the connection.
        """
        exchange = await self.fetch_if(url, _always, extra_headers)
        assert exchange is not None
        return exchange

    async def fetch_if(
        self, url: str, start: Callable[[], bool], extra_headers: tuple[tuple[str, str], ...] = ()
    ) -> Exchange | None:
        """Like `fetch`, but asks `start` when a connection is there: without its consent nothing is sent (None)."""
        started = now_us(), monotonic()
        try:
            origin, target = self._requests.split(url)
        except UnsupportedSchemeError as error:
            return failed(url, Failure("scheme", str(error)), started)
        request = self._requests.build(origin, target, extra_headers)
        if not PROCESS_USE.crowded:
            return await self._ask(url, origin, request, start, started)
        await PROCESS_USE.turn()
        try:
            return await self._ask(url, origin, request, start, started)
        finally:
            PROCESS_USE.end_turn()

    async def _ask(
        self, url: str, origin: ServerOrigin, request: bytes, start: Callable[[], bool], started: tuple[int, float]
    ) -> Exchange | None:
        connection = self._pool.take(origin) or await self._pool.acquire(origin)
        while not isinstance(connection, Failure):
            if not start():
                self._pool.release(connection)
                return None
            exchange = await self._exchange(connection, url, request)
            if exchange is not None:
                return exchange
            # A kept connection had died (RFC 9112 §9.3.1): once more, on a new one, which cannot have.
            connection = await self._pool.acquire(origin, fresh=True)
        return failed(url, connection, started)

    def forwarder(self) -> Forwarder:
        """Forwards the requests of others over the same connections."""
        from muniment.fetch.forwarding.forward import Forwarder  # noqa: PLC0415  (no crawl without it pays for it)

        return Forwarder(self._requests, self._pool, self._connector, self.spool_dir, self._max_body, self._throttled)

    def when_throttled(self, told: Callable[[Exchange], None]) -> None:
        """From now on `told` gets every answer of 429 or 503 when its header block is complete, without its body.

        A body can take its time, and the host is to be left alone at once.
        """
        self._throttled = told

    def when_found(self, told: Callable[[str, tuple[str, ...]], None]) -> None:
        """From now on `told` gets each of the config's `late_names` that is found first here, and its classes."""
        self._connector.resolver.told = told

    def allow(self, name: str, classes: tuple[str, ...]) -> None:
        """Addresses of these classes may be reached too: one of the `late_names` was found elsewhere."""
        self._connector.resolver.allow(name, classes)

    def set_timeouts(self, connect: float, silence: float, longest: float) -> None:
        """Other time-outs (seconds) from now on; what is under way is measured by them too."""
        self._connector.set_timeout(connect)
        self._pool.silence, self._pool.longest = silence, longest

    def open_connections(self, host: str) -> int:
        """Connections to a host that are open, idle ones and half-open ones included."""
        entry = self.permits.get(host)
        return entry.open if entry else 0

    def reaches(self, host: str) -> bool:
        """Whether a connection to a host is there already; those that are being opened do not count."""
        entry = self.permits.get(host)
        return entry is not None and entry.open > entry.opening

    async def close(self) -> None:
        """Close every connection; fetches under way end with a failure or are cancelled."""
        await self._pool.close()
        await self._connector.close()

    async def _exchange(self, connection: Connection, url: str, request: bytes) -> Exchange | None:
        """Send and receive; None when a kept connection died before its answer began."""
        kept = connection.served > 0
        builder = BodyBuilder(self.spool_dir)
        reader = ResponseReader(builder, self._max_body)
        asked = url, request, now_us()
        try:
            await connection.exchange(request, reader)
            if reader.head is not None and reader.head.status in THROTTLED:
                self._throttled(answered(connection, reader.head, EMPTY_BODY, ("", None), asked))
                while connection.busy:
                    await connection.more()
        except BaseException:
            connection.abandon()
            builder.discard()
            raise
        failure = reader.failure
        if failure is not None and kept and not connection.answered_at and failure.code in ("cut", "reset"):
            return None
        exchange = finished(connection, builder, reader, asked)
        self._pool.release(connection)
        return exchange


def unreached(url: str, failure: Failure) -> Exchange:
    """The exchange of a URL for which no request went out, now."""
    return failed(url, failure, (now_us(), monotonic()))
