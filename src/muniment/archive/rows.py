"""Index rows from exchanges and failures (contract, "Rows of the index"): pure."""

from __future__ import annotations

from functools import lru_cache

from muniment.model.capture import Capture, PageContext
from muniment.model.exchange import Exchange
from muniment.model.failure import Failure

__all__ = ["failure_row", "host_in", "record_row"]


Place = tuple[str, int, int]
"""File name, offset and length of a record's gzip member."""


def record_row(
    exchange: Exchange, context: PageContext, *, unchanged: bool, record_id: str, record_type: str, place: Place
) -> Capture:
    """The row of an exchange that left a record at `place`."""
    body = exchange.body
    length = 0 if exchange.status == 304 else body.payload_length
    failure = exchange.failure
    return Capture(
        url=exchange.url,
        host=host_in(exchange.url),
        status=exchange.status,
        fetched_at=exchange.started_at // 1000 + exchange.duration_ms,
        content_type=exchange.header("content-type"),
        body_length=length,
        digest=body.payload_sha1.hex() if length else "",
        unchanged=unchanged,
        warc_file=place[0],
        warc_offset=place[1],
        warc_length=place[2],
        error=_text(str(failure)) if failure else "",
        meta_json=context.meta_json,
        record_id=record_id,
        record_type=record_type,
        ip=exchange.ip,
        started_at=exchange.started_at,
        duration_ms=exchange.duration_ms,
        ttfb_ms=exchange.ttfb_ms,
        redirect_to=context.redirect_to,
        seed_url=context.seed_url,
        attempt=context.attempt,
        depth=context.depth,
        found_as=context.found_as,
        truncated=exchange.truncated,
        etag=exchange.header("etag"),
        last_modified=exchange.header("last-modified"),
    )


def failure_row(url: str, failure: Failure, context: PageContext, at_us: int, exchange: Exchange | None) -> Capture:
    """The row of a try that left no record; what a broken exchange knew (times, address) is kept."""
    started_at = exchange.started_at if exchange else at_us
    duration_ms = exchange.duration_ms if exchange else 0
    return Capture(
        url=url,
        host=host_in(url),
        status=0,
        fetched_at=started_at // 1000 + duration_ms,
        content_type="",
        body_length=0,
        digest="",
        unchanged=False,
        warc_file="",
        warc_offset=None,
        warc_length=None,
        error=_text(str(failure)),
        meta_json=context.meta_json,
        record_id="",
        record_type="",
        ip=exchange.ip if exchange else "",
        started_at=started_at,
        duration_ms=duration_ms,
        ttfb_ms=exchange.ttfb_ms if exchange else 0,
        redirect_to="",
        seed_url=context.seed_url,
        attempt=context.attempt,
        depth=context.depth,
        found_as=context.found_as,
        truncated="",
        etag="",
        last_modified="",
    )


def host_in(url: str) -> str:
    """The host name of a URL that need not be one of the web; lower case, without port, empty when it has none."""
    scheme, slashes, rest = url.partition("://")
    if not slashes or not scheme:
        return ""
    return _host_of_authority(rest.partition("/")[0])


@lru_cache(maxsize=4096)
def _host_of_authority(authority: str) -> str:
    # Normalised URLs have a path, but a refused seed line may go from the host straight to its query or fragment.
    host = authority.partition("?")[0].partition("#")[0].rpartition("@")[2]
    name, _, port = host.rpartition(":")
    return (name if name and not port.endswith("]") else host).lower()


def _text(value: str) -> str:
    # The system's messages may hold bytes of a foreign encoding as lone surrogates, which neither MessagePack nor
    # Parquet can hold.
    return value.encode("utf-8", "replace").decode("utf-8")
