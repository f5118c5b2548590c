"""Events of the requests that come through a port, and the page that owns it."""

from __future__ import annotations

from msgspec import Struct

__all__ = ["PageOwner", "ProxyEvent", "RequestAnswered", "RequestBegun", "RequestEnded"]


class PageOwner(Struct, frozen=True, kw_only=True):
    """The page that a port belongs to: its requests are recorded under it."""

    page_id: str
    """A bare UUID: WARC-Page-ID."""
    url: str
    """The page's normalised URL, the `via` of its requisites."""
    host: str = ""
    depth: int = 0
    attempt: int = 1
    seed_url: str = ""
    meta_json: str = ""
    engine: str = "browser"
    """`browser` or `hook`: who asks."""


class RequestBegun(Struct, frozen=True):
    """A request was read."""

    number: int
    """Counts the requests of a port from 1."""
    method: str
    url: str


class RequestAnswered(Struct, frozen=True):
    """The header block of its answer is there."""

    number: int
    streamed: bool
    """An event stream, which may never end."""


class RequestEnded(Struct, frozen=True, kw_only=True):
    """A request has its whole answer, or never will."""

    number: int
    method: str
    url: str
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
    duration_ms: int = 0
    streamed: bool = False
    """An event stream, or a websocket: it does not count as unsettled."""


ProxyEvent = RequestBegun | RequestAnswered | RequestEnded
