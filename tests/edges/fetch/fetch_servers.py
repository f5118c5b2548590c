"""Settings for the engine; a name server and proxies, real enough: they speak their protocols over loopback."""

from __future__ import annotations

import contextlib
import select
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from typing import Any

from muniment.fetch.config import FetchConfig
from muniment.model.exchange import Exchange
from muniment.rules.proxies import proxy_rules


def settings(**changes: Any) -> FetchConfig:
    values: dict[str, Any] = {"user_agent": "test/1", "allowed_classes": frozenset({"loopback"}), "timeout": 5.0}
    if "proxy" in changes:
        changes["proxies"] = proxy_rules((changes.pop("proxy"),))
    return FetchConfig(**(values | changes))


@contextlib.contextmanager
def name_server(names: dict[str, str], asked: list[str]) -> Iterator[str]:
    """Answers A queries from `names`, with NXDOMAIN for others; the name `mute.test` is never answered."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.bind(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            query, peer = sock.recvfrom(4096)
            if query == b"end":
                return
            name, end, kind = _question(query)
            asked.append(f"{name} {kind}")
            if name == "mute.test":
                continue
            address = names.get(name) if kind == 1 else None
            code = 0 if name in names else 3
            header = query[:2] + struct.pack(">HHHHH", 0x8580 | code, 1, 1 if address else 0, 0, 0)
            answer = b"\xc0\x0c" + struct.pack(">HHIH", 1, 1, 300, 4) + socket.inet_aton(address) if address else b""
            sock.sendto(header + query[12:end] + answer, peer)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield f"127.0.0.1:{sock.getsockname()[1]}"
    finally:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as last:
            last.sendto(b"end", sock.getsockname())
        thread.join(5)
        sock.close()


def _question(query: bytes) -> tuple[str, int, int]:
    labels, at = [], 12
    while query[at]:
        labels.append(query[at + 1 : at + 1 + query[at]].decode())
        at += 1 + query[at]
    return ".".join(labels).lower(), at + 5, struct.unpack(">H", query[at + 1 : at + 3])[0]


@contextlib.contextmanager
def proxy(shake: Callable[[socket.socket], tuple[str, int] | None], port_of: int = 0) -> Iterator[int]:
    """A proxy whose `shake` reads a client's wish; it is connected to that port on loopback, whatever the name."""
    listener = socket.create_server(("127.0.0.1", 0))
    threads: list[threading.Thread] = []

    def serve(client: socket.socket) -> None:
        with client, contextlib.suppress(OSError):
            wish = shake(client)
            if wish:
                with socket.create_connection(("127.0.0.1", port_of or wish[1])) as server:
                    _pump(client, server)

    def accept() -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            threads.append(threading.Thread(target=serve, args=(client,), daemon=True))
            threads[-1].start()

    threads.append(threading.Thread(target=accept, daemon=True))
    threads[0].start()
    try:
        yield listener.getsockname()[1]
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        for thread in threads:
            thread.join(5)


def _pump(one: socket.socket, other: socket.socket) -> None:
    while True:
        for sock in select.select([one, other], [], [], 10)[0]:
            data = sock.recv(65536)
            if not data:
                return
            (other if sock is one else one).sendall(data)


def read_exactly(sock: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        part = sock.recv(size - len(data))
        if not part:
            raise ConnectionError
        data += part
    return data


def http_connect(
    seen: list[bytes], reply: bytes = b"HTTP/1.1 200 OK\r\nVia: test\r\n\r\n"
) -> Callable[..., tuple[str, int] | None]:
    """CONNECT; the reply goes out in two pieces."""

    def shake(sock: socket.socket) -> tuple[str, int] | None:
        request = b""
        while b"\r\n\r\n" not in request:
            request += sock.recv(4096)
        seen.append(request)
        sock.sendall(reply[:20])
        threading.Event().wait(0.05)
        sock.sendall(reply[20:])
        host, _, port = request.split()[1].decode().rpartition(":")
        return (host, int(port)) if b" 200 " in reply else None

    return shake


def socks5(
    seen: list[object], *, password: tuple[str, str] | None = None, code: int = 0
) -> Callable[..., tuple[str, int] | None]:
    def shake(sock: socket.socket) -> tuple[str, int] | None:
        read_exactly(sock, read_exactly(sock, 2)[1])
        sock.sendall(b"\x05\x02" if password else b"\x05\x00")
        if password:
            user = read_exactly(sock, read_exactly(sock, 2)[1]).decode()
            word = read_exactly(sock, read_exactly(sock, 1)[0]).decode()
            sock.sendall(b"\x01\x00" if (user, word) == password else b"\x01\x01")
            if (user, word) != password:
                return None
        kind = read_exactly(sock, 4)[3]
        raw = read_exactly(sock, 4 if kind == 1 else 16 if kind == 4 else read_exactly(sock, 1)[0])
        host = raw.decode() if kind == 3 else socket.inet_ntop(socket.AF_INET if kind == 1 else socket.AF_INET6, raw)
        port = struct.unpack(">H", read_exactly(sock, 2))[0]
        seen.append((host, port))
        sock.sendall(b"\x05" + bytes([code]) + b"\x00\x01\x7f\x00\x00\x01\x00\x00")
        return None if code else (host, port)

    return shake


def socks4(seen: list[object]) -> Callable[..., tuple[str, int] | None]:
    def shake(sock: socket.socket) -> tuple[str, int] | None:
        _, _, port, raw = struct.unpack(">BBH4s", read_exactly(sock, 8))
        texts = []
        for _ in range(2 if raw[:3] == b"\0\0\0" else 1):
            text = b""
            while (byte := read_exactly(sock, 1)) != b"\0":
                text += byte
            texts.append(text.decode())
        host = texts[1] if len(texts) > 1 else socket.inet_ntoa(raw)
        seen.append((host, port))
        sock.sendall(b"\x00\x5a\x00\x00\x00\x00\x00\x00")
        return host, port

    return shake


def failure_code(exchange: Exchange) -> str:
    assert exchange.failure
    assert exchange.head == b""
    assert exchange.status == 0
    assert exchange.body.length == 0
    return exchange.failure.code
