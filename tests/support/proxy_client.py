"""A client of a proxy on raw sockets: what it sends and gets is exactly what is written here."""

from __future__ import annotations

import socket
import ssl
from urllib.parse import urlsplit

__all__ = ["ProxyClient"]


class ProxyClient:
    """Connections through a proxy at `address` (`host:port`), which is trusted by the certificate in a file."""

    def __init__(self, address: str, pem: str = "") -> None:
        host, _, port = address.rpartition(":")
        self._at = host, int(port)
        self._pem = pem

    def connect(self, url: str, *, tunnel: bool = False) -> socket.socket:
        """A connection for requests of a URL: in a tunnel, with TLS for https, or plain to the proxy."""
        sock = socket.create_connection(self._at, timeout=60)
        parts = urlsplit(url)
        if parts.scheme not in ("https", "wss") and not tunnel:
            return sock
        secure = parts.scheme in ("https", "wss")
        authority = f"{parts.hostname}:{parts.port or (443 if secure else 80)}"
        sock.sendall(
            f"CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\nProxy-Connection: keep-alive\r\n\r\n".encode()
        )
        answer = b""
        while b"\r\n\r\n" not in answer:
            answer += sock.recv(4096) or b"\r\n\r\n"
        assert answer.startswith(b"HTTP/1.1 200"), answer
        if not secure:
            return sock
        return ssl.create_default_context(cafile=self._pem).wrap_socket(sock, server_hostname=parts.hostname)

    def ask(self, url: str, request: bytes, *, sock: socket.socket | None = None) -> bytes:
        """The whole answer to a request, which has `@` for its target."""
        parts = urlsplit(url)
        path = parts.path + (f"?{parts.query}" if parts.query else "")
        target = path if parts.scheme == "https" else url
        own = sock is None
        held = self.connect(url) if sock is None else sock
        try:
            held.sendall(request.replace(b" @ ", f" {target} ".encode(), 1))
            return read_answer(held, head_only=request.startswith(b"HEAD"))
        finally:
            if own:
                held.close()


def read_answer(sock: socket.socket, *, head_only: bool = False) -> bytes:
    """One answer: its head, and its body by Content-Length, chunks or the end of the connection."""
    held = b""
    while b"\r\n\r\n" not in held:
        data = sock.recv(1 << 16)
        if not data:
            return held
        held += data
    head, _, body = held.partition(b"\r\n\r\n")
    if head.startswith(b"HTTP/1.1 100"):
        return read_answer(sock)
    fields = dict(line.lower().split(b":", 1) for line in head.split(b"\r\n")[1:] if b":" in line)
    head_only = head_only or head.split(b" ", 2)[1] in (b"204", b"304")
    length = int(fields[b"content-length"]) if b"content-length" in fields else None
    chunked = b"chunked" in fields.get(b"transfer-encoding", b"")
    pieces = [body]
    have, end = len(body), body[-16:]
    while not head_only and not (have >= length if length is not None else chunked and end.endswith(b"0\r\n\r\n")):
        data = sock.recv(1 << 20)
        if not data:
            break
        pieces.append(data)
        have, end = have + len(data), (end + data)[-16:]
    return head + b"\r\n\r\n" + b"".join(pieces)
