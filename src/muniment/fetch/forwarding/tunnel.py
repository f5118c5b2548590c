"""A connection to a server whose bytes are passed on as they are: that of a websocket."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol, cast

from muniment.fetch.request import ServerOrigin

__all__ = ["Peer", "Tunnel"]


class Peer(Protocol):
    """The other end."""

    def receive(self, data: bytes) -> None:
        """Bytes from the server."""

    def hang_up(self) -> None:
        """The server has closed."""

    def pause(self) -> None:
        """The server takes nothing for now."""

    def resume(self) -> None:
        """It does again."""


class Tunnel(asyncio.Protocol):
    """The server's end: what it sends goes to its peer, and what it receives to the server."""

    def __init__(self, origin: ServerOrigin, peer: Peer) -> None:
        self.origin, self.ip = origin, ""
        self.closed: Callable[[Tunnel], None] = lambda _tunnel: None
        self._peer = peer
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The server is reached."""
        self._transport = cast("asyncio.Transport", transport)

    def unmake(self) -> None:
        """Opening it was given up when it had just come to be."""
        self._transport = None

    def data_received(self, data: bytes) -> None:
        """Bytes of the server."""
        self._peer.receive(data)

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is closed, by either side."""
        if self._transport is not None:
            self._transport = None
            self.closed(self)
            self._peer.hang_up()

    def pause_writing(self) -> None:
        """The server takes nothing for now."""
        self._peer.pause()

    def resume_writing(self) -> None:
        """It does again."""
        self._peer.resume()

    def receive(self, data: bytes) -> None:
        """Send bytes to the server."""
        if self._transport is not None:
            self._transport.write(data)

    def hang_up(self) -> None:
        """Close it."""
        if self._transport is not None:
            self._transport.close()

    def pause(self) -> None:
        """Read nothing for now."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.pause_reading()

    def resume(self) -> None:
        """Read on."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()
