"""A capture: one row of the index, one HTTP exchange or a page's final failure."""

from __future__ import annotations

from msgspec import Struct

__all__ = ["LISTED_AGAIN", "Capture", "EarlierCapture", "PageContext"]

LISTED_AGAIN = "listed-again"
"""What `found_as` says in the row of a list's line whose URL an earlier line has: the row has no record of its own."""


class Capture(Struct, frozen=True, array_like=True):
    """One row of `captures.parquet`; the fields are the columns, in order.

    It is filled by position, like the structs below, `Exchange` and `Finished`: with msgspec, names take up to
    seventeen times as long. A new field goes to the end, or to each place that makes one.
    """

    url: str
    host: str
    status: int
    fetched_at: int
    """Completion, Unix milliseconds."""
    content_type: str
    body_length: int
    digest: str
    """SHA-1 of the payload, lower-case hex; empty when none."""
    unchanged: bool
    warc_file: str
    """The final file name, never `.open`; empty when there is no record."""
    warc_offset: int | None
    warc_length: int | None
    error: str
    meta_json: str
    record_id: str
    """`urn:uuid:…` of the response or revisit record; empty when there is no record."""
    record_type: str
    """`response`, `revisit`, or empty."""
    ip: str
    started_at: int
    """Unix microseconds; the WARC-Date of the exchange's records."""
    duration_ms: int
    ttfb_ms: int
    redirect_to: str
    """The redirect's target, resolved and normalised; empty when the response is not a redirect."""
    seed_url: str
    attempt: int
    depth: int
    """Fewest link hops known when the page was claimed; -1 when it is only a requisite."""
    found_as: str
    truncated: str
    etag: str
    last_modified: str
    method: str = "GET"
    """As sent."""
    page_id: str = ""
    """The page that a browser or a hook had open when it asked, or the crawl; empty when the engine asked by itself."""
    engine: str = "http"
    """Who asked: `http`, `browser` or `hook`."""


class EarlierCapture(Struct, frozen=True):
    """An earlier capture of the same payload: what a revisit refers to."""

    url: str
    captured_at: int | None
    """The WARC-Date of the earlier record, µs; None when the seed list does not know it."""
    record_id: bytes = b""
    """Its sixteen bytes, already synced in this directory; empty for a record in another directory."""


class PageContext(Struct, frozen=True):
    """The facts of the page that an exchange belongs to, for the archive."""

    via: str
    """The page that led here first; empty for a start page."""
    depth: int
    found_as: str
    attempt: int
    seed_url: str
    meta_json: str
    redirect_to: str
    outlinks: bytes = b""
    """The lines of the metadata record that name the links found."""
    page_id: str = ""
    engine: str = "http"
    resource_type: str = ""
    """WARC-Resource-Type, when a browser or a hook asked."""
