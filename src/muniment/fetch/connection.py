"""One connection to a server: carries one exchange at a time."""

from __future__ import annotations

import asyncio
import select
from collections.abc import Callable, Iterable
from typing import Protocol, cast

from muniment.clock import monotonic
from muniment.fetch.body_spool import PROCESS_USE
from muniment.fetch.request import ServerOrigin
from muniment.fetch.tls import session_names
from muniment.fetch.wire import End, ResponseReader
from muniment.rules.hosts.politeness import THROTTLED

__all__ = ["Connection", "ConnectionOwner"]

_PATIENCE = 5
"""Silences for which an answer may come as slowly as it likes."""
_SLOWEST = 100
"""Bytes a second, on average, that a body must bring after that; before its header block is complete, it has none."""
_READABLE = select.POLLIN | getattr(select, "POLLRDHUP", 0)


class ConnectionOwner(Protocol):
    """The owner of connections, which counts them."""

    def lost(self, connection: Connection) -> None:
        """The connection is closed."""


class Connection(asyncio.Protocol):
    """An open connection; `exchange` sends a request, and its future is done when the reader is.

    An answer that may take long is reported in parts: its header block by `exchange`, the rest by `more`.
    """

    __slots__ = (
        "_choked",
        "_loop",
        "_owner",
        "_poll",
        "_reader",
        "_transport",
        "_unasked",
        "_unread",
        "_waiter",
        "active_at",
        "answered_at",
        "cipher",
        "dirty",
        "disk_error",
        "ip",
        "origin",
        "paused",
        "sent_at",
        "served",
        "tls",
    )

    def __init__(self, owner: ConnectionOwner, origin: ServerOrigin) -> None:
        self._loop = asyncio.get_running_loop()
        self._owner = owner
        self._transport: asyncio.Transport | None = None
        self._reader: ResponseReader | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._poll: select.poll | None = None
        self._choked: asyncio.Future[None] | None = None
        """Done when the peer takes more of a request."""
        self._unasked = False
        self._unread = 0.0
        """Seconds of the present exchange in which what came was not read."""
        self.origin = origin
        self.ip = ""
        self.tls = ""
        self.cipher = ""
        self.dirty = False
        """Not to be used again: closed, closing, or unexpected bytes came."""
        self.served = 0
        """Exchanges so far, the present one included."""
        self.active_at = monotonic()
        """When something was last sent or received (monotonic seconds)."""
        self.sent_at = 0.0
        self.answered_at = 0.0
        """When the first byte of the present response came; 0 before."""
        self.disk_error: OSError | None = None
        self.paused = False
        """What comes is not read for now, because of this process's own memory: its silence says nothing."""

    @property
    def opened(self) -> bool:
        """The connection was made: its end is reported to the owner."""
        return self._transport is not None

    @property
    def busy(self) -> bool:
        """An exchange is under way."""
        return self._reader is not None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The transport is ready, the TLS handshake included."""
        # uvloop's transports do not derive from asyncio's.
        self._transport = cast("asyncio.Transport", transport)
        self.tls, self.cipher = session_names(transport)
        self._poll = select.poll()
        self._poll.register(transport.get_extra_info("socket").fileno(), _READABLE)

    def unmake(self) -> None:
        """Opening it was given up when it had just come to be: uvloop then closes its transport without a callback."""
        self.dirty, self._transport = True, None

    def quiet(self) -> bool:
        """Nothing waits to be read, so that what comes next answers what is sent next.

        The event loop may not have come round to bytes or an end that already arrived; to take them for the answer to
        the next request would archive them under a wrong URL.
        """
        if self.dirty or self._poll is None:
            return False
        return not self._poll.poll(0)

    def exchange(self, request: bytes, reader: ResponseReader) -> asyncio.Future[None]:
        """Send a request; the future is done when `reader` is, or when the response could not be kept."""
        assert self._transport is not None
        self._reader = reader
        self._waiter = waiter = self._loop.create_future()
        self.served += 1
        self.answered_at = self._unread = 0.0
        self.sent_at = self.active_at = monotonic()
        if self.dirty:
            # Closed between the handshake and now, or the server spoke first, which is no answer to anything.
            self._refuse(reader)
        else:
            self._transport.write(request)
        return waiter

    async def upload(self, pieces: Iterable[bytes | memoryview]) -> None:
        """Send the body of the request under way, no faster than the peer takes it. Raises OSError when it is gone."""
        for piece in pieces:
            if self.dirty or self._reader is None or self._transport is None:
                return
            self._transport.write(piece)
            self.active_at = monotonic()
            while self._choked is not None and not self.dirty:
                await self._choked

    def pause_writing(self) -> None:
        """The peer takes no more of the request for now."""
        self._choked = self._loop.create_future()

    def resume_writing(self) -> None:
        """The peer takes more of it."""
        choked, self._choked = self._choked, None
        if choked is not None and not choked.done():
            choked.set_result(None)

    def more(self) -> asyncio.Future[None]:
        """Done when more has come of an answer that asks for patience, or its end."""
        self._waiter = waiter = self._loop.create_future()
        return waiter

    def data_received(self, data: bytes) -> None:
        """Bytes came."""
        reader = self._reader
        if reader is None:
            self._unasked = True
            self.abort()
            return
        self.active_at = now = monotonic()
        if not self.answered_at:
            self.answered_at = now
        try:
            done = reader.feed(data)
        except OSError as error:
            self.disk_error = error
            done = True
        if done:
            self._finish(reader)
        elif reader.head is None:
            if reader.holds_much and PROCESS_USE.full:
                self._pause()
        elif reader.head.status in THROTTLED:
            self._told()

    def _pause(self) -> None:
        if not self.paused and self._transport is not None:
            self.paused = True
            self._transport.pause_reading()
            PROCESS_USE.when_room(self._resume)

    def _resume(self) -> None:
        self.paused = False
        now = monotonic()
        self._unread += now - self.active_at
        self.active_at = now
        if self._transport is not None and not self.dirty:
            self._transport.resume_reading()

    def eof_received(self) -> None:
        """The peer sent FIN; the transport closes itself after this."""
        self.dirty = True
        self._end("cut")

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is closed, by either side."""
        if self._transport is None:
            return
        self.dirty = True
        self.resume_writing()
        self._end("cut" if exc is None else "reset")
        self._owner.lost(self)

    def drips(self, now: float, silence: float) -> bool:
        """Whether the present answer comes so slowly that it is not meant to end; `silence` is the time-out."""
        reader = self._reader
        asked_for = now - self.sent_at - self._unread
        if reader is None or asked_for <= _PATIENCE * silence:
            return False
        return reader.body_length < asked_for * _SLOWEST

    def expire(self) -> None:
        """The peer was silent for too long, or as good as silent."""
        self.dirty = True
        self._end("time")
        self.abort()

    def overrun(self, why: str) -> None:
        """The present exchange has no more time: `why`."""
        self.dirty = True
        self._conclude(lambda reader: reader.overrun(why))
        self.abort()

    def abandon(self) -> None:
        """Nobody waits for the exchange any more."""
        self._reader = None
        self._waiter = None
        self.abort()

    def abort(self) -> None:
        """Close at once; `connection_lost` follows from the event loop."""
        self.dirty = True
        if self._transport is not None:
            self._transport.abort()

    def _refuse(self, reader: ResponseReader) -> None:
        if self._unasked:
            reader.fail("protocol", "the server sent bytes before it was asked")
        self._end("cut")

    def _end(self, why: End) -> None:
        self._conclude(lambda reader: reader.end(why))

    def _conclude(self, tell: Callable[[ResponseReader], None]) -> None:
        reader = self._reader
        if reader is None:
            return
        try:
            tell(reader)
        except OSError as error:
            self.disk_error = error
        self._finish(reader)

    def _finish(self, reader: ResponseReader) -> None:
        self._reader = None
        self.active_at = monotonic()
        if not reader.reusable:
            self.abort()
        self._told()

    def _told(self) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)
