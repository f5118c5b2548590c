"""Opening a connection: name, address policy, TCP (RFC 8305), proxy, TLS."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Protocol, cast

import aiohappyeyeballs

from muniment.fetch.config import FetchConfig
from muniment.fetch.dns import Resolver
from muniment.fetch.faults import connect_failure
from muniment.fetch.request import ServerOrigin
from muniment.fetch.tls import make_context
from muniment.model.failure import Failure
from muniment.rules.proxies import proxy_for

if TYPE_CHECKING:
    from muniment.fetch.proxy import ProxyDialer

__all__ = ["Connector", "dial"]

_NEXT_ADDRESS = 0.25
"""Seconds before the next address is tried beside one that does not answer (RFC 8305 §5)."""


async def dial(addresses: tuple[str, ...], port: int) -> socket.socket:
    """A connected TCP socket to the first of the addresses that answers; raises OSError."""
    infos = [
        (
            socket.AF_INET6 if ":" in address else socket.AF_INET,
            socket.SOCK_STREAM,
            socket.IPPROTO_TCP,
            "",
            (address, port, 0, 0) if ":" in address else (address, port),
        )
        for address in addresses
    ]
    sock = await aiohappyeyeballs.start_connection(infos, happy_eyeballs_delay=_NEXT_ADDRESS)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


class Dialled(Protocol):
    """What becomes the end of a new connection: a `Connection`, or a tunnel."""

    origin: ServerOrigin
    ip: str

    def unmake(self) -> None:
        """Opening it was given up when it had just come to be."""


class Connector:
    """Opens connections as configured; implements `pool.Opener`."""

    def __init__(self, config: FetchConfig) -> None:
        self._timeout = config.connect_timeout
        self._opening: dict[asyncio.Timeout, float] = {}
        """The limits of what is being opened, and when each began."""
        self.resolver = Resolver(config.allowed_classes, config.nameservers, config.dns_timeout, config.late_names)
        self._insecure = config.insecure
        self._ca_file = config.ca_file
        # Loading the system's certificates takes longer than many requests: done when first needed, unless the file
        # was named by a person, who wants to know at once that it cannot be read.
        self._context = self._make_context() if config.ca_file else None
        self._proxies = config.proxies
        urls = {rule.url for rule in config.proxies if rule.url}
        self._dialers = _dialers(urls, self.resolver) if urls else {}

    async def open(self, connection: Dialled) -> Failure | None:
        """Connect `connection` to its origin; says why when that fails."""
        origin = connection.origin
        addresses: tuple[str, ...] = ()
        proxy = self._dialers.get(proxy_for(self._proxies, origin.host))
        if proxy is None:
            found = await self.resolver.resolve(origin.host)
            if isinstance(found, Failure):
                return found
            addresses = found
        try:
            async with asyncio.timeout(self._timeout) as limit:
                self._opening[limit] = asyncio.get_running_loop().time()
                try:
                    return await self._reach(connection, addresses, proxy)
                finally:
                    del self._opening[limit]
        except (OSError, UnicodeError, RuntimeError) as error:
            return connect_failure(error)

    def set_timeout(self, seconds: float) -> None:
        """Allow so many seconds for opening, for what is being opened too."""
        self._timeout = seconds
        for limit, began in self._opening.items():
            if not limit.expired():
                limit.reschedule(began + seconds)

    async def _reach(
        self, connection: Dialled, addresses: tuple[str, ...], proxy: ProxyDialer | None
    ) -> Failure | None:
        origin = connection.origin
        if proxy is not None:
            tunnel = await proxy.dial(origin.host, origin.port)
            if isinstance(tunnel, Failure):
                return tunnel
            await self._attach(connection, tunnel)
        elif len(addresses) == 1:
            # by the loop alone: half the time of a socket that is connected first and handed over then
            connection.ip = addresses[0]
            await self._make(connection, host=addresses[0], port=origin.port)
        else:
            sock = await dial(addresses, origin.port)
            connection.ip = sock.getpeername()[0]
            await self._attach(connection, sock)
        return None

    async def close(self) -> None:
        """End the name queries."""
        await self.resolver.close()

    def _make_context(self) -> ssl.SSLContext:
        return make_context(insecure=self._insecure, ca_file=self._ca_file)

    async def _attach(self, connection: Dialled, sock: socket.socket) -> None:
        """Hand a connected socket to the event loop."""
        try:
            await self._make(connection, sock=sock)
        except BaseException:
            sock.close()
            raise

    async def _make(self, connection: Dialled, **peer: Any) -> None:
        """A transport to `peer`, which is a socket or host and port, through TLS where the origin wants it."""
        try:
            await asyncio.get_running_loop().create_connection(
                lambda: cast("asyncio.Protocol", connection),
                **peer,
                **self._tls(connection.origin) if connection.origin.secure else {},
            )
        except BaseException:
            connection.unmake()
            raise

    def _tls(self, origin: ServerOrigin) -> dict[str, Any]:
        if self._context is None:
            self._context = self._make_context()
        return {
            "ssl": self._context,
            "server_hostname": origin.host.removeprefix("[").removesuffix("]").rstrip("."),
            "ssl_handshake_timeout": self._timeout + 1,
            "ssl_shutdown_timeout": 1.0,
        }


def _dialers(urls: Iterable[str], resolver: Resolver) -> dict[str, ProxyDialer]:
    from muniment.fetch.proxy import ProxyDialer  # noqa: PLC0415  (few have a proxy, and its library is long to load)

    return {url: ProxyDialer(url, resolver) for url in urls}
