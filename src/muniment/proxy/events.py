"""Events of the requests that come through a port, and the page that owns it."""

from __future__ import annotations

from msgspec import Struct

from muniment.model.exchange import RequestEnded

__all__ = ["PageOwner", "ProxyEvent", "RequestAnswered", "RequestBegun", "RequestEnded", "RequestHeld"]


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


class RequestHeld(Struct, frozen=True):
    """A request waits for the turn of its host, or no more."""

    number: int
    held: bool


ProxyEvent = RequestBegun | RequestHeld | RequestAnswered | RequestEnded
