"""Exchange records: those of an exchange, before they have a place in a file. Nothing here writes."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from muniment.archive.warc import records
from muniment.archive.warc.digest_labels import sha1_labels, sha1_of
from muniment.archive.warc.members import Part, deflate_member, deflate_quickly, store_member, stores
from muniment.archive.warc.records import RECORD_END, ExchangeHeader
from muniment.archive.warc.revisits import is_revisit
from muniment.clock import new_record_urn
from muniment.model.capture import EarlierCapture, PageContext
from muniment.model.exchange import Exchange

__all__ = ["LARGE", "ExchangeRecords", "RecordSource", "build_records", "compress"]

RecordSource = tuple[Exchange, PageContext, EarlierCapture | None, bool]
"""What records are made of: the exchange, what is known of it, its earlier capture, and whether it is unchanged."""

LARGE = 1 << 20
"""Larger blocks are streamed: digested in one pass, compressed in a second."""


class ExchangeRecords(Struct):
    """One exchange's records."""

    source: RecordSource
    warcinfo: str
    """The warcinfo record of the only file that they fit into."""
    record_id: str
    record_type: str
    stored: bool
    """The first record is not deflated."""
    parts: Sequence[Part]
    """The first record, a response or revisit; of a large response the header alone."""
    beside: Sequence[bytes]
    """The members of its request and metadata records."""
    large_request: bytes = b""
    """The header of its request record, when that has a body which is too large to be among `beside`."""
    member: bytes = b""
    """The first record's member, once it is compressed; never that of a large response."""


def build_records(sources: Sequence[RecordSource], warcinfo: str) -> list[ExchangeRecords]:
    """The records of exchanges, the first of each not yet compressed; a revisit of its earlier capture if it may be.

    Raises OSError when a large body's file cannot be read.
    """
    kinds = ["revisit" if is_revisit(one[0], one[2], unchanged=one[3]) else "response" for one in sources]
    digests = [digest for one, kind in zip(sources, kinds, strict=True) for digest in _digests(one[0], kind)]
    labels = sha1_labels(digests)
    return [
        _build(one, kind, warcinfo, labels[3 * at : 3 * at + 3])
        for at, (one, kind) in enumerate(zip(sources, kinds, strict=True))
    ]


def _build(source: RecordSource, kind: str, warcinfo: str, labels: Sequence[str]) -> ExchangeRecords:
    """`labels` are those of the digests of the payload, of the block and of the request."""
    exchange, context, earlier, _ = source
    payload, block, request = labels
    if exchange.status == 304:
        payload = ""
    event = ExchangeHeader.of(exchange, warcinfo, context)
    urn = new_record_urn()
    stored, body = False, exchange.body
    parts: Sequence[Part]
    if kind == "revisit" and earlier is not None:
        length = len(exchange.head)
        header = records.revisit_header(event, urn, earlier, payload=payload, block=block, length=length)
        parts = (header, exchange.head, RECORD_END)
    else:
        stored = stores(exchange.header("content-type"), exchange.header("content-encoding"), body.length)
        length = len(exchange.head) + body.length
        cut = exchange.truncated
        header = records.response_header(event, urn, truncated=cut, payload=payload, block=block, length=length)
        parts = (header,) if body.length > LARGE else (header, exchange.head, *body.wire(), RECORD_END)
    beside, large = [], b""
    if exchange.request_body is None:
        beside = [deflate_quickly(records.request_record(event, new_record_urn(), urn, exchange.request, request))]
    else:
        length = len(exchange.request) + exchange.request_body.length
        large = records.request_header(event, new_record_urn(), urn, length, request)
    if told := records.metadata_block(context, exchange.duration_ms):
        beside.append(deflate_quickly(records.metadata_record(event, new_record_urn(), urn, told)))
    return ExchangeRecords(source, warcinfo, urn, kind, stored, parts, beside, large_request=large)


def compress(made: ExchangeRecords) -> None:
    """Make the first record's member; not for a large response."""
    if not made.member:
        made.member = store_member(made.parts) if made.stored else deflate_member(b"".join(made.parts))


def _digests(exchange: Exchange, kind: str) -> tuple[bytes, bytes, bytes]:
    """Of the payload, of the first record's block and of the request: three of each, for a 304 has one of nothing."""
    body = exchange.body
    block = body.block_sha1 if kind == "response" else b""
    if not block:
        block = sha1_of(exchange.head, body.wire() if kind == "response" else ())
    payload = sha1_of(b"") if exchange.status == 304 else body.payload_sha1
    sent = exchange.request_body.wire() if exchange.request_body is not None else ()
    return payload, block, sha1_of(exchange.request, sent)
