"""The row journal beside an open WARC: append-only frames, one for each capture, readable after any crash.

A frame is `length u32, crc32 u32` (little-endian) and that many bytes of MessagePack. The first frame is the header
(format version, WARC name); each further one a `JournalEntry`. What follows the first incomplete or damaged frame is a
torn tail and does not count.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

import msgspec
from isal import isal_zlib

from muniment.archive.durable import rename, sync_path
from muniment.errors import ArchiveError
from muniment.model.capture import Capture

__all__ = [
    "CAPTURES",
    "FORMAT_VERSION",
    "PARTS",
    "PART_SUFFIX",
    "SUFFIX",
    "JournalEntry",
    "entries",
    "entry_frame",
    "frame",
    "frames",
    "header_frame",
    "is_torn",
    "journal_path",
    "journalled_length",
    "names_in_parts",
    "read_header",
    "rewrite",
]

FORMAT_VERSION = 1
CAPTURES = "captures.parquet"
"""The whole index, within the output directory."""
PARTS = "parts"
"""Where journals and parts of the index lie, within the output directory."""
SUFFIX = ".journal"
PART_SUFFIX = ".parquet"

_FRAME = struct.Struct("<II")
_MOST = 64 << 20
"""A length above this is garbage, not a row."""


class _Header(msgspec.Struct, frozen=True, array_like=True):
    version: int
    warc: str


class JournalEntry(msgspec.Struct, frozen=True, array_like=True):
    """One journalled step: the WARC's length after it, and the row it made; the warcinfo record makes no row."""

    warc_length: int
    capture: Capture | None
    checksum: int | None = None
    """CRC-32 of the WARC's bytes since the step before; None in the journal of an older version."""


_encode = msgspec.msgpack.Encoder().encode
_decode_header = msgspec.msgpack.Decoder(_Header).decode
_decode_entry = msgspec.msgpack.Decoder(JournalEntry).decode


def journal_path(parts: Path, name: str) -> Path:
    """Where the journal of the WARC `name` (its final name) lies."""
    return parts / (name + SUFFIX)


def names_in_parts(parts: Path) -> frozenset[str]:
    """The WARCs whose rows lie there, as a part or still as a journal."""
    return frozenset(
        path.name.removesuffix(suffix) for suffix in (PART_SUFFIX, SUFFIX) for path in parts.glob("*" + suffix)
    )


def header_frame(name: str) -> bytes:
    """The first frame of the journal of the WARC `name`."""
    return frame(_encode(_Header(FORMAT_VERSION, name)))


def entry_frame(entry: JournalEntry) -> bytes:
    """The frame of one entry."""
    return frame(_encode(entry))


def read_header(path: Path) -> str:
    """The WARC name in a journal's header, or the empty string when even the header is torn.

    Raises `ArchiveError` when the journal was written in a format of another version.
    """
    with path.open("rb") as file:
        return _header(file, path)


def entries(path: Path) -> Iterator[JournalEntry]:
    """The entries of the valid prefix, in order; a torn tail or garbage ends them silently."""
    with path.open("rb") as file:
        if not _header(file, path):
            return
        while (payload := _next_payload(file)) is not None:
            try:
                entry = _decode_entry(payload)
            except msgspec.MsgspecError:
                return
            yield entry


def is_torn(path: Path) -> bool:
    """Whether something follows the entries: a write that was cut off, or damage that hides what it vouched for."""
    with path.open("rb") as file:
        if not _header(file, path):
            return True
        read = file.tell()
        while _next_payload(file) is not None:
            read = file.tell()
        return read < path.stat().st_size


def journalled_length(path: Path) -> int:
    """The length of the WARC that the journal vouches for, in bytes."""
    length = 0
    for entry in entries(path):
        length = entry.warc_length
    return length


def rewrite(path: Path, kept: Iterable[JournalEntry]) -> None:
    """Replace a journal by one with these entries only: written aside, synced, renamed."""
    name = path.name.removesuffix(SUFFIX)
    aside = path.with_name(path.name + ".tmp")
    with aside.open("wb") as file:
        file.write(header_frame(name))
        file.writelines(entry_frame(entry) for entry in kept)
    sync_path(aside)
    rename(aside, path)


def frame(payload: bytes) -> bytes:
    """A frame with these bytes."""
    return _FRAME.pack(len(payload), isal_zlib.crc32(payload)) + payload


def _header(file: BinaryIO, path: Path) -> str:
    payload = _next_payload(file)
    if payload is None:
        return ""
    try:
        header = _decode_header(payload)
    except msgspec.MsgspecError:
        return ""
    if header.version != FORMAT_VERSION:
        raise ArchiveError(f"{path.name}: journal format {header.version}; this version reads {FORMAT_VERSION}")
    return header.warc


def frames(file: BinaryIO) -> Iterator[bytes]:
    """What the frames from here on hold; a torn tail or garbage ends them."""
    while (payload := _next_payload(file)) is not None:
        yield payload


def _next_payload(file: BinaryIO) -> bytes | None:
    head = file.read(_FRAME.size)
    if len(head) < _FRAME.size:
        return None
    length, crc = _FRAME.unpack(head)
    if length > _MOST:
        return None
    payload = file.read(length)
    if len(payload) < length or isal_zlib.crc32(payload) != crc:
        return None
    return payload
