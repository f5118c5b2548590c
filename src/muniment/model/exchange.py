"""One HTTP exchange: the exact bytes that went over the wire, and what is known about them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from msgspec import Struct

from muniment.model.failure import Failure

__all__ = ["Body", "Exchange", "RequestEnded", "RequestOutcome"]


class Body(Protocol):
    """A message body as it came over the wire (transfer coding kept), in memory or in a temporary file."""

    @property
    def length(self) -> int:
        """Bytes on the wire after the header block."""

    @property
    def payload_length(self) -> int:
        """Bytes with the transfer coding removed and the content coding kept."""

    @property
    def payload_sha1(self) -> bytes:
        """SHA-1 of the payload, 20 bytes."""

    @property
    def block_sha1(self) -> bytes:
        """SHA-1 of its exchange's header block and its own wire bytes, if it got the block; otherwise empty."""

    @property
    def in_memory(self) -> bool:
        """Whether the bytes can be had without reading a file."""

    def know(self, payload_sha1: bytes, block_sha1: bytes) -> None:
        """Take in digests from who computed them along with others: the payload's, and that of its exchange's block."""

    def wire(self) -> Iterator[bytes | memoryview]:
        """The bytes as received, in order, in pieces."""

    def payload(self, limit: int) -> bytes:
        """At most `limit` bytes of the payload."""

    def close(self) -> None:
        """Give back the temporary file, if there is one; safe to call twice."""


class Exchange(Struct, frozen=True):
    """One request and what came back.

    `head` is empty when no complete header block with an HTTP status line arrived: then there is no record, `status`
    is 0 and `failure` says why. A complete exchange has `failure` None and `truncated` empty.
    """

    url: str
    request: bytes
    """Exactly the bytes sent."""
    head: bytes
    """Status line and header block through the empty line, exactly as received; interim (1xx) responses left out."""
    body: Body
    status: int
    headers: tuple[tuple[str, str], ...]
    """Names in lower case, values stripped, both Latin-1 decoded, in order, repeats kept, folded lines joined."""
    ip: str
    """The peer's address (RFC 5952 for IPv6); empty when unknown, as behind a proxy."""
    tls: str
    """`tls/1.3`, `tls/1.2`…; empty for plain HTTP."""
    cipher: str
    """IANA name of the cipher suite; empty for plain HTTP."""
    started_at: int
    """When the request began, µs since the epoch."""
    ttfb_ms: int
    """From sending the request to the first byte of the response."""
    duration_ms: int
    """From `started_at` to the last byte; with `started_at` gives the completion time."""
    truncated: str
    """WARC-Truncated: `length`, `time`, `disconnect`, `unspecified`, or empty."""
    failure: Failure | None
    method: str = "GET"
    request_body: Body | None = None
    """What was sent after `request`, when that is too large to be a part of it."""

    def header(self, name: str) -> str:
        """The first value of a header (name in lower case), or the empty string."""
        for n, value in self.headers:
            if n == name:
                return value
        return ""

    def field(self, name: str) -> str:
        """All values of a header (name in lower case) as one list, which is what they are (RFC 9110 §5.3)."""
        return ", ".join([value for n, value in self.headers if n == name])


class RequestOutcome(Struct, frozen=True, kw_only=True):
    """What became of a request that a page made."""

    status: int = 0
    """0 without an answer of a server."""
    mime: str = ""
    """The media type, in lower case, without parameters."""
    type: str = "other"
    """The resource type: `document stylesheet image media font script xhr fetch …`."""
    size: int = 0
    """Bytes of the payload."""
    error: str = ""
    """`code: text` of a failure or refusal."""
    refused: str = ""
    """Its code when no server was asked: the client was answered 403, and there is no record."""
    from_cache: bool = False
    streamed: bool = False
    """An event stream, or a websocket: it does not count as unsettled."""
    offers: tuple[str, ...] = ()
    """URLs of the images among which a style sheet has a browser choose."""


class RequestEnded(RequestOutcome, frozen=True, kw_only=True):
    """A request has its whole answer, or never will."""

    number: int
    method: str
    url: str
    duration_ms: int = 0
