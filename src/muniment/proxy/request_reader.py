"""A bounded reader of the requests of one connection, without input or output of its own."""

from __future__ import annotations

import re
from collections.abc import Callable

from msgspec import Struct

from muniment.http.chunked import ChunkWalker
from muniment.http.request_head import MOST_REQUEST_HEAD, RequestHead, parse_request_head
from muniment.model.exchange import Body
from muniment.proxy.answerer import RequestBody

__all__ = ["InvalidRequestError", "ReadRequest", "RequestReader"]

_MOST_BODY = 1 << 30
"""Bytes of the longest body of a request."""
_EMPTY_LINE = re.compile(rb"\n\r?\n").search
_BLANKS = b"\r\n"


class InvalidRequestError(Exception):
    """What came is not a request that is answered; has the status of the refusal."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class ReadRequest(Struct, frozen=True):
    """A whole request."""

    head: RequestHead
    body: Body | None


class RequestReader:
    """Takes bytes as they come, and gives one whole request after the other."""

    def __init__(self, make_body: Callable[[], RequestBody]) -> None:
        self._make_body = make_body
        self._buffer = bytearray()
        self._head: RequestHead | None = None
        self._body: RequestBody | None = None
        self._chunks: ChunkWalker | None = None
        self._left = 0

    @property
    def held(self) -> int:
        """Bytes that came and are not read."""
        return len(self._buffer)

    @property
    def waits_for_consent(self) -> bool:
        """A head came whose body waits for an answer of 100 (`Expect: 100-continue`)."""
        head = self._head
        return head is not None and not self._buffer and head.version == "1.1" and head.says("expect", "100-continue")

    def feed(self, data: bytes) -> None:
        """Take more bytes."""
        self._buffer += data

    def take(self) -> ReadRequest | None:
        """The next request, once it is whole. Raises InvalidRequestError, and OSError when a body cannot be kept."""
        if self._head is None and not self._take_head():
            return None
        head, body = self._head, self._body
        if head is None or (body is not None and not self._take_body(body)):
            return None
        self._head = self._body = self._chunks = None
        return ReadRequest(head, body.finish() if body is not None else None)

    def take_rest(self) -> bytes:
        """All that came and was not read."""
        rest = bytes(self._buffer)
        self._buffer.clear()
        return rest

    def drop(self) -> None:
        """The connection is gone: nothing more is read."""
        if self._body is not None:
            self._body.discard()
            self._body = None
        self._buffer.clear()

    def _take_head(self) -> bool:
        buffer = self._buffer
        del buffer[: len(buffer) - len(buffer.lstrip(_BLANKS))]
        end = _EMPTY_LINE(buffer)
        if end is None or end.end() > MOST_REQUEST_HEAD:
            if len(buffer) > MOST_REQUEST_HEAD:
                raise InvalidRequestError(431, f"header block over {MOST_REQUEST_HEAD} bytes")
            return False
        head = parse_request_head(bytes(buffer[: end.end()]))
        if head is None:
            raise InvalidRequestError(400, "not an HTTP/1.1 request")
        del buffer[: end.end()]
        if head.length > _MOST_BODY:
            raise InvalidRequestError(413, f"body over {_MOST_BODY} bytes")
        self._head = head
        if head.kind != "none":
            self._body = self._make_body()
            self._left = head.length
        if head.kind == "chunked" and self._body is not None:
            self._chunks = ChunkWalker()
            self._body.begin_chunked()
        return True

    def _take_body(self, body: RequestBody) -> bool:
        data = bytes(self._buffer) if self._chunks else bytes(self._buffer[: self._left])
        if not data:
            return False
        if self._chunks is None:
            used = len(data)
            self._left -= used
            body.add(data, None)
            done = not self._left
        else:
            used, payload = self._chunks.feed(data)
            body.add(data[:used], payload)
            done = self._chunks.done
            if self._chunks.malformed:
                raise InvalidRequestError(400, "malformed chunk line")
            if body.length > _MOST_BODY:
                raise InvalidRequestError(413, f"body over {_MOST_BODY} bytes")
        del self._buffer[:used]
        return done
