"""The wire reader: any split of the same bytes gives the same exchange, chunked bodies included."""

from __future__ import annotations

from pathlib import Path

from tests.support.odd_responses import ODD_RESPONSES
from tests.support.raw_server import Send

from muniment.fetch.body_spool import BodyBuilder, MemoryUse
from muniment.fetch.wire import ResponseReader

_SPLITS = bytes([3, 1, 7, 40])
"""Before the response: how many bytes the pieces have, by turns."""
SEEDS = [
    _SPLITS + wire
    for odd in ODD_RESPONSES
    if len(wire := b"".join(step.data for step in odd.script if isinstance(step, Send))) < 1000
]


def check(data: bytes) -> None:
    """Read a response whole, byte by byte, and in pieces of the lengths that the first four bytes say."""
    lengths, wire = [byte + 1 for byte in data[:4]] or [1], data[4:]
    whole = _read([wire])
    assert _read([wire[at : at + 1] for at in range(len(wire))]) == whole, "byte by byte"
    assert _read(_split(wire, lengths)) == whole, "in pieces"


def _split(wire: bytes, lengths: list[int]) -> list[bytes]:
    pieces, at = [], 0
    while at < len(wire):
        length = lengths[len(pieces) % len(lengths)]
        pieces.append(wire[at : at + length])
        at += length
    return pieces


def _read(pieces: list[bytes]) -> tuple[object, ...]:
    builder = BodyBuilder(Path("unused"), MemoryUse())
    reader = ResponseReader(builder)
    for piece in pieces:
        if reader.feed(piece):
            break
    reader.end("cut")
    body = builder.finish()
    head = reader.head
    found = (head.raw, head.headers) if head else None
    payload = (body.payload(1 << 30), body.payload_length, body.payload_sha1)
    return found, b"".join(body.wire()), payload, reader.truncated, str(reader.failure), reader.done
