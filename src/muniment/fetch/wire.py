"""A lenient, bounded reader of one HTTP/1.1 response that does no input or output itself (RFC 9112).

Any bytes, split at any points, give the same result as the whole. What is kept is exactly what was received; reading is
lenient so that an odd response is still recorded, and bounded so that a hostile one costs little.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, Protocol

from muniment.fetch.held_head import HeldHead
from muniment.http.chunked import ChunkWalker, Piece
from muniment.http.head import Head, parse_head, status_of
from muniment.model.failure import Failure, FailureCode

__all__ = ["MAX_HEAD", "MAX_INTERIM", "End", "ResponseReader", "Sink"]

MAX_HEAD = 1 << 20
"""Bytes of the longest header block that is recorded."""
MAX_INTERIM = 16 << 20
"""Bytes of interim responses (1xx) before a final one; any number of them, but not for ever."""

End = Literal["cut", "reset", "time"]
"""Why no more bytes come: the peer closed (FIN), it reset (RST), or it was silent for too long."""

_SMALL_HEAD = 4096
"""Bytes before a body that it may hold in memory with itself."""
_LARGE_HEAD = 16 << 10
_START = b"HTTP/"
_EMPTY_LINE = re.compile(rb"\n\r?\n").search
_NOT_HTTP = "the answer does not begin with an HTTP status line"


class Sink(Protocol):
    """Takes a body's bytes as they come."""

    length: int

    def hold_head(self) -> HeldHead:
        """A place for a header block that is not complete yet."""

    def keep_head(self, length: int, fields: int) -> None:
        """The final header block is complete, and has so many bytes, and fields."""

    def begin_chunked(self) -> None:
        """The body has the chunked transfer coding: the payload is given apart from the wire bytes."""

    def add(self, wire: Piece, payload: Sequence[Piece] | None) -> None:
        """More bytes, and the payload among them (None: all of it). Raises OSError when they cannot be kept."""


class ResponseReader:
    """Reads one response: call `feed` until it says that the message ended, or `end` when nothing more comes."""

    # Defaults of the class, because most responses never need to set them: a reader is made for each.
    _chunks: ChunkWalker | None = None
    _held: HeldHead | None = None
    _interim = 0
    _left = 0
    _line_seen = False
    _plain = False

    head: Head | None = None
    """The final response's header block; None until it is complete, and forever if it stays incomplete."""
    done = False
    surplus = False
    """Bytes followed the end of the message: they are not part of it, and the connection cannot be trusted."""
    truncated = ""
    """WARC-Truncated."""
    failure: Failure | None = None

    def __init__(self, sink: Sink, max_body: int | None = None, *, head_only: bool = False) -> None:
        self._sink = sink
        self._max_body = max_body
        self._head_only = head_only

    @property
    def reusable(self) -> bool:
        """The connection may carry another request (RFC 9112 §9.3): the message ended cleanly and nobody said close."""
        head = self.head
        return self.done and head is not None and head.keep_alive and not self.surplus and self.failure is None

    @property
    def body_length(self) -> int:
        """Bytes of the body so far, as on the wire."""
        return self._sink.length

    @property
    def holds_much(self) -> bool:
        """Whether a header block is under way that is large already."""
        return self._held is not None and self._held.length > _LARGE_HEAD

    def feed(self, data: bytes) -> bool:
        """Read more bytes; True once the message has ended, after which nothing more may be fed."""
        rest: Piece = data
        if self.head is None:
            rest = self._feed_head(data)
            if self.done:
                self.surplus = bool(rest)
                return True
            if not rest:
                return False
        if self._plain and len(rest) <= self._left:
            self._sink.add(rest, None)
            self._left -= len(rest)
            self.done = not self._left
        else:
            self._feed_body(bytes(rest))
        return self.done

    def end(self, why: End) -> None:
        """Nothing more comes: decide whether what came is whole."""
        if self.done:
            return
        head = self.head
        if head is None:
            self.fail("timeout-header" if why == "time" else why, _HEAD_ENDS[why])
        elif self._is_whole(head, why):
            self._finish("", None)
        elif why == "time":
            self._finish(
                "time",
                Failure("timeout-body", f"silence or a drip after {self._sink.length} bytes of the body"),
            )
        else:
            self._finish("disconnect", Failure(why, f"{_BODY_ENDS[why]} after {self._sink.length} bytes of the body"))

    def overrun(self, why: str) -> None:
        """The exchange has no more time (`why`): what came is kept, cut."""
        head = self.head
        if self.done:
            return
        if head is None:
            self.fail("timeout-header", f"no complete header block {why}")
        elif self._is_whole(head, "time"):
            self._finish("", None)
        else:
            self._finish("time", Failure("limit", f"cut {why}"))

    def fail(self, code: FailureCode, text: str) -> None:
        """There is no response: nothing of it is recorded."""
        self._let_go()
        self.failure = Failure(code, text)
        self.done = True

    def _is_whole(self, head: Head, why: End) -> bool:
        if why == "reset":
            return False
        if head.kind == "length":
            return self._sink.length in head.lengths
        if self._chunks:
            return self._chunks.last_chunk
        return why == "cut"

    def _feed_head(self, data: bytes) -> Piece:
        """Read header blocks; gives the bytes after the final one, none while it is incomplete.

        They are not copied where they came in one read with a small block: most of a page does. What is given then goes
        to the end of that read, which `batch_digests.digest_together` relies on.
        """
        held = self._held
        begin = start = seen = 0
        buffer: bytes | bytearray = data
        if held is not None:
            seen = held.length
            if not held.in_memory and self._goes_on(held, data):
                return b""
            start = max(seen - 3, 0)
            buffer = held.add(data)
        while True:
            end = _head_end(buffer, start)
            if end < 0 or end - begin > MAX_HEAD:
                # what follows is copied once, however many interim responses it follows
                rest = buffer[begin:] if begin else buffer
                self._check_start(rest, seen, end - begin)
                if not self.done:
                    self._hold(rest, held if not begin else None)
                return b""
            if self._take_head(bytes(buffer[begin:end])):
                after = memoryview(data)[end:] if buffer is data and end <= _SMALL_HEAD else bytes(buffer[end:])
                self._let_go()
                return after
            if self.done:
                return b""
            begin = start = end
            seen = 0

    def _goes_on(self, held: HeldHead, data: bytes) -> bool:
        """Store more of a block that is in a file, unless it ends here or is too large."""
        if _EMPTY_LINE(held.end_with(data)) or held.length + len(data) > MAX_HEAD:
            return False
        held.append(data)
        return True

    def _hold(self, rest: bytes | bytearray, held: HeldHead | None) -> None:
        """Keep an incomplete block; `held` has it already, unless another one came before it."""
        if held is None:
            self._let_go()
            self._held = held = self._sink.hold_head()
            held.add(rest)
        held.settle()

    def _let_go(self) -> None:
        held, self._held = self._held, None
        if held is not None:
            held.drop()

    def _check_start(self, buffer: bytes | bytearray, seen: int, end: int) -> None:
        """Fail as soon as an incomplete block is sure not to be HTTP, or to be too large."""
        if not self._line_seen:
            if not buffer.startswith(_START) and not _START.startswith(buffer[:5]):
                self.fail("protocol", _NOT_HTTP)
                return
            newline = buffer.find(b"\n", seen, MAX_HEAD)
            self._line_seen = newline >= 0
            if self._line_seen and status_of(buffer) is None:
                self.fail("protocol", _NOT_HTTP)
                return
        if end > MAX_HEAD or len(buffer) > MAX_HEAD:
            self.fail("too-large", f"header block over {MAX_HEAD} bytes")

    def _take_head(self, raw: bytes) -> bool:
        """Begin the final response; False for an interim one, which leaves no trace (RFC 9110 §15.2)."""
        head = parse_head(raw, head_only=self._head_only)
        if head is None:
            self.fail("protocol", _NOT_HTTP)
            return False
        self._line_seen = False
        if head.status < 200:
            self._interim += len(raw)
            if self._interim > MAX_INTERIM:
                self.fail("too-large", f"interim responses over {MAX_INTERIM} bytes")
            return False
        self.head = head
        if len(raw) > _SMALL_HEAD:
            self._sink.keep_head(len(raw), len(head.headers))
        if head.kind == "length":
            self._left = left = head.lengths[-1]
            self.done = not left
            self._plain = self._max_body is None or left <= self._max_body
        elif head.kind == "chunked":
            self._chunks = ChunkWalker()
            self._sink.begin_chunked()
        elif head.kind == "none":
            self.done = True
        return True

    def _feed_body(self, data: bytes) -> None:
        # Cut to the allowed size before anything is understood: the result must not depend on how bytes were grouped.
        size = len(data)
        allowed = size if self._max_body is None else min(size, self._max_body - self._sink.length)
        used = self._take_body(data if allowed == size else data[:allowed])
        if self.done:
            self.surplus = used < size
        elif allowed < size:
            self._finish("length", Failure("too-large", f"body over {self._max_body} bytes"))

    def _take_body(self, data: bytes) -> int:
        """Keep what belongs to the message, and say how much that is."""
        if self._chunks:
            used, payload = self._chunks.feed(data)
            if used:
                self._sink.add(data if used == len(data) else data[:used], payload)
            if self._chunks.done:
                self._finish("", None)
            return used
        head = self.head
        if head is None or head.kind == "close":
            self._sink.add(data, None)
            return len(data)
        used = min(self._left, len(data))
        if used:
            self._sink.add(data if used == len(data) else data[:used], None)
            self._left -= used
        if not self._left:
            self._finish("", None)
        return used

    def _finish(self, truncated: str, failure: Failure | None) -> None:
        chunks = self._chunks
        if chunks:
            if tail := chunks.eof():
                self._sink.add(b"", [tail])
            if chunks.malformed and truncated != "length":
                truncated, failure = "unspecified", Failure("protocol", "malformed chunk line")
        self.truncated = truncated
        self.failure = failure
        self.done = True


def _head_end(buffer: bytes | bytearray, start: int) -> int:
    """Where the header block ends, past its empty line; -1 when it does not yet."""
    found = _EMPTY_LINE(buffer, start)
    return found.end() if found else -1


_HEAD_ENDS: dict[End, str] = {
    "cut": "connection closed before the end of the header block",
    "reset": "connection reset before the end of the header block",
    "time": "no complete header block: silence or a drip",
}
_BODY_ENDS: dict[End, str] = {"cut": "connection closed", "reset": "connection reset", "time": "silence"}
