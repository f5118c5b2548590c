"""A server that sends exactly the bytes it is told to, and remembers exactly what went both ways."""

from __future__ import annotations

import contextlib
import select
import socket
import ssl
import struct
import subprocess
import threading
import time
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.connections import Connections

__all__ = [
    "Certificate",
    "Close",
    "Exchanged",
    "Flood",
    "HalfClose",
    "Pause",
    "RawServer",
    "Reset",
    "Script",
    "Send",
    "Stall",
    "Step",
    "make_certificate",
]

_LONGEST_STALL = 30.0
_MAX_REQUEST = 1 << 20


@dataclass(frozen=True)
class Send:
    """Send these bytes, in pieces of `piece` bytes when it is not 0."""

    data: bytes
    piece: int = 0


@dataclass(frozen=True)
class Flood:
    """Send the same bytes again and again, with a pause in between, until the client goes away."""

    data: bytes
    pause: float = 0.0
    times: int = 1 << 62


@dataclass(frozen=True)
class Pause:
    """Wait for some seconds."""

    seconds: float


@dataclass(frozen=True)
class Stall:
    """Send nothing more until the client goes away."""


@dataclass(frozen=True)
class Close:
    """Close the connection (FIN); over TLS with a close_notify unless `rude`."""

    rude: bool = False


@dataclass(frozen=True)
class HalfClose:
    """Say that nothing more is sent (FIN), but go on reading."""


@dataclass(frozen=True)
class Reset:
    """Reset the connection (RST)."""


Step = Send | Flood | Pause | Stall | Close | HalfClose | Reset
Script = tuple[Step, ...]


@dataclass(frozen=True)
class Certificate:
    """The PEM files of a server's key and certificate."""

    key: Path
    certificate: Path


@dataclass
class Exchanged:
    """One request, and what was sent after it until the next request or the end of the connection."""

    connection: int
    """Connections are counted from 1."""
    path: str
    received: bytes
    sent: bytes = b""
    at: float = field(default_factory=time.monotonic)
    """When it came (`time.monotonic`)."""


def make_certificate(
    folder: Path, name: str, *, names: str = "DNS:localhost,IP:127.0.0.1", days: int = 2
) -> Certificate:
    """Make a self-signed certificate with the `openssl` program; with negative `days` it has expired."""
    made = Certificate(folder / f"{name}.key", folder / f"{name}.pem")
    new = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    new += ["-keyout", str(made.key), "-out", str(made.certificate), "-days", str(max(days, 1))]
    new += ["-subj", f"/CN={name}", "-addext", f"subjectAltName={names}"]
    subprocess.run(new, check=True, capture_output=True)
    if days < 0:
        again = ["openssl", "x509", "-in", str(made.certificate), "-signkey", str(made.key), "-days", str(days)]
        subprocess.run([*again, "-out", str(made.certificate)], check=True, capture_output=True)
    return made


def _limit_to_tls_1_0(context: ssl.SSLContext, ciphers: str) -> None:
    context.set_ciphers(f"{ciphers}:@SECLEVEL=0")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1


@dataclass
class RawServer:
    """Plays a script per path on a loopback port of its own, while it is entered as a context manager.

    A connection is kept for the next request unless its script closes it. Paths without a script get `default`.
    """

    scripts: Mapping[str, Script] = field(default_factory=dict)
    certificate: Certificate | None = None
    old_ciphers: str = ""
    """With it, TLS 1.0 alone is spoken, with these ciphers (as OpenSSL names them)."""
    turns: Mapping[str, tuple[Script, ...]] = field(default_factory=dict)
    """For paths that answer otherwise the second time: a script for each time, the last for all that follow."""
    greeting: bytes = b""
    """Sent on every connection before a request is read."""
    default: Script = (Send(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"),)
    log: list[Exchanged] = field(default_factory=list)
    address: str = "127.0.0.1"
    """The loopback address it listens on."""
    accepted: int = 0
    connections: Connections = field(default_factory=Connections)

    def __post_init__(self) -> None:
        self._threads: list[threading.Thread] = []
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._context: ssl.SSLContext | None = None
        self._closing = False

    def __enter__(self) -> RawServer:
        if self.certificate:
            self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self._context.load_cert_chain(self.certificate.certificate, self.certificate.key)
            if self.old_ciphers:
                _limit_to_tls_1_0(self._context, self.old_ciphers)
        self._listener = socket.create_server((self.address, 0), backlog=256)
        self._start(self._accept)
        return self

    def __exit__(self, *_: object) -> None:
        self._closing = True
        # A thread in accept() is not woken by close() on Linux, but by shutdown().
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        with self._lock:
            for sock in self._open:
                with contextlib.suppress(OSError):
                    sock.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(5)

    @property
    def port(self) -> int:
        """The port it listens on."""
        return int(self._listener.getsockname()[1])

    def url(self, path: str, host: str = "") -> str:
        """The URL of a path on this server."""
        return f"{'https' if self.certificate else 'http'}://{host or self.address}:{self.port}{path}"

    def exchanges(self, path: str) -> list[Exchanged]:
        """What was asked for under a path, in order."""
        return [entry for entry in self.log if entry.path == path]

    def _start(self, target: object, *args: object) -> None:
        thread = threading.Thread(target=target, args=args, daemon=True)  # type: ignore[arg-type]
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while not self._closing:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            with self._lock:
                self.accepted += 1
                self._open.add(sock)
                self.connections.add(sock.fileno())
            self._start(self._serve, sock, self.accepted)

    def _serve(self, raw: socket.socket, number: int) -> None:
        sock, descriptor = raw, raw.fileno()
        try:
            raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self._context:
                sock = self._context.wrap_socket(raw, server_side=True)
                with self._lock:
                    # The plain socket object is empty now.
                    self._open ^= {raw, sock}
            if self.greeting:
                sock.sendall(self.greeting)
            for request in _requests(sock):
                if not self._answer(sock, request, number):
                    return
        except (OSError, ssl.SSLError):
            return
        finally:
            with self._lock:
                self._open -= {raw, sock}
                self.connections.remove(descriptor)
            sock.close()
            raw.close()

    def _answer(self, sock: socket.socket, request: bytes, number: int) -> bool:
        """Play a request's script; False when the connection is over."""
        words = request.split(b" ", 2)
        path = words[1].decode("latin-1") if len(words) > 1 else ""
        entry = Exchanged(number, path, request)
        with self._lock:
            turn = sum(earlier.path == path for earlier in self.log)
            self.log.append(entry)
        turns = self.turns.get(path) or (self.scripts.get(path, self.default),)
        return all(_play(sock, step, entry) for step in turns[min(turn, len(turns) - 1)])


def _requests(sock: socket.socket) -> Iterator[bytes]:
    held = b""
    while True:
        while b"\r\n\r\n" not in held:
            data = sock.recv(65536)
            if not data or len(held) > _MAX_REQUEST:
                return
            held += data
        request, _, held = held.partition(b"\r\n\r\n")
        yield request + b"\r\n\r\n"


def _play(sock: socket.socket, step: Step, entry: Exchanged) -> bool:
    match step:
        case Send(data, piece):
            for at in range(0, len(data), piece or max(len(data), 1)):
                part = data[at : at + piece] if piece else data
                entry.sent += part
                sock.sendall(part)
                if piece:
                    time.sleep(0.0005)
        case Flood(data, pause, times):
            for _ in range(times):
                sock.sendall(data)
                time.sleep(pause)
        case Pause(seconds):
            time.sleep(seconds)
        case Stall():
            _await_end(sock)
            return False
        case HalfClose():
            sock.shutdown(socket.SHUT_WR)
            _await_end(sock)
            return False
        case Close(rude):
            if isinstance(sock, ssl.SSLSocket) and not rude:
                with contextlib.suppress(OSError, ssl.SSLError):
                    sock.unwrap()
            return False
        case Reset():
            # Wait until the peer's kernel has what was sent: a reset throws away what the peer has not read.
            time.sleep(0.1)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            return False
    return True


def _await_end(sock: socket.socket) -> None:
    until = time.monotonic() + _LONGEST_STALL
    while time.monotonic() < until:
        if select.select([sock], [], [], 1.0)[0] and not sock.recv(65536):
            return
