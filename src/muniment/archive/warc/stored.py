"""Reading one stored record: its header, its block, and the payload of an HTTP message in it; flat in memory."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from muniment.archive.warc.grammar import RecordHeader, is_length, parse_header
from muniment.archive.warc.inflate import DamageError, MemberReader
from muniment.http.chunked import decode
from muniment.http.head import Head, parse_head

__all__ = ["member_pieces", "plain_pieces", "read_head", "read_message", "read_record"]

_HEADER_END = b"\r\n\r\n"
_EMPTY_LINE = re.compile(rb"\n\r?\n")
_MOST_HEADER = 16 << 20
_PIECE = 256 << 10


def member_pieces(path: Path, offset: int) -> Iterator[bytes]:
    """The contents of the gzip member at an offset. Raises DamageError and OSError."""
    reader = MemberReader(path, path.stat().st_size, offset)
    try:
        yield from reader.pieces()
    finally:
        reader.close()


def plain_pieces(path: Path, offset: int) -> Iterator[bytes]:
    """The bytes of a file that is not compressed, from an offset to its end. Raises OSError."""
    with path.open("rb") as file:
        file.seek(offset)
        while piece := file.read(_PIECE):
            yield piece


def read_record(pieces: Iterator[bytes]) -> tuple[RecordHeader, Iterator[bytes]]:
    """The header of the record that begins here, and its block in pieces. Raises DamageError when there is none."""
    held = next(pieces, b"")
    while (end := held.find(_HEADER_END)) < 0:
        piece = next(pieces, b"")
        if not piece or len(held) > _MOST_HEADER:
            raise DamageError("not a whole record header")
        held += piece
    header = parse_header(held[:end])
    if not header.version.startswith("WARC/") or not is_length(header.get("content-length")):
        raise DamageError("not a record with a length")
    return header, _first(int(header.get("content-length")), held[end + len(_HEADER_END) :], pieces)


def _first(length: int, held: bytes, pieces: Iterator[bytes]) -> Iterator[bytes]:
    piece = held[:length]
    while length:
        if piece:
            yield piece
        length -= len(piece)
        if length and not (piece := next(pieces, b"")[:length]):
            raise DamageError("the record ends within its block")


def read_message(block: Iterator[bytes]) -> tuple[Head | None, Iterator[bytes]]:
    """The HTTP response in a block: its header block, and its body without transfer coding, still content-coded.

    What does not begin with an HTTP status line has no head; all of it is then the body.
    """
    head, rest = read_head(block)
    return head, map(bytes, decode(rest)) if head is not None and head.kind == "chunked" else rest


def read_head(block: Iterator[bytes]) -> tuple[Head | None, Iterator[bytes]]:
    """As `read_message`, but the body as it was sent."""
    held = b""
    for piece in block:
        held += piece
        end = _EMPTY_LINE.search(held)
        if end is not None or len(held) > _MOST_HEADER:
            break
    else:
        end = None
    head = parse_head(held[: end.end()] if end else held)
    if head is None:
        return None, _rest(held, block)
    return head, _rest(held[end.end() :] if end else b"", block)


def _rest(held: bytes, block: Iterator[bytes]) -> Iterator[bytes]:
    if held:
        yield held
    yield from block
