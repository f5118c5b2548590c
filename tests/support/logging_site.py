"""A site that logs every byte of both directions, bodies of requests included, over HTTP or TLS."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tests.support.raw_server import Certificate

__all__ = ["LoggedExchange", "LoggingSite", "plain"]

Answer = bytes | Callable[[socket.socket, bytes], bytes]
"""The bytes that are sent, or what sends some and returns the last ones."""


def plain(body: bytes, kind: str = "text/plain", status: str = "200 OK", more: str = "") -> bytes:
    """An answer with this body."""
    head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n{more}\r\n"
    return head.encode("latin-1") + body


@dataclass
class LoggedExchange:
    """One request with its body, and what was sent for it."""

    path: str
    received: bytes
    sent: bytes = b""


@dataclass
class LoggingSite:
    """Serves `answers` by path, on a loopback address of its own, while it is entered."""

    answers: Mapping[str, Answer] = field(default_factory=dict)
    certificate: Certificate | None = None
    address: str = "127.0.0.1"
    log: list[LoggedExchange] = field(default_factory=list)

    def __enter__(self) -> LoggingSite:
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._threads: list[threading.Thread] = []
        self._context: ssl.SSLContext | None = None
        if self.certificate:
            self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self._context.load_cert_chain(self.certificate.certificate, self.certificate.key)
        self._listener = socket.create_server((self.address, 0), backlog=256)
        self.port = int(self._listener.getsockname()[1])
        self._start(self._accept)
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        with self._lock:
            for sock in self._open:
                with contextlib.suppress(OSError):
                    sock.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(5)

    def url(self, path: str) -> str:
        """The URL of a path."""
        return f"{'https' if self.certificate else 'http'}://{self.address}:{self.port}{path}"

    def asked(self, path: str) -> list[LoggedExchange]:
        """What was asked for under a path."""
        return [one for one in self.log if one.path == path]

    def _start(self, target: Callable[..., None], *args: object) -> None:
        thread = threading.Thread(target=target, args=args, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            self._start(self._serve, sock)

    def _serve(self, raw: socket.socket) -> None:
        sock = raw
        try:
            if self._context:
                sock = self._context.wrap_socket(raw, server_side=True)
            with self._lock:
                self._open.add(sock)
            held = b""
            while (found := _request(sock, held)) is not None:
                request, held = found
                if not self._answer(sock, request):
                    return
        except OSError:
            return
        finally:
            with self._lock:
                self._open.discard(sock)
            sock.close()
            raw.close()

    def _answer(self, sock: socket.socket, request: bytes) -> bool:
        entry = LoggedExchange(request.split(b" ", 2)[1].decode("latin-1"), request)
        with self._lock:
            self.log.append(entry)
        answer = self.answers.get(entry.path, plain(b"none", status="404 Not Found"))
        last = answer if isinstance(answer, bytes) else answer(_Logged(sock, entry), request)  # type: ignore[arg-type]
        entry.sent += last
        sock.sendall(last)
        told = entry.sent.lower()
        ends = b"content-length" in told or b"chunked" in told or told[9:12] == b"204"
        return ends and b"connection: close" not in told


class _Logged:
    """A socket whose sent bytes are logged."""

    def __init__(self, sock: socket.socket, entry: LoggedExchange) -> None:
        self._sock, self._entry = sock, entry

    def sendall(self, data: bytes) -> None:
        """Send, and log."""
        self._sock.sendall(data)
        self._entry.sent += data

    def recv(self, most: int) -> bytes:
        """Receive."""
        return self._sock.recv(most)


def _request(sock: socket.socket, held: bytes) -> tuple[bytes, bytes] | None:
    """The next request with its body, and what came after it."""
    while b"\r\n\r\n" not in held:
        data = sock.recv(1 << 16)
        if not data:
            return None
        held += data
    head, _, rest = held.partition(b"\r\n\r\n")
    head += b"\r\n\r\n"
    fields = dict(line.lower().split(b":", 1) for line in head.split(b"\r\n")[1:] if b":" in line)
    if fields.get(b"expect", b"").strip() == b"100-continue" and not rest:
        sock.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
    if b"chunked" in fields.get(b"transfer-encoding", b""):
        while b"0\r\n\r\n" not in rest:
            rest += sock.recv(1 << 16)
        body, _, rest = rest.partition(b"0\r\n\r\n")
        return head + body + b"0\r\n\r\n", rest
    length = int(fields.get(b"content-length", b"0"))
    pieces, have = [rest], len(rest)
    while have < length:
        data = sock.recv(1 << 20)
        if not data:
            return None
        pieces.append(data)
        have += len(data)
    rest = b"".join(pieces)
    return head + rest[:length], rest[length:]
