"""Plain text of what users give as files: gzip is unpacked, UTF-16 becomes UTF-8, other packings are named."""

from __future__ import annotations

import codecs
import zlib
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path

from muniment.errors import UsageError

__all__ = ["HEAD", "is_plain", "plain_bytes", "plain_pieces", "plain_text"]

HEAD = 512
"""Bytes by which the form of a file is told."""
_AT_ONCE = 1 << 20
_GZIP = b"\x1f\x8b"
_MARKS = ((b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))
_PACKED = (
    (b"PK\x03\x04", "a zip archive", "unpack it"),
    (b"\xfd7zXZ", "packed with xz", "unpack it with xz -d"),
    (b"BZh", "packed with bzip2", "unpack it with bunzip2"),
    (b"\x28\xb5\x2f\xfd", "packed with zstd", "unpack it with zstd -d"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive", "unpack it"),
    (b"PAR1", "Parquet", "give it to fetch with --from parquet"),
    (b"SQLite format 3\0", "an SQLite database", "write its URLs to a text file"),
    (b"%PDF-", "PDF", "write its URLs to a text file"),
)


def is_plain(head: bytes) -> bool:
    """Whether a file that begins so is text that can be read as it lies there."""
    packed = head.startswith((_GZIP, *(mark for mark, _, _ in _PACKED)))
    return not packed and not _two_byte(head)


def plain_bytes(raw: bytes, what: str) -> bytes:
    """The UTF-8 text that bytes hold, other one-byte charsets unchanged; raises UsageError that begins with `what`."""
    return b"".join(plain_pieces([raw], what))


def plain_text(path: Path, what: str, charset: str = "utf-8") -> str:
    """The text of a file, its lines ended by newlines alone; raises OSError, UnicodeError and UsageError."""
    text = plain_bytes(path.read_bytes(), what).decode(charset)
    return text.replace("\r\n", "\n").replace("\r", "\n")


def plain_pieces(pieces: Iterable[bytes], what: str) -> Iterator[bytes]:
    """The same, piece by piece, in flat memory."""
    head, whole = _headed(pieces)
    if head.startswith(_GZIP):
        head, whole = _headed(_unpacked(whole, what))
        if head.startswith(_GZIP):
            raise UsageError(f"{what} is packed with gzip twice; unpack it")
    for mark, form, remedy in _PACKED:
        if head.startswith(mark):
            raise UsageError(f"{what} is {form}, not text; {remedy}")
    codec = _two_byte(head)
    return _as_utf8(whole, codec, what) if codec else iter(whole)


def _headed(pieces: Iterable[bytes]) -> tuple[bytes, Iterable[bytes]]:
    """How pieces begin, and all of them."""
    left = iter(pieces)
    head = b""
    for piece in left:
        head += piece
        if len(head) >= HEAD:
            break
    return head[:HEAD], chain([head], left)


def _two_byte(head: bytes) -> str:
    """The codec of a text in UTF-16, by its mark or because every other byte is NUL; empty for other texts."""
    for mark, codec in _MARKS:
        if head.startswith(mark):
            return codec
    if len(head) < 4 or b"\0" not in head:
        return ""
    begin = head[: len(head) // 2 * 2]
    if not begin[1::2].strip(b"\0") and b"\0" not in begin[::2]:
        return "utf-16-le"
    return "utf-16-be" if not begin[::2].strip(b"\0") and b"\0" not in begin[1::2] else ""


def _unpacked(pieces: Iterable[bytes], what: str) -> Iterator[bytes]:
    """The members of gzip data, one after the other."""
    reader = zlib.decompressobj(31)
    try:
        for piece in pieces:
            left, more = piece, True
            while more:
                made = reader.decompress(left, _AT_ONCE)
                yield made
                if reader.eof:
                    # zeros after the last member are padding
                    left = reader.unused_data.lstrip(b"\0")
                    reader = zlib.decompressobj(31) if left else reader
                    more = bool(left)
                else:
                    left = reader.unconsumed_tail
                    more = bool(left) or len(made) == _AT_ONCE
    except zlib.error:
        raise UsageError(f"{what} is damaged: its gzip data cannot be unpacked") from None
    if not reader.eof:
        raise UsageError(f"{what} is cut off: its gzip data has no end")


def _as_utf8(pieces: Iterable[bytes], codec: str, what: str) -> Iterator[bytes]:
    decoder = codecs.getincrementaldecoder(codec)()
    first = True
    try:
        for piece in chain(pieces, [None]):
            text = decoder.decode(piece or b"", piece is None)
            if text:
                yield (text.removeprefix("\ufeff") if first else text).encode()
                first = False
    except UnicodeError:
        raise UsageError(f"{what} begins as UTF-16, but is not valid UTF-16; write it as UTF-8") from None
