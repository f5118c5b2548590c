"""Exchanges made by hand, for tests and benchmarks: a body in memory, a generated body, and a factory."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator

from msgspec import Struct

from muniment.archive.warc.records import outlink_line
from muniment.model.capture import PageContext
from muniment.model.exchange import Body, Exchange
from muniment.model.failure import Failure

__all__ = ["GeneratedBody", "MemoryBody", "chunk", "exchange", "page_context"]


class MemoryBody:
    """A body held in memory; `payload` is told when the wire form has a transfer coding."""

    in_memory = True
    block_sha1 = b""

    def __init__(self, wire: bytes, payload: bytes | None = None) -> None:
        self._wire = wire
        self._payload = wire if payload is None else payload
        self.length = len(wire)
        self.payload_length = len(self._payload)
        self.payload_sha1 = hashlib.sha1(self._payload, usedforsecurity=False).digest()

    def know(self, payload_sha1: bytes, block_sha1: bytes) -> None:
        """Take digests in from who computed them."""
        self.payload_sha1, self.block_sha1 = payload_sha1, block_sha1

    def wire(self) -> Iterator[bytes]:
        """The bytes as received."""
        yield self._wire

    def payload(self, limit: int) -> bytes:
        """At most `limit` bytes of the payload."""
        return self._payload[:limit]

    def close(self) -> None:
        """Nothing to give back."""


class GeneratedBody:
    """A body of `count` pieces made when asked for: as large as a spooled one, without the file."""

    in_memory = False
    block_sha1 = b""

    def __init__(self, piece: Callable[[int], bytes], count: int) -> None:
        self._piece = piece
        self._count = count
        digest = hashlib.sha1(usedforsecurity=False)
        self.length = 0
        for data in self.wire():
            digest.update(data)
            self.length += len(data)
        self.payload_length = self.length
        self.payload_sha1 = digest.digest()

    def know(self, payload_sha1: bytes, block_sha1: bytes) -> None:
        """Take digests in from who computed them."""
        self.payload_sha1, self.block_sha1 = payload_sha1, block_sha1

    def wire(self) -> Iterator[bytes]:
        """The pieces in order."""
        return (self._piece(n) for n in range(self._count))

    def payload(self, limit: int) -> bytes:
        """At most `limit` bytes of the payload."""
        out = b""
        for data in self.wire():
            out += data
            if len(out) >= limit:
                break
        return out[:limit]

    def close(self) -> None:
        """Nothing to give back."""


class _Defaults(Struct, frozen=True):
    request: bytes = b"GET / HTTP/1.1\r\nHost: site.example\r\nAccept-Encoding: identity\r\n\r\n"
    started_at: int = 1_795_000_000_123_456


_DEFAULTS = _Defaults()


def chunk(payload: bytes, size: int = 1000, trailer: bytes = b"") -> bytes:
    """The payload in chunks of `size` bytes (RFC 9112 §7.1), with an optional trailer section."""
    parts = [payload[n : n + size] for n in range(0, len(payload), size)]
    return b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts) + b"0\r\n" + trailer + b"\r\n"


def exchange(
    url: str = "https://site.example/",
    body: Body | bytes = b"<p>hello</p>",
    *,
    status_line: str = "HTTP/1.1 200 OK",
    headers: tuple[tuple[str, str], ...] = (("Content-Type", "text/html"),),
    request: bytes = _DEFAULTS.request,
    started_at: int = _DEFAULTS.started_at,
    ip: str = "192.0.2.7",
    tls: str = "tls/1.3",
    truncated: str = "",
    failure: Failure | None = None,
    no_head: bool = False,
) -> Exchange:
    """An exchange with sensible values; a Content-Length is added unless the headers frame the body themselves."""
    content = MemoryBody(body) if isinstance(body, bytes) else body
    names = {name.lower() for name, _ in headers}
    if not names & {"content-length", "transfer-encoding"}:
        headers = (*headers, ("Content-Length", str(content.length)))
    head = status_line.encode("latin-1") + b"\r\n"
    head += b"".join(f"{name}: {value}\r\n".encode("latin-1") for name, value in headers) + b"\r\n"
    return Exchange(
        url=url,
        request=request,
        head=b"" if no_head else head,
        body=content,
        status=0 if no_head else int(status_line.split(" ")[1]),
        headers=() if no_head else tuple((name.lower(), value) for name, value in headers),
        ip=ip,
        tls=tls,
        cipher="TLS_AES_128_GCM_SHA256" if tls else "",
        started_at=started_at,
        ttfb_ms=12,
        duration_ms=34,
        truncated=truncated,
        failure=failure,
    )


def page_context(
    outlinks: tuple[tuple[str, str], ...] = (), *, depth: int = 0, via: str = "", redirect_to: str = ""
) -> PageContext:
    """The context of a page, by default a start page."""
    return PageContext(
        via=via,
        depth=depth,
        found_as="a" if via else "start",
        attempt=1,
        seed_url="",
        meta_json="",
        redirect_to=redirect_to,
        outlinks=b"".join(outlink_line(url, label) for url, label in outlinks),
    )
