"""A port of a page: listens on the loopback, and has each request that comes answered under the page.

When a page has ended, another may have its port.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable

from msgspec import structs

from muniment.clock import monotonic
from muniment.model.exchange import RequestOutcome
from muniment.proxy.answerer import Answerer, Headers, ProxyRequest, RequestBody
from muniment.proxy.authority import CertificateAuthority
from muniment.proxy.client_answer import ClientAnswer
from muniment.proxy.client_connection import ClientConnection
from muniment.proxy.events import PageOwner, ProxyEvent, RequestAnswered, RequestBegun, RequestEnded, RequestHeld
from muniment.proxy.peers import peer_uid
from muniment.proxy.request_reader import ReadRequest

__all__ = ["PagePort"]

_MOST_REQUESTS = 10_000
"""Requests of one page, above which they are refused."""
_CUT_S = 5.0
"""Seconds in which an exchange that is cut ends."""
_LOOPBACK = "127.0.0.1"


class PagePort:
    """The port of one page at a time, until `close`."""

    def __init__(
        self,
        owner: PageOwner,
        answerer: Answerer,
        authority: CertificateAuthority,
        make_body: Callable[[], RequestBody],
        notify: Callable[[ProxyEvent], None],
    ) -> None:
        self.owner, self.authority = owner, authority
        self.make_body = make_body
        self.closed: Callable[[PagePort], None] = lambda _port: None
        self._answerer, self._notify = answerer, notify
        self._server: asyncio.Server | None = None
        self._resting = False
        """Its page has ended, and there is no other one."""
        self._connections: set[ClientConnection] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._count = 0
        self.most_requests = _MOST_REQUESTS
        """How many are answered."""
        self.in_flight = 0
        """Requests that were begun and have not ended."""
        self.port = 0

    @property
    def address(self) -> str:
        """Where clients find it, as `127.0.0.1:PORT`."""
        return f"{_LOOPBACK}:{self.port}"

    async def listen(self) -> None:
        """Take clients from now on. Raises OSError when there is no port left."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: ClientConnection(self), _LOOPBACK, 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def close(self, grace_s: float = 5.0) -> None:
        """Take no more requests; what is in flight has so many seconds, and is cut then."""
        server, self._server = self._server, None
        if server is not None:
            server.close()
        await self.rest(grace_s)
        for connection in list(self._connections):
            connection.abort()
        self.closed(self)

    @property
    def requests(self) -> int:
        """How many came so far."""
        return self._count

    async def answered(self, timeout_s: float) -> None:
        """Wait until the requests that came so far are answered, but not for longer."""
        if self._tasks:
            await asyncio.wait(set(self._tasks), timeout=timeout_s)

    async def rest(self, grace_s: float) -> None:
        """The same, but connections without a request stay open, for the next page."""
        self._resting = True
        if self._tasks and grace_s:
            await asyncio.wait(self._tasks, timeout=grace_s)
        self._answerer.cut()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=_CUT_S)
        for task in list(self._tasks):
            task.cancel()
        for connection in list(self._connections):
            if connection.in_use:
                connection.abort()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=_CUT_S)

    def pass_on(self, owner: PageOwner, answerer: Answerer, notify: Callable[[ProxyEvent], None]) -> None:
        """Serve another page from now on."""
        self.owner, self._answerer, self._notify = owner, answerer, notify
        self._count, self._resting = 0, False

    # -- what connections say

    def opened(self, connection: ClientConnection) -> bool:
        """A client has connected; only those of this user may."""
        self._connections.add(connection)
        return self._server is not None and peer_uid(connection.peer, (_LOOPBACK, self.port)) == os.getuid()

    def lost(self, connection: ClientConnection) -> None:
        """It is gone."""
        self._connections.discard(connection)

    def asked(self, connection: ClientConnection, url: str, target: str, request: ReadRequest) -> None:
        """A client has sent a request."""
        head, answer = request.head, connection.answer
        if answer is None:
            return
        self._count += 1
        asked = ProxyRequest(
            number=self._count,
            method=head.method,
            url=url,
            target=target,
            version=head.version,
            headers=_end_to_end(head.headers),
            body=request.body,
            upgrade=head.says("connection", "upgrade") and head.says("upgrade", "websocket"),
        )
        task = asyncio.get_running_loop().create_task(self._answer(connection, answer, asked))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _answer(self, connection: ClientConnection, answer: ClientAnswer, request: ProxyRequest) -> None:
        begun, notify = monotonic(), self._notify
        answer.begun = lambda streamed: notify(RequestAnswered(request.number, streamed))
        answer.held = lambda held: notify(RequestHeld(request.number, held))
        self.in_flight += 1
        notify(RequestBegun(request.number, request.method, request.url))
        answered = RequestOutcome(error="cut: the page has ended")
        try:
            answered = await self._outcome(connection, answer, request)
        finally:
            self.in_flight -= 1
            answer.end(whole=not answered.error)
            took = int((monotonic() - begun) * 1000 + 0.5)
            notify(_ended(request, answered, took))

    async def _outcome(
        self, connection: ClientConnection, answer: ClientAnswer, request: ProxyRequest
    ) -> RequestOutcome:
        if self._resting or request.number > self.most_requests:
            text = "the page has ended" if self._resting else f"over {self.most_requests} requests of a page"
            answer.refuse(403, "limit", text)
            if request.body is not None:
                request.body.close()
            return RequestOutcome(error=f"limit: {text}", refused="limit")
        if not request.upgrade:
            return await self._answerer.answer(request, answer)
        peer = await self._answerer.tunnel(request, connection)
        if isinstance(peer, RequestOutcome):
            answer.refuse(403 if peer.refused else 502, "", peer.error)
            return peer
        connection.join(peer)
        return RequestOutcome(status=101, type="websocket", streamed=True)


def _end_to_end(headers: Headers) -> Headers:
    return tuple([pair for pair in headers if not pair[0].lower().startswith("proxy-")])


def _ended(request: ProxyRequest, answered: RequestOutcome, took: int) -> RequestEnded:
    fields = structs.asdict(answered)
    return RequestEnded(number=request.number, method=request.method, url=request.url, duration_ms=took, **fields)
