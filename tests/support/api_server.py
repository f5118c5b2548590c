"""A server in a thread of the tests' own process, with a token for each scope, and raw requests to it."""

from __future__ import annotations

import asyncio
import http.client
import json
import socket
import threading
from collections.abc import Coroutine, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Self, TypeVar

from muniment.app.serve import ServedTracker, ServeOrder
from muniment.clock import now_ms
from muniment.model.network.scopes import TokenScope
from muniment.model.pipeline import Pipeline
from muniment.model.place import TrackerPlace
from muniment.tracker.connect import tracker_at
from muniment.tracker.fleet.pipelines import add_pipeline
from muniment.tracker.fleet.tokens import add_token
from muniment.web.serving import TrackerServer
from muniment.web.state import ServerState

__all__ = ["Answer", "ApiServer", "call", "raw"]

_PATIENCE_S = 120
_Done = TypeVar("_Done")


@dataclass(frozen=True)
class Answer:
    """An answer of a server."""

    status: int
    value: Any
    headers: Mapping[str, str]

    @property
    def code(self) -> str:
        """The code of an error."""
        return str(self.value["error"]["code"])


def call(
    url: str,
    method: str,
    path: str,
    body: Any = None,
    token: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> Answer:
    """Send a request; `body` is a value for JSON, or bytes as they are."""
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=_PATIENCE_S)
    try:
        given = {"Authorization": f"Bearer {token}"} if token is not None else {}
        sent = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        kind = {} if sent is None else {"Content-Type": "application/json"}
        connection.request(method, path, sent, {**kind, **given, **(headers or {})})
        response = connection.getresponse()
        text = response.read()
        return Answer(
            response.status,
            json.loads(text) if response.getheader("Content-Type") == "application/json" else text.decode() or None,
            {name.lower(): value for name, value in response.getheaders()},
        )
    finally:
        connection.close()


def raw(address: tuple[str, int], sent: bytes, *, most_s: float = _PATIENCE_S) -> bytes:
    """Send bytes; what comes back until the server closes, or until a whole answer is there."""
    with socket.create_connection(address, most_s) as connection:
        connection.sendall(sent)
        got = b""
        while part := connection.recv(1 << 16):
            got += part
            head, _, body = got.partition(b"\r\n\r\n")
            lengths = [line.split()[1] for line in head.splitlines() if line.lower().startswith(b"content-length:")]
            if lengths and len(body) >= int(lengths[0]):
                break
        return got


class ApiServer:
    """A server of a tracker; `tokens` has one for each scope, and that of the pipeline `p1`."""

    def __init__(self, place: TrackerPlace, *, lease_s: float = 60.0, allow_private: bool = False) -> None:
        self.place, self._lease_s, self._private = place, lease_s, allow_private
        self.tokens: dict[str, str] = {}

    def make_tokens(self, again: Mapping[str, str] | None = None) -> Self:
        """Make its tokens, or take those of another server of the same tracker."""
        if again is not None:
            self.tokens = dict(again)
            return self
        with tracker_at(self.place) as db:
            self.tokens = {scope.value: add_token(db, scope.value, [scope], None, now_ms()) for scope in TokenScope}
            self.tokens["pipeline"] = add_pipeline(db, Pipeline("p1"), now_ms())
        return self

    def __enter__(self) -> Self:
        listener = socket.create_server(("127.0.0.1", 0))
        order = ServeOrder(
            host="127.0.0.1", port=0, state=None, database=None, lease_s=self._lease_s, allow_private=self._private
        )
        self.address = listener.getsockname()
        self.url = f"http://127.0.0.1:{self.address[1]}"
        begun = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(ServedTracker(order, self.place, listener), begun))
        self._thread.start()
        assert begun.wait(_PATIENCE_S)
        return self

    def _run(self, tracker: ServedTracker, begun: threading.Event) -> None:
        async def serve() -> None:
            self.loop = asyncio.get_running_loop()
            self.state = ServerState(tracker)
            self._server = TrackerServer(self.state, begun.set)
            await self._server.run_to_the_end()

        asyncio.run(serve())

    def __exit__(self, *_: object) -> None:
        self.loop.call_soon_threadsafe(self._server.stop)
        self._thread.join(_PATIENCE_S)
        assert not self._thread.is_alive()

    def call(self, method: str, path: str, body: Any = None, who: str | None = "admin", **headers: str) -> Answer:
        """Send a request with one of its tokens, or none."""
        given = {name.replace("_", "-"): text for name, text in headers.items()}
        return call(self.url, method, path, body, None if who is None else self.tokens[who], given)

    def submit(self, work: Coroutine[Any, Any, _Done]) -> Future[_Done]:
        """Have its loop do something."""
        return asyncio.run_coroutine_threadsafe(work, self.loop)

    def connected(self) -> socket.socket:
        """A connection to it."""
        return socket.create_connection(self.address, _PATIENCE_S)

    def connections(self) -> list[Any]:
        """Those that are open; for the thread of its loop."""
        return list(self._server.server_state.connections)

    def raw(self, sent: bytes, *, most_s: float = _PATIENCE_S) -> bytes:
        """Send bytes."""
        return raw(self.address, sent, most_s=most_s)
