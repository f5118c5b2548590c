"""A server that answers on all loopback addresses, each of which is a host: many hosts with large answers."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any, Self, cast

import uvloop

__all__ = ["Answer", "AnyHost", "ok"]

Answer = Callable[[str, bytes], bytes]
"""What is sent for a path, given the whole request; without an end of its header block, nothing more comes."""
_FIRST = "127.32."


def ok(body: bytes, *fields: bytes) -> bytes:
    """An answer of 200 with a body and header fields."""
    head = b"\r\n".join((b"HTTP/1.1 200 OK", b"Content-Type: text/html", *fields, b"Content-Length: %d" % len(body)))
    return head + b"\r\n\r\n" + body


class AnyHost:
    """Answers while its `with` block lasts; robots.txt is missing unless `robots` has its answer."""

    def __init__(self, answer: Answer, robots: bytes = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n") -> None:
        self._answer, self._robots = answer, robots
        self._loop = uvloop.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._open: set[asyncio.Transport] = set()
        self._server: asyncio.Server | None = None
        self.port = 0

    def __enter__(self) -> Self:
        """Begin to answer."""
        self._thread.start()
        self.port = asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result(10)
        return self

    def __exit__(self, *_: object) -> None:
        """Let go of all connections, and stop."""
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    def urls(self, hosts: int, pages: int = 1) -> list[str]:
        """So many pages of so many hosts, host after host."""
        names = (f"{_FIRST}{number // 250}.{number % 250 + 1}" for number in range(hosts))
        return [f"http://{name}:{self.port}/{page}" for name in names for page in range(pages)]

    def respond(self, request: bytes) -> bytes:
        """What is sent for a request."""
        path = request.split(b" ", 2)[1].decode("latin-1")
        return self._robots if path == "/robots.txt" else self._answer(path, request)

    async def _listen(self) -> int:
        listening = self._loop.create_server(lambda: _Connection(self.respond, self._open), "0.0.0.0", 0, backlog=4096)
        self._server = cast("asyncio.Server", await listening)
        return int(self._server.sockets[0].getsockname()[1])

    async def _end(self) -> None:
        assert self._server is not None
        self._server.close()
        for transport in list(self._open):
            transport.abort()


class _Connection(asyncio.Protocol):
    def __init__(self, respond: Callable[[bytes], bytes], there: set[asyncio.Transport]) -> None:
        self._respond, self._there = respond, there
        self._asked = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: Any = cast("asyncio.Transport", transport)
        self._there.add(self._transport)

    def data_received(self, data: bytes) -> None:
        self._asked += data
        if self._asked.endswith(b"\r\n\r\n"):
            asked, self._asked = self._asked, b""
            self._transport.write(self._respond(asked))

    def connection_lost(self, exc: Exception | None) -> None:
        self._there.discard(self._transport)
