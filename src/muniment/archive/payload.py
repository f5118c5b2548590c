"""The digests of a stored block, computed as it is read: the block's, and the payload's without transfer coding."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable, Iterator
from enum import Enum, auto

from muniment.archive.digests import sha1_label

__all__ = ["Dechunker", "HttpBlock", "PlainBlock", "digest_matches"]

_EMPTY_LINE = re.compile(rb"\r?\n\r?\n")
_STATUS = re.compile(rb"HTTP/1\.[01][ \t]+(\d{3})(?!\d)")
_CHUNKED = re.compile(rb"\n(?i:transfer-encoding)[ \t]*:[^\n]*(?i:chunked)[ \t]*\r?\n")
_LENGTH = re.compile(rb"(?<=\n)(?i:content-length)[ \t]*:[ \t]*(\d+)[ \t]*\r?\n")
_SIZE = re.compile(rb"[ \t]*([0-9A-Fa-f]{1,16})[ \t]*(?:;.*)?\r?\n?\Z", re.DOTALL)
_MOST_HEAD = 16 << 20
_MOST_LINE = 64 << 10


def new_hash(label: str) -> hashlib._Hash:
    """A hash by the label of a WARC digest; SHA-1 when it is missing or unknown."""
    name = label.partition(":")[0]
    try:
        return hashlib.new(name, usedforsecurity=False)
    except ValueError:
        return hashlib.sha1(usedforsecurity=False)


def digest_matches(value: str, digest: hashlib._Hash) -> bool:
    """Whether a digest field names this digest: base32 in upper case, or hexadecimal in lower case."""
    label, _, text = value.partition(":")
    raw = digest.digest()
    if label == digest.name == "sha1" and sha1_label(raw) == value:
        return True
    return label == digest.name and text in {base64.b32encode(raw).decode().rstrip("="), raw.hex()}


class _State(Enum):
    SIZE = auto()
    DATA = auto()
    DATA_END = auto()
    TRAILER = auto()
    DONE = auto()
    BAD = auto()


class Dechunker:
    """Removes the chunked transfer coding (RFC 9112 §7.1) as bytes arrive, whatever the pieces."""

    def __init__(self, sink: Callable[[memoryview], object]) -> None:
        self._sink = sink
        self._state = _State.SIZE
        self._line = b""
        self._left = 0

    @property
    def bad(self) -> bool:
        """Whether the bytes are not in this coding, or go on after its end."""
        return self._state is _State.BAD

    def feed(self, data: memoryview) -> None:
        """Take in more bytes of the coded body."""
        while data and self._state is not _State.BAD:
            if self._state is _State.DATA:
                piece = data[: self._left]
                self._sink(piece)
                self._left -= len(piece)
                data = data[len(piece) :]
                if not self._left:
                    self._state = _State.DATA_END
            elif self._state is _State.DONE:
                self._state = _State.BAD
            else:
                data = self._take_line(data)

    def _take_line(self, data: memoryview) -> memoryview:
        # A size line is short, so the search looks at little of what may be a large piece.
        window = bytes(data[:256])
        end = window.find(b"\n")
        taken = window if end < 0 else window[: end + 1]
        self._line += taken
        if end >= 0:
            self._end_line(self._line)
            self._line = b""
        elif len(self._line) > _MOST_LINE:
            self._state = _State.BAD
        return data[len(taken) :]

    def _end_line(self, line: bytes) -> None:
        empty = line in {b"\r\n", b"\n"}
        if self._state is _State.SIZE:
            size = _SIZE.match(line)
            self._left = int(size[1], 16) if size else 0
            self._state = _State.BAD if not size else _State.DATA if self._left else _State.TRAILER
        elif self._state is _State.DATA_END:
            self._state = _State.SIZE if empty else _State.BAD
        elif empty:
            self._state = _State.DONE


class PlainBlock:
    """A block that is only digested as a whole."""

    def __init__(self, block_digest: str) -> None:
        self._wanted = block_digest
        self._hash = new_hash(block_digest)

    def feed(self, data: memoryview) -> None:
        """Take in more bytes of the block."""
        self._hash.update(data)

    def faults(self) -> Iterator[tuple[str, str]]:
        """What is wrong with the block, as (fault code, text), once it is complete."""
        if self._wanted and not digest_matches(self._wanted, self._hash):
            yield "block-digest", f"the block does not have the digest {self._wanted[:80]}"


class HttpBlock(PlainBlock):
    """The block of a response or a revisit: an HTTP message, of which the revisit has the head only."""

    def __init__(self, block_digest: str, payload_digest: str, *, revisit: bool, truncated: bool) -> None:
        super().__init__(block_digest)
        self._payload_wanted = payload_digest
        self._payload = new_hash(payload_digest)
        self._raw = new_hash(payload_digest)
        self._revisit = revisit
        self._truncated = truncated
        self._head = b""
        self._in_head = True
        self._dechunker: Dechunker | None = None
        self._lengths: set[int] = set()
        self._wire_length = 0
        self.status = 0
        self.payload_length = 0

    def feed(self, data: memoryview) -> None:
        """Take in more bytes of the block."""
        super().feed(data)
        if not self._in_head:
            self._feed_body(data)
            return
        if len(self._head) > _MOST_HEAD:
            return
        self._head += bytes(data)
        end = _EMPTY_LINE.search(self._head)
        if end is not None:
            body = len(self._head) - end.end()
            self._read_head(self._head[: end.end()])
            self._feed_body(data[len(data) - body :])

    def faults(self) -> Iterator[tuple[str, str]]:
        """What is wrong with the block, as (fault code, text), once it is complete."""
        yield from super().faults()
        if self._in_head:
            yield "http", "no complete HTTP header block"
            return
        if not self.status:
            yield "http", "the status line is not one of HTTP/1.0 or HTTP/1.1"
        elif self.status < 200:
            yield "http", f"an interim response ({self.status}) stands for the final one"
        if self._revisit:
            return
        yield from self._length_faults()
        if self._payload_wanted and not self._payload_matches():
            yield "payload-digest", f"the payload does not have the digest {self._payload_wanted[:80]}"

    def _length_faults(self) -> Iterator[tuple[str, str]]:
        if self._truncated or self._dechunker is not None or len(self._lengths) != 1 or self.status in {204, 304}:
            return
        (length,) = self._lengths
        if length != self._wire_length:
            yield "http", f"Content-Length says {length} bytes, the body has {self._wire_length}"

    def _payload_matches(self) -> bool:
        if self._dechunker is not None and self._dechunker.bad:
            # The server said chunked and sent something else: the reader may have kept it as it came.
            return digest_matches(self._payload_wanted, self._payload) or digest_matches(
                self._payload_wanted, self._raw
            )
        return digest_matches(self._payload_wanted, self._payload)

    def _read_head(self, head: bytes) -> None:
        self._in_head = False
        self._head = b""
        status = _STATUS.match(head)
        self.status = int(status[1]) if status else 0
        self._lengths = {int(value) for value in _LENGTH.findall(head)}
        if _CHUNKED.search(head):
            self._dechunker = Dechunker(self._feed_payload)

    def _feed_body(self, data: memoryview) -> None:
        self._wire_length += len(data)
        if self._dechunker is None:
            self._feed_payload(data)
        else:
            self._raw.update(data)
            self._dechunker.feed(data)

    def _feed_payload(self, data: memoryview) -> None:
        self._payload.update(data)
        self.payload_length += len(data)
