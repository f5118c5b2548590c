"""Connections of clients: how many there may be, and how long one may be slow."""

from __future__ import annotations

import asyncio
from typing import Any

import h11
import msgspec
from uvicorn.protocols.http.h11_impl import H11Protocol

from muniment.web.refusals import ErrorAnswer, ErrorDetail

__all__ = ["MOST_CONNECTIONS", "BoundedConnection"]

MOST_CONNECTIONS = 4000
"""Of one server; each takes a file."""
_HEAD_S = 20.0
"""For the first request, and for the rest of a head that has begun."""
_READ_S = 30.0
"""For a client that does not read what it asked for."""
_PHRASES = {400: b"Bad Request", 503: b"Service Unavailable"}
_MOST_UNREAD = 256 << 20
"""Bytes of a body that nobody reads any more, since the answer has been sent."""


class BoundedConnection(H11Protocol):
    """A connection that ends when its client is too slow, and complains in the words of the API."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a connection, unless there are too many."""
        super().connection_made(transport)
        self._unread = 0
        self._writing: asyncio.TimerHandle | None = None
        self._reading: asyncio.TimerHandle | None = self.loop.call_later(_HEAD_S, self._give_up)
        if len(self.connections) > MOST_CONNECTIONS:
            self._refuse(503, "busy", "the server has too many connections; ask again in a moment")

    def data_received(self, data: bytes) -> None:
        """Take what came."""
        if self.transport.is_closing():
            return
        if self.conn.our_state is h11.DONE:
            self._unread += len(data)
            if self._unread > _MOST_UNREAD:
                self._give_up()
                return
        super().data_received(data)
        self._watch_head()

    def _watch_head(self) -> None:
        """A head that has begun is to end soon; the body after it has a time of its own."""
        begun = self.conn.their_state is h11.IDLE and bool(self.conn.trailing_data[0])
        if not begun:
            if self._reading is not None:
                self._reading.cancel()
                self._reading = None
        elif self._reading is None:
            self._reading = self.loop.call_later(_HEAD_S, self._give_up)

    def on_response_complete(self) -> None:
        """Have the connection wait for the next request."""
        super().on_response_complete()
        if self.conn.our_state is not h11.DONE:
            self._unread = 0
        self._watch_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget it."""
        for timer in filter(None, (self._reading, self._writing)):
            timer.cancel()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """The client reads more slowly than it is sent to."""
        super().pause_writing()
        self._writing = self._writing or self.loop.call_later(_READ_S, self._give_up)

    def resume_writing(self) -> None:
        """It has read."""
        super().resume_writing()
        if self._writing is not None:
            self._writing.cancel()
            self._writing = None

    def send_400_response(self, msg: str) -> None:
        """Answer what is not HTTP."""
        self._refuse(400, "bad-request", "this is not a request of HTTP/1.1")

    def _refuse(self, status: int, code: str, text: str) -> None:
        if self.conn.our_state not in {h11.IDLE, h11.SEND_RESPONSE}:
            self._give_up()
            return
        body = msgspec.json.encode(ErrorAnswer(ErrorDetail(code, text)))
        headers: list[tuple[bytes, bytes]] = [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(body)).encode()),
            (b"connection", b"close"),
            *([(b"retry-after", b"1")] if status == 503 else []),
        ]
        events: list[Any] = [
            h11.Response(status_code=status, headers=headers, reason=_PHRASES[status]),
            h11.Data(data=body),
            h11.EndOfMessage(),
        ]
        self.transport.write(b"".join(self.conn.send(event) or b"" for event in events))
        self.transport.close()

    def _give_up(self) -> None:
        self.transport.abort()
