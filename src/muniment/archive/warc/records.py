"""WARC 1.1 records as bytes (ISO 28500:2017): pure, no clock and no file.

Every record's fields come in one fixed order. A record's header block ends with the empty line; the caller adds the
block and `RECORD_END`. No value can inject a line: control characters become spaces.
"""

from __future__ import annotations

from functools import lru_cache

from msgspec import Struct

from muniment.archive.warc.digest_labels import sha1_label, sha1_of
from muniment.clock import iso_us, record_urn
from muniment.model.capture import EarlierCapture, PageContext
from muniment.model.exchange import Exchange
from muniment.model.result import PageResource

__all__ = [
    "RECORD_END",
    "ExchangeHeader",
    "block_digest_line",
    "encoded",
    "metadata_block",
    "metadata_record",
    "one_line",
    "outlink_line",
    "request_header",
    "request_record",
    "resource_record",
    "response_header",
    "revisit_header",
]

RECORD_END = b"\r\n\r\n"
"""What follows every block (WARC 1.1 §4)."""

_REVISIT = "http://netpreserve.org/warc/1.1/revisit/"
_CONTROLS = dict.fromkeys((*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x2029), " ")


class ExchangeHeader(Struct, frozen=True):
    """The fields that the records of one exchange share, ready for a header."""

    target: str
    date: str
    warcinfo: str
    """The warcinfo record's URN."""
    connection: str
    """The lines about address, protocols and cipher, each with its line end; may be empty."""
    page: str = ""
    """Those about the page that a browser or a hook had open."""
    page_id: str = ""
    """The first of them."""

    @classmethod
    def of(cls, exchange: Exchange, warcinfo: str, context: PageContext | None = None) -> ExchangeHeader:
        """The event of an exchange in the file that begins with this warcinfo record."""
        url, date = one_line(exchange.url), iso_us(exchange.started_at)
        if context is None or not context.page_id:
            return cls(url, date, warcinfo, _connection(exchange))
        kind = f"WARC-Resource-Type: {one_line(context.resource_type)}\r\n" if context.resource_type else ""
        page_id = f"WARC-Page-ID: {one_line(context.page_id)}\r\n"
        page = page_id + kind
        return cls(url, date, warcinfo, _connection(exchange) + page, page, page_id)


def response_header(
    event: ExchangeHeader, record_id: str, *, truncated: str, payload: str, block: str, length: int
) -> bytes:
    """A response record's header, with the labels of its digests; no `payload` where there is none, as in a 304."""
    cut = f"WARC-Truncated: {one_line(truncated)}\r\n" if truncated else ""
    payload = f"WARC-Payload-Digest: {payload}\r\n" if payload else ""
    return encoded(
        f"WARC/1.1\r\nWARC-Type: response\r\nWARC-Record-ID: <{record_id}>\r\nWARC-Date: {event.date}\r\n"
        f"WARC-Target-URI: {event.target}\r\nWARC-Warcinfo-ID: <{event.warcinfo}>\r\n{event.connection}{cut}{payload}"
        f"WARC-Block-Digest: {block}\r\n"
        f"Content-Type: application/http; msgtype=response\r\nContent-Length: {length}\r\n\r\n"
    )


def revisit_header(
    event: ExchangeHeader, record_id: str, earlier: EarlierCapture, *, payload: str, block: str, length: int
) -> bytes:
    """A revisit record's header (§6.7), with the labels of its digests; its block is the response's own header block.

    Its profile is identical-payload-digest, or server-not-modified where there is no payload, as in a 304.
    """
    if payload:
        profile = "identical-payload-digest"
        payload = f"WARC-Truncated: length\r\nWARC-Payload-Digest: {payload}\r\n"
    else:
        profile = "server-not-modified"
    return encoded(
        f"WARC/1.1\r\nWARC-Type: revisit\r\nWARC-Record-ID: <{record_id}>\r\nWARC-Date: {event.date}\r\n"
        f"WARC-Target-URI: {event.target}\r\nWARC-Warcinfo-ID: <{event.warcinfo}>\r\n"
        f"WARC-Profile: {_REVISIT}{profile}\r\n{_refers_to(earlier, by_url=not payload)}{event.connection}{payload}"
        f"WARC-Block-Digest: {block}\r\n"
        f"Content-Type: application/http; msgtype=response\r\nContent-Length: {length}\r\n\r\n"
    )


def request_record(event: ExchangeHeader, record_id: str, response: str, request: bytes, digest: str) -> bytes:
    """The whole request record, its end included, bound to its response; `digest` is the label of the request's."""
    return b"".join((request_header(event, record_id, response, len(request), digest), request, RECORD_END))


def request_header(event: ExchangeHeader, record_id: str, response: str, length: int, digest: str) -> bytes:
    """The header of a request record whose block has this length."""
    return encoded(
        f"WARC/1.1\r\nWARC-Type: request\r\nWARC-Record-ID: <{record_id}>\r\nWARC-Date: {event.date}\r\n"
        f"WARC-Target-URI: {event.target}\r\nWARC-Warcinfo-ID: <{event.warcinfo}>\r\n"
        f"WARC-Concurrent-To: <{response}>\r\n{event.connection}WARC-Block-Digest: {digest}\r\n"
        f"Content-Type: application/http; msgtype=request\r\nContent-Length: {length}\r\n\r\n"
    )


def resource_record(event: ExchangeHeader, response: str, resource: PageResource, digest: str) -> bytes:
    """The whole record of what a browser made of a page, its end included, bound to the page's response."""
    head = (
        f"WARC/1.1\r\nWARC-Type: resource\r\nWARC-Record-ID: <{resource.record_id}>\r\nWARC-Date: {event.date}\r\n"
        f"WARC-Target-URI: {one_line(resource.uri)}\r\nWARC-Warcinfo-ID: <{event.warcinfo}>\r\n"
        f"WARC-Concurrent-To: <{response}>\r\n{event.page_id}WARC-Payload-Digest: {digest}\r\n"
        f"WARC-Block-Digest: {digest}\r\n"
        f"Content-Type: {resource.content_type}\r\nContent-Length: {len(resource.block)}\r\n\r\n"
    )
    return b"".join((encoded(head), resource.block, RECORD_END))


def metadata_record(event: ExchangeHeader, record_id: str, response: str, block: bytes) -> bytes:
    """The whole metadata record, its end included, bound to its response."""
    head = (
        f"WARC/1.1\r\nWARC-Type: metadata\r\nWARC-Record-ID: <{record_id}>\r\nWARC-Date: {event.date}\r\n"
        f"WARC-Target-URI: {event.target}\r\nWARC-Warcinfo-ID: <{event.warcinfo}>\r\n"
        f"WARC-Concurrent-To: <{response}>\r\nWARC-Refers-To: <{response}>\r\n{event.page}{block_digest_line(block)}"
        f"Content-Type: application/warc-fields\r\nContent-Length: {len(block)}\r\n\r\n"
    )
    return b"".join((encoded(head), block, RECORD_END))


def metadata_block(context: PageContext, fetch_ms: int) -> bytes:
    """How the page was found, how long it took and where it links, as warc-fields.

    Empty for a line of a seed list: it was found by nothing, and the rest is in its row.
    """
    if context.seed_url and not context.via and not context.outlinks:
        return b""
    via = f"via: {one_line(context.via)}\r\n" if context.via else ""
    hops = f"hopsFromSeed: {context.depth}\r\n" if context.depth >= 0 else ""
    return encoded(f"{via}{hops}fetchTimeMs: {fetch_ms}\r\n") + context.outlinks


def outlink_line(url: str, label: str) -> bytes:
    """The line of a metadata block for one outlink and how it was found."""
    return encoded(one_line(f"outlink: {url} {label}") + "\r\n")


def _connection(exchange: Exchange) -> str:
    version = "http/1.0" if exchange.head.startswith(b"HTTP/1.0") else "http/1.1"
    return _connection_lines(exchange.ip, version, exchange.tls, exchange.cipher)


@lru_cache(maxsize=4096)
def _connection_lines(ip: str, version: str, tls: str, cipher: str) -> str:
    fields = (
        ("WARC-IP-Address", ip),
        ("WARC-Protocol", version),
        ("WARC-Protocol", tls),
        ("WARC-Cipher-Suite", cipher),
    )
    return "".join(f"{name}: {one_line(value)}\r\n" for name, value in fields if value)


def _refers_to(earlier: EarlierCapture, *, by_url: bool) -> str:
    """What is known of the earlier record; its URL alone only `by_url`, where nothing else leads to the payload.

    Without a date it names any capture of that URL.
    """
    record = f"WARC-Refers-To: <{record_urn(earlier.record_id)}>\r\n" if earlier.record_id else ""
    if earlier.captured_at is None and not by_url:
        return record
    date = f"WARC-Refers-To-Date: {iso_us(earlier.captured_at)}\r\n" if earlier.captured_at is not None else ""
    return f"{record}WARC-Refers-To-Target-URI: {one_line(earlier.url)}\r\n{date}"


def block_digest_line(block: bytes) -> str:
    """The field of a block's digest, with its line end."""
    return f"WARC-Block-Digest: {sha1_label(sha1_of(block))}\r\n"


def one_line(value: str) -> str:
    """A value that cannot inject a line: control characters become spaces."""
    return value if value.isprintable() else value.translate(_CONTROLS)


def encoded(text: str) -> bytes:
    """UTF-8; characters that it cannot hold become question marks."""
    return text.encode("utf-8", "replace")
