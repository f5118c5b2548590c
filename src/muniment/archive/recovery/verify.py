"""Verifying before sealing: a full file is read once, against its row journal, before it gets its final name.

Every byte is held to the checksum that was taken when it was written; one exchange in 128 is inflated, too, and held to
gzip's own checksum and its records' lengths (decision 0075). Digests are for `check`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

from isal import isal_zlib
from msgspec import Struct

from muniment.archive.durable import archive_error, seal, taken
from muniment.archive.index.journal import JournalEntry, entries, journal_path
from muniment.archive.names import OPEN_SUFFIX
from muniment.archive.warc.inflate import DamageError, MemberReader

__all__ = ["Damage", "open_names", "verify", "verify_and_seal"]

_ONE_IN = 128
"""Inflating costs fifteen times what the checksum does; it is for faults of the compressor, which hit more than one."""
_PIECE = 1 << 20
_HEADER_END = b"\r\n\r\n"
_RECORD_END = 4
_LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*+([0-9]{1,18}+)[ \t]*+\r\n", re.IGNORECASE)


class Damage(Struct, frozen=True):
    """The first thing that is wrong with a file, and where."""

    name: str
    """The final file name."""
    offset: int
    """The offset of its exchange, in bytes."""
    text: str


def open_names(out: Path) -> list[str]:
    """The final names of the files of a directory that have none yet, in order."""
    return sorted(path.name.removesuffix(OPEN_SUFFIX) for path in out.glob("*.warc.gz" + OPEN_SUFFIX))


def verify_and_seal(out: Path, parts: Path, name: str) -> Damage | None:
    """Give a file that nobody writes to its final name if it is whole; otherwise change nothing and say what is wrong.

    A file that is sealed already is left as it is. May be killed at any instant and repeated. Blocks. Raises
    ArchiveError, among others when another file has the name.
    """
    path = out / (name + OPEN_SUFFIX)
    if (out / name).exists():
        if path.exists():
            raise taken(path, out / name)
        return None
    try:
        damage = verify(path, name, entries(journal_path(parts, name)))
        if damage is None:
            seal(path, out / name)
    except OSError as error:
        raise archive_error(error, path) from error
    return damage


def verify(path: Path, name: str, journalled: Iterable[JournalEntry]) -> Damage | None:
    """Read a file in step with its row journal; the first damage, or None for a whole file. Flat in memory."""
    size = path.stat().st_size
    reader = MemberReader(path, size)
    try:
        with path.open("rb", buffering=_PIECE) as file:
            way = _Way(file, reader)
            try:
                way.go(journalled, size)
            except DamageError as error:
                return Damage(name, way.at, str(error))
    finally:
        reader.close()
    return None


class _Way:
    """One way through a file; `at` is where the present exchange begins."""

    def __init__(self, file: BinaryIO, reader: MemberReader) -> None:
        self._file, self._reader = file, reader
        self.at = 0

    def go(self, journalled: Iterable[JournalEntry], size: int) -> None:
        """To the end; raises DamageError at the first thing that is wrong."""
        for number, entry in enumerate(journalled):
            known, found = entry.checksum, _checksum(self._file, entry.warc_length - self.at)
            if known is not None and known != found:
                raise DamageError("the bytes differ from those that were written")
            if known is None or number % _ONE_IN == 0:
                _read_exchange(self._reader, self.at, entry)
            self.at = entry.warc_length
        if self.at != size:
            raise DamageError(f"the row journal vouches for {self.at} bytes, and the file has {size}")


def _checksum(file: BinaryIO, length: int) -> int:
    """CRC-32 of the next bytes."""
    crc = 0
    while length:
        piece = file.read(min(length, _PIECE))
        if not piece:
            raise DamageError("the file ends before the last capture in its row journal")
        crc = isal_zlib.crc32(piece, crc)
        length -= len(piece)
    return crc


def _read_exchange(reader: MemberReader, begin: int, entry: JournalEntry) -> None:
    """Inflate the members of one entry: they fill it, and the first is at the offset of its capture."""
    place = _place(entry)
    reader.position = begin
    while reader.position < entry.warc_length:
        begin = reader.position
        _read_record(reader)
        if place not in {None, (begin, reader.position - begin)}:
            raise DamageError("the member is not at its offset in the row journal")
        place = None
    if reader.position != entry.warc_length:
        raise DamageError(f"the member ends after byte {entry.warc_length}, its end in the row journal")


def _read_record(reader: MemberReader) -> None:
    """Use up one member: whole by gzip's checksum and length, and as long as its record says."""
    pieces = reader.pieces()
    first = next(pieces, b"")
    length = len(first) + sum(map(len, pieces))
    end = first.find(_HEADER_END)
    found = _LENGTH.search(first, 0, end + 2) if end >= 0 else None
    if not first.startswith(b"WARC/") or found is None:
        raise DamageError("the member does not begin with a record header")
    if length != end + len(_HEADER_END) + int(found[1]) + _RECORD_END:
        raise DamageError(f"the record says that its block has {int(found[1])} bytes, which does not fit its member")


def _place(entry: JournalEntry) -> tuple[int, int] | None:
    """Offset and length of the first member of an entry that has one: its response or revisit record."""
    capture = entry.capture
    if capture is None or capture.warc_offset is None or capture.warc_length is None:
        return None
    return capture.warc_offset, capture.warc_length
