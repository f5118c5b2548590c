"""One side of the socket between a worker and the orchestrator."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from itertools import count
from typing import Any, TypeVar, cast

from msgspec import Struct, structs

from muniment.crawl.frames import Frames, encode
from muniment.crawl.protocol import FromWorker, Question, Reply

__all__ = ["Channel"]

R = TypeVar("R", bound=Reply)
_MOST_WAITING = 1 << 20
"""Bytes that wait for the other side to read them, above which `drained` waits."""


class Channel(asyncio.Protocol):
    """Passes each whole message to `received`, in order; calls `lost` once when the other side is gone.

    A reply goes to its asker instead.
    """

    def __init__(self, kind: Any, received: Callable[[Any], None], lost: Callable[[], None]) -> None:
        """For messages of one kind."""
        self._frames: Frames[Any] = Frames(kind)
        self._received, self._lost = received, lost
        self._transport: asyncio.Transport | None = None
        self._drained = asyncio.Event()
        self._drained.set()
        self._numbers = count(1)
        self._asked: dict[int, asyncio.Future[Any]] = {}

    async def open(self, sock: socket.socket) -> None:
        """Begin on a connected socket; what the other side has sent already is received before this returns."""
        sock.setblocking(False)
        await asyncio.get_running_loop().create_unix_connection(lambda: self, sock=sock)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport (asyncio.Protocol)."""
        self._transport = cast("asyncio.Transport", transport)
        self._transport.set_write_buffer_limits(_MOST_WAITING)

    def pause_writing(self) -> None:
        """The other side is slow to read (asyncio.Protocol)."""
        self._drained.clear()

    def resume_writing(self) -> None:
        """It has read most of it (asyncio.Protocol)."""
        self._drained.set()

    async def drained(self) -> None:
        """Wait while megabytes of sent messages are unread."""
        await self._drained.wait()

    def data_received(self, data: bytes) -> None:
        """Take in bytes (asyncio.Protocol)."""
        for message in self._frames.feed(data):
            if isinstance(message, Reply):
                self._replied(message)
            else:
                self._received(message)

    def _replied(self, reply: Reply) -> None:
        asked = self._asked.pop(reply.number, None)
        # the asker may have given up meanwhile
        if asked is not None and not asked.done():
            asked.set_result(reply)

    def connection_lost(self, exc: Exception | None) -> None:
        """Notify the owner (asyncio.Protocol)."""
        self._transport = None
        self._drained.set()
        for asked in self._asked.values():
            asked.cancel()
        self._asked.clear()
        self._lost()

    def send(self, message: Struct) -> None:
        """Send a message; to a side that is gone this does nothing, because `lost` reports that."""
        if self._transport is not None:
            self._transport.write(encode(message))

    def ask(self, question: Question[R]) -> asyncio.Future[R]:
        """Send a question; returns its reply, which is cancelled when the other side is gone."""
        number = next(self._numbers)
        reply = self._asked[number] = asyncio.get_running_loop().create_future()
        self.send(cast("FromWorker", structs.replace(question, number=number)))
        return reply

    @property
    def is_lost(self) -> bool:
        """Whether the other side is gone."""
        return self._transport is None

    def close(self) -> None:
        """Close after everything sent is out."""
        if self._transport is not None:
            self._transport.close()
