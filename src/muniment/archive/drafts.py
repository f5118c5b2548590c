"""Drafts: the records of an exchange before they have a place in a file. Nothing here writes."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from muniment.archive import records
from muniment.archive.digests import sha1_of
from muniment.archive.members import Part, deflate_member, deflate_quickly, store_member, stores
from muniment.archive.records import RECORD_END, Event
from muniment.clock import new_record_urn
from muniment.model.capture import Earlier, PageContext
from muniment.model.exchange import Exchange

__all__ = ["LARGE", "REVISIT_ABOVE", "Draft", "Wanted", "compress", "draft"]

Wanted = tuple[Exchange, PageContext, Earlier | None, bool]
"""What a draft is made of: the exchange, what is known of it, its earlier capture, and whether it is unchanged."""

REVISIT_ABOVE = 100
"""Payloads of at most so many bytes are always stored again: a revisit would be no smaller."""

LARGE = 1 << 20
"""Larger blocks are streamed: digested in one pass, compressed in a second."""


class Draft(Struct):
    """One exchange's records."""

    wanted: Wanted
    warcinfo: str
    """The warcinfo record of the only file that they fit into."""
    record_id: str
    record_type: str
    stored: bool
    """The first record is not deflated."""
    parts: Sequence[Part]
    """The first record, a response or revisit; of a large response the header alone."""
    beside: Sequence[bytes]
    """The members of the records that tell of it: request and metadata."""
    member: bytes = b""
    """The first record's member, once it is compressed; never that of a large response."""


def draft(wanted: Wanted, warcinfo: str) -> Draft:
    """The records of an exchange, the first not yet compressed; a revisit of its earlier capture when it may be one.

    Raises OSError when a large body's file cannot be read.
    """
    exchange, context, earlier, unchanged = wanted
    event = Event.of(exchange, warcinfo)
    urn = new_record_urn()
    if earlier is not None and _may_revisit(exchange, unchanged=unchanged):
        record_type, stored = "revisit", False
        header = records.revisit_header(event, urn, earlier, _payload_sha1(exchange), exchange.head)
        parts: Sequence[Part] = (header, exchange.head, RECORD_END)
    else:
        record_type = "response"
        stored = stores(exchange.header("content-type"), exchange.header("content-encoding"), exchange.body.length)
        parts = _response(exchange, event, urn)
    beside = [deflate_quickly(records.request_record(event, new_record_urn(), urn, exchange.request))]
    if block := records.metadata_block(context, exchange.duration_ms):
        beside.append(deflate_quickly(records.metadata_record(event, new_record_urn(), urn, block)))
    return Draft(wanted, warcinfo, urn, record_type, stored, parts, beside)


def compress(made: Draft) -> None:
    """Make the first record's member; not for a large response."""
    if not made.member:
        made.member = store_member(made.parts) if made.stored else deflate_member(b"".join(made.parts))


def _response(exchange: Exchange, event: Event, urn: str) -> Sequence[Part]:
    body = exchange.body
    large = body.length > LARGE
    pieces = [] if large else list(body.wire())
    header = records.response_header(
        event,
        urn,
        truncated=exchange.truncated,
        payload_sha1=_payload_sha1(exchange),
        block_sha1=body.block_sha1 or sha1_of(exchange.head, body.wire() if large else pieces),
        length=len(exchange.head) + body.length,
    )
    return (header,) if large else (header, exchange.head, *pieces, RECORD_END)


def _may_revisit(exchange: Exchange, *, unchanged: bool) -> bool:
    if exchange.truncated or exchange.failure is not None:
        return False
    return unchanged or (exchange.status != 304 and exchange.body.payload_length > REVISIT_ABOVE)


def _payload_sha1(exchange: Exchange) -> bytes | None:
    """The payload's digest; None for a 304, which has no payload."""
    return None if exchange.status == 304 else exchange.body.payload_sha1
