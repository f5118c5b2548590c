"""Blocks of records, checked as they are read: their digests, and those of their payloads without transfer coding."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable, Iterator

from muniment.archive.warc.digest_labels import sha1_hex
from muniment.http.chunked import ChunkWalker
from muniment.http.head import Head, parse_head

__all__ = ["HttpBlock", "PlainBlock", "RequestBlock", "digest_matches"]

_EMPTY_LINE = re.compile(rb"\n\r?\n")
_HTTP_1 = re.compile(rb"HTTP/1\.")
_MOST_HEAD = 16 << 20
_USUAL_HEAD = 4 << 10
_SHA1 = hashlib.sha1(usedforsecurity=False)


def new_hash(label: str) -> hashlib._Hash:
    """A hash by the label of a WARC digest; SHA-1 when it is missing or unknown."""
    if label.startswith("sha1:"):
        return _SHA1.copy()
    try:
        return hashlib.new(label.partition(":")[0], usedforsecurity=False)
    except ValueError:
        return hashlib.sha1(usedforsecurity=False)


def digest_matches(value: str, digest: hashlib._Hash) -> bool:
    """Whether a digest field names this digest: base32 in upper case, or hexadecimal in lower case."""
    if sha1_hex(value) == digest.hexdigest():
        return True
    label, _, text = value.partition(":")
    # SHAKE has no length of its own
    if label != digest.name or not digest.digest_size:
        return False
    raw = digest.digest()
    return text in {base64.b32encode(raw).decode().rstrip("="), raw.hex()}


class PlainBlock:
    """A block that is only digested as a whole; where that is its payload too, by both of its digests."""

    def __init__(self, block_digest: str, payload_digest: str = "") -> None:
        self._wanted = block_digest
        self._hash = new_hash(block_digest)
        self._payload_wanted = payload_digest
        self._payload = new_hash(payload_digest) if payload_digest else self._hash

    def feed(self, data: memoryview) -> None:
        """Take in more bytes of the block."""
        self._hash.update(data)
        if self._payload is not self._hash:
            self._payload.update(data)

    def faults(self) -> Iterable[tuple[str, str]]:
        """Return the faults of the complete block, as (fault code, text)."""
        if self._payload_wanted:
            return (*self._block_faults(), *self._payload_faults())
        return self._block_faults()

    def _block_faults(self) -> Iterator[tuple[str, str]]:
        if self._wanted and not digest_matches(self._wanted, self._hash):
            yield "block-digest", f"the block does not have the digest {self._wanted[:80]}"

    def _payload_faults(self) -> Iterator[tuple[str, str]]:
        if self._payload_wanted and not digest_matches(self._payload_wanted, self._payload):
            yield "payload-digest", f"the payload does not have the digest {self._payload_wanted[:80]}"


class HttpBlock(PlainBlock):
    """The block of a response or a revisit: an HTTP message, of which the revisit has the head only.

    It is read with the grammar of the engine (`http.head`, `http.chunked`), so that what was captured from an odd
    server is judged as it was captured. `on_the_wire`: the record says that HTTP/1 is what was spoken.
    """

    def __init__(
        self, block_digest: str, payload_digest: str, *, revisit: bool, truncated: bool, on_the_wire: bool = False
    ) -> None:
        super().__init__(block_digest)
        self._payload_wanted = payload_digest
        self._payload = new_hash(payload_digest)
        self._revisit, self._truncated, self._on_the_wire = revisit, truncated, on_the_wire
        self._head = b""
        self._in_head = True
        self._http_1 = self._bare_ends = False
        self._walker: ChunkWalker | None = None
        self._lengths: tuple[int, ...] = ()
        self._wire_length = self._surplus = 0
        self.head: Head | None = None
        self.status = 0
        self.payload_length = 0
        self.told_of_head = False
        """It answers a HEAD: its Content-Length is that of another answer."""

    def feed(self, data: memoryview) -> None:
        """Take in more bytes of the block."""
        self._hash.update(data)
        if not self._in_head:
            self._feed_body(data)
            return
        if len(self._head) > _MOST_HEAD:
            return
        before = len(self._head)
        # the end is nearly always near: a large block is not copied for it
        self._head += bytes(data[:_USUAL_HEAD])
        end = _EMPTY_LINE.search(self._head)
        if end is None and len(data) > _USUAL_HEAD:
            self._head += bytes(data[_USUAL_HEAD:])
            end = _EMPTY_LINE.search(self._head)
        if end is not None:
            self._read_head(self._head[: end.end()])
            self._feed_body(data[end.end() - before :])

    @property
    def lacks_body(self) -> bool:
        """Whether nothing follows a header block that says that something does."""
        return not self._wire_length and any(self._lengths)

    def told(self) -> tuple[str, str, str]:
        """Its content type, ETag and Last-Modified, as an index has them."""
        return self.field("content-type"), self.field("etag"), self.field("last-modified")

    def field(self, name: str) -> str:
        """The first value of an HTTP header (name in lower case), or the empty string."""
        for other, value in self.head.headers if self.head else ():
            if other == name:
                return value
        return ""

    def faults(self) -> Iterator[tuple[str, str]]:
        """Return the faults of the complete block, as (fault code, text)."""
        yield from self._block_faults()
        if self._in_head:
            yield "http", "no complete HTTP header block"
            return
        if not self._on_the_wire:
            yield from self._form_faults()
        if not self.status:
            yield "http", "the status line is not one of HTTP/1.0 or HTTP/1.1"
        elif self.status < 200:
            yield "http", f"an interim response ({self.status}) stands for the final one"
        if self._revisit:
            return
        yield from self._length_faults()
        self._end_body()
        if self._walker is not None and self._walker.malformed and not self._on_the_wire:
            yield "http", "Transfer-Encoding says chunked, and the body is not in chunks"
        yield from self._payload_faults()

    def _form_faults(self) -> Iterator[tuple[str, str]]:
        """What a server may do, and a program that wrote the message itself may not."""
        if self.status and not self._http_1:
            yield "http", "the status line is not one of HTTP/1.0 or HTTP/1.1"
        if self._bare_ends:
            yield "http", "header lines end with LF and not with CRLF"

    def _length_faults(self) -> Iterator[tuple[str, str]]:
        if self._surplus:
            yield "http", f"{self._surplus} bytes follow the end of the chunked body"
        if self._truncated or self.told_of_head or not self._lengths:
            return
        if self._wire_length not in self._lengths:
            stated = " or ".join(map(str, self._lengths))
            yield "http", f"Content-Length says {stated} bytes, the body has {self._wire_length}"

    def _read_head(self, raw: bytes) -> None:
        self._in_head = False
        self._head = b""
        self._http_1 = _HTTP_1.match(raw) is not None
        self._bare_ends = raw.count(b"\n") != raw.count(b"\r\n")
        self.head = head = parse_head(raw)
        if head is None:
            return
        self.status = head.status
        self._lengths = head.lengths
        if head.kind == "chunked":
            self._walker = ChunkWalker()

    def _feed_body(self, data: memoryview) -> None:
        self._wire_length += len(data)
        if self._walker is None:
            self._feed_payload(data)
            return
        taken, pieces = self._walker.feed(bytes(data))
        self._surplus += len(data) - taken
        for piece in pieces:
            self._feed_payload(piece)

    def _end_body(self) -> None:
        if self._walker is not None:
            self._feed_payload(self._walker.eof())

    def _feed_payload(self, data: bytes | memoryview) -> None:
        self._payload.update(data)
        self.payload_length += len(data)


class RequestBlock(PlainBlock):
    """The block of a request whose record has a digest of its payload: what follows the header block."""

    def __init__(self, block_digest: str, payload_digest: str) -> None:
        super().__init__(block_digest, payload_digest)
        self._head = b""
        self._in_head = True

    def feed(self, data: memoryview) -> None:
        """Take in more bytes of the block."""
        self._hash.update(data)
        if not self._in_head:
            self._payload.update(data)
        elif len(self._head) <= _MOST_HEAD:
            self._head += bytes(data)
            if (end := _EMPTY_LINE.search(self._head)) is not None:
                self._in_head = False
                self._payload.update(self._head[end.end() :])
