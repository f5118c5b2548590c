"""WARC files where they are: in a directory, or as a part of a WACZ."""

from __future__ import annotations

import struct
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from muniment.archive.durable import scratch_error
from muniment.archive.warc.inflate import DamageError, MemberReader
from muniment.errors import UsageError

__all__ = ["Container", "containers_of", "is_foreign"]

_GZIP = b"\x1f\x8b"
_WARC = b"WARC/"
_LOCAL = struct.Struct("<26xHH")
_PIECE = 1 << 20


class Container(Struct, frozen=True):
    """The bytes of one WARC file within a file."""

    name: str
    """What people know it by."""
    path: Path
    start: int
    length: int
    packed: bool
    """In gzip members, one for each record."""

    def record(self, offset: int) -> Iterator[bytes]:
        """The record at an offset of the WARC file, and perhaps what follows it. Raises DamageError and OSError."""
        if not self.packed:
            return self._plain(offset)
        return self._member(offset)

    def _member(self, offset: int) -> Iterator[bytes]:
        reader = MemberReader(self.path, self.start + self.length, self.start + offset)
        try:
            yield from reader.pieces()
        finally:
            reader.close()

    def _plain(self, offset: int) -> Iterator[bytes]:
        left = self.length - offset
        with self.path.open("rb") as file:
            file.seek(self.start + offset)
            while left > 0 and (piece := file.read(min(_PIECE, left))):
                left -= len(piece)
                yield piece


def is_foreign(path: Path) -> bool:
    """Whether a file is a WARC or a WACZ by its first bytes, whoever wrote it."""
    with path.open("rb") as file:
        head = file.read(8)
    return head.startswith((_GZIP, _WARC, b"PK\x03\x04", b"PK\x05\x06"))


def containers_of(path: Path, scratch: Path) -> list[Container]:
    """The WARC files of a file. What cannot be read in place is unpacked into `scratch`.

    Raises UsageError when it is neither a WARC nor a WACZ.
    """
    with path.open("rb") as file:
        head = file.read(4)
    if head[:2] == b"PK":
        return _of_package(path, scratch)
    return [_of_warc(path.name, path, 0, path.stat().st_size, scratch)]


def _of_package(path: Path, scratch: Path) -> list[Container]:
    try:
        with zipfile.ZipFile(path) as package:
            found = [info for info in package.infolist() if _is_warc_name(info.filename)]
            made = [_of_entry(path, package, info, scratch) for info in found]
    except (zipfile.BadZipFile, NotImplementedError, EOFError, RuntimeError) as error:
        raise UsageError(f"{path} is not a whole WACZ: {error}; fetch or copy it again") from None
    if not made:
        raise UsageError(f"{path} is a ZIP without WARC files, and not a WACZ")
    return made


def _is_warc_name(name: str) -> bool:
    return name.startswith("archive/") and name.endswith((".warc", ".warc.gz"))


def _of_entry(path: Path, package: zipfile.ZipFile, info: zipfile.ZipInfo, scratch: Path) -> Container:
    name = info.filename.removeprefix("archive/")
    if info.compress_type != zipfile.ZIP_STORED:
        with package.open(info) as entry:
            plain = _kept(iter(lambda: entry.read(_PIECE), b""), scratch)
        return _of_warc(name, plain, 0, plain.stat().st_size, scratch)
    with path.open("rb") as file:
        file.seek(info.header_offset)
        name_length, extra_length = _LOCAL.unpack(file.read(_LOCAL.size))
    start = info.header_offset + _LOCAL.size + int(name_length) + int(extra_length)
    return _of_warc(name, path, start, info.file_size, scratch)


def _of_warc(name: str, path: Path, start: int, length: int, scratch: Path) -> Container:
    with path.open("rb") as file:
        file.seek(start)
        head = file.read(len(_WARC))
    if head == _WARC:
        return Container(name, path, start, length, packed=False)
    if not head.startswith(_GZIP):
        raise UsageError(f"{path} is neither a WARC file nor a WACZ")
    whole = Container(name, path, start, length, packed=True)
    try:
        if _one_record_each(whole):
            return whole
        plain = _kept(_all_members(whole), scratch)
    except DamageError as error:
        raise UsageError(f"{path}: {name} cannot be read: {error}") from None
    return Container(name, plain, 0, plain.stat().st_size, packed=False)


def _one_record_each(whole: Container) -> bool:
    """Whether the first member is one record: a file that is one member has no places to begin at."""
    first = b"".join(_up_to(whole.record(0), _PIECE))
    if not first.startswith(_WARC):
        raise DamageError("it does not begin with a WARC record")
    return first.count(b"\r\n\r\nWARC/1.") == 0


def _up_to(pieces: Iterator[bytes], most: int) -> Iterator[bytes]:
    for piece in pieces:
        yield piece
        most -= len(piece)
        if most <= 0:
            return


def _all_members(whole: Container) -> Iterator[bytes]:
    reader = MemberReader(whole.path, whole.start + whole.length, whole.start)
    try:
        while reader.position < whole.start + whole.length:
            yield from reader.pieces()
    finally:
        reader.close()


def _kept(pieces: Iterator[bytes], scratch: Path) -> Path:
    try:
        with tempfile.NamedTemporaryFile(dir=scratch, delete=False) as file:
            for piece in pieces:
                file.write(piece)
            return Path(file.name)
    except OSError as error:
        raise scratch_error(error, scratch) from error
