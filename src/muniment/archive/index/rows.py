"""Index rows from exchanges and failures: pure."""

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
    body, failure = exchange.body, exchange.failure
    length = 0 if exchange.status == 304 else body.payload_length
    # turned round, for the first of several counts
    fields = dict(reversed(exchange.headers))
    return Capture(
        exchange.url,
        host_in(exchange.url),
        exchange.status,
        exchange.started_at // 1000 + exchange.duration_ms,
        fields.get("content-type", ""),
        length,
        body.payload_sha1.hex() if length else "",
        unchanged,
        place[0],
        place[1],
        place[2],
        _text(str(failure)) if failure else "",
        context.meta_json,
        record_id,
        record_type,
        exchange.ip,
        exchange.started_at,
        exchange.duration_ms,
        exchange.ttfb_ms,
        context.redirect_to,
        context.seed_url,
        context.attempt,
        context.depth,
        context.found_as,
        exchange.truncated,
        fields.get("etag", ""),
        fields.get("last-modified", ""),
        exchange.method,
        context.page_id,
        context.engine,
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
        method=exchange.method if exchange else "GET",
        page_id=context.page_id,
        engine=context.engine,
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
