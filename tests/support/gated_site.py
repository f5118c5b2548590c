"""A small site whose pages can be held back, so that a test decides what happens first."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self

from tests.support.connections import Connections

__all__ = ["Answer", "GatedSite", "Page"]

_LONGEST_HOLD = 60.0


@dataclass(frozen=True)
class Answer:
    """What the site says to one request."""

    body: str | bytes = ""
    status: int = 200
    headers: tuple[tuple[str, str], ...] = (("Content-Type", "text/html; charset=utf-8"),)
    after: float = 0.0
    """Seconds that it takes its time."""


Page = str | Answer | Sequence[Answer] | Callable[["Message[str, str]"], Answer]
_MISSING = Answer("there is no such page", 404)


class GatedSite:
    """Serves `pages` while its `with` block lasts; what is in `held` is answered once it is released.

    A page given as a sequence of answers gives them in turn, the last one for ever; one given as a function is called
    with the request's headers. Paths ending in `.css` are style
    sheets; a text alone is an answer of status 200.
    """

    def __init__(
        self,
        pages: Mapping[str, Page],
        *,
        held: Iterable[str] = (),
        address: str = "127.0.0.1",
        port: int = 0,
    ) -> None:
        self.pages: dict[str, Page] = dict(pages)
        self.requests: list[str] = []
        """The path of every request, in the order of arrival, those that are held back too."""
        self.times: list[float] = []
        """When each of them came (`time.monotonic`)."""
        self.connections = Connections()
        self._gates = {path: threading.Event() for path in held}
        self._news = threading.Condition()
        self._server = _Server((address, port), _handler(self))
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    @property
    def url(self) -> str:
        """The base URL, with its slash."""
        host, port = self._server.server_address[:2]
        return f"http://{host!s}:{port}/"

    def __enter__(self) -> Self:
        """Begin to answer."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Let go of all that is held, and stop."""
        self.release()
        self._server.shutdown()
        self._thread.join()
        # Its own `server_close` would wait for the threads of connections that the client still keeps.
        self._server.socket.close()

    def release(self, *paths: str) -> None:
        """Answer these paths from now on; without any, all of them."""
        for path in paths or self._gates:
            self._gates[path].set()

    def wait_for(self, *paths: str, seconds: float = 20.0) -> None:
        """Wait until each of the paths has been asked for; raises TimeoutError."""
        with self._news:
            if not self._news.wait_for(lambda: set(paths) <= set(self.requests), seconds):
                raise TimeoutError(f"not asked for: {sorted(set(paths) - set(self.requests))}")

    def counts(self) -> Counter[str]:
        """How often each path was asked for."""
        with self._news:
            return Counter(self.requests)

    def answer(self, path: str, headers: Message[str, str]) -> Answer:
        """Log a request, wait at its gate, and choose what to say."""
        with self._news:
            turn = self.requests.count(path)
            self.requests.append(path)
            self.times.append(time.monotonic())
            self._news.notify_all()
        if path in self._gates:
            self._gates[path].wait(_LONGEST_HOLD)
        page = self.pages.get(path, _MISSING)
        if isinstance(page, str):
            kind = "text/css" if path.endswith(".css") else "text/html; charset=utf-8"
            return Answer(page, headers=(("Content-Type", kind),))
        if callable(page):
            return page(headers)
        return page if isinstance(page, Answer) else page[min(turn, len(page) - 1)]


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, *_: object) -> None:
        """A client that was killed is no news in a test."""


def _handler(site: GatedSite) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def handle(self) -> None:
            descriptor = self.connection.fileno()
            site.connections.add(descriptor)
            try:
                super().handle()
            finally:
                site.connections.remove(descriptor)

        def do_GET(self) -> None:
            answer = site.answer(self.path, self.headers)
            time.sleep(answer.after)
            body = answer.body if isinstance(answer.body, bytes) else answer.body.encode()
            try:
                self.send_response(answer.status)
                for name, value in answer.headers:
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)
            except OSError:
                self.close_connection = True  # the client went away while it was held

        def log_message(self, *_: object) -> None:
            """Say nothing: the site keeps its own log."""

    return Handler
