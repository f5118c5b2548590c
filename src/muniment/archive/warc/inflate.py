"""Reading a WARC member by member: each gzip member inflated in pieces, in flat memory."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import cast

from isal import isal_zlib

__all__ = ["DamageError", "MemberReader", "next_record"]

_ERROR: type[Exception] = cast("type[Exception]", isal_zlib.error)
"""The stubs of isal call its exception class an instance."""
_GZIP = 31
_MAGIC = b"\x1f\x8b"
_DEFLATED = _MAGIC + b"\x08"
_USUAL = b"\x1f\x8b\x08\x00\x00\x00\x00\x00"
"""How members begin that Muniment writes, and ISA-L; the two bytes after it are the level and the system."""
_RECORD = b"WARC/"
_BLOCK = 1 << 20
_FIRST = 8 << 10
"""The first step into a member whose end is not known; what is read past the end is copied by the inflater."""
_MOST = 256 << 10
_STEP = 64 << 10
"""What is searched at once for a member's beginning."""


class DamageError(Exception):
    """The gzip layer is broken at this point, so that this member cannot be read; stays inside the reader."""


class MemberReader:
    """The members of one file, one after the other, from `start` up to `limit` bytes."""

    def __init__(self, path: Path, limit: int, start: int = 0) -> None:
        self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self._limit = limit
        self._buffer = b""
        self._base = 0
        self.position = start
        """Where the next member begins, once the pieces of the present one are used up."""

    def close(self) -> None:
        """Give back the descriptor."""
        os.close(self._fd)

    def pieces(self) -> Iterator[bytes]:
        """The contents of the member at `position`, in pieces of 1 MiB or a little more; must be used up.

        Raises `DamageError` for anything but a whole gzip member with the right checksum.
        """
        if bytes(self._window(2)) != _MAGIC:
            raise DamageError("not a gzip member")
        inflater = isal_zlib.decompressobj(_GZIP)
        step = self._usual_length() or _FIRST
        held: list[bytes] = []
        size = 0
        while not inflater.eof:
            window = self._window(step)
            for piece in _inflated(inflater, window):
                held.append(piece)
                size += len(piece)
                if size >= _BLOCK:
                    yield b"".join(held)
                    held.clear()
                    size = 0
            if not window and not inflater.eof:
                raise DamageError("the file ends inside a gzip member")
            self.position += len(window) - len(inflater.unused_data)
            step = min(max(step * 4, _FIRST), _MOST)
        if held:
            yield held[0] if len(held) == 1 else b"".join(held)

    def whole(self, length: int = 0) -> bytes | None:
        """The contents of the member at `position`, which moves on; None for one that only `pieces` can read.

        That is one that is not sound, has more than 1 MiB, or does not end after `length` bytes; without a length,
        where the next one seems to begin.
        """
        if length:
            self._window(length)
        else:
            length = self._usual_length()
        start = self.position - self._base
        member = memoryview(self._buffer)[start : start + length]
        # what its last bytes say of its length is not relied on, but it saves a try
        if not length or int.from_bytes(member[-4:], "little") > _BLOCK:
            return None
        inflater = isal_zlib.decompressobj(_GZIP)
        try:
            data: bytes = inflater.decompress(member, _BLOCK)
        except _ERROR:
            return None
        if not inflater.eof or inflater.unused_data:
            return None
        self.position += length
        return data

    def _usual_length(self) -> int:
        """Up to what looks like the next member: to inflate it in one step costs the least. 0 when none is near.

        Nothing relies on it.
        """
        self._window(len(_USUAL))
        start = self.position - self._base
        if not self._buffer.startswith(_USUAL, start):
            return 0
        found = self._buffer.find(_USUAL, start + 1)
        if found < 0 and start:
            self._fill()
            start, found = 0, self._buffer.find(_USUAL, 1)
        if found < 0 and self._base + len(self._buffer) == self._limit:
            found = len(self._buffer)
        return max(found - start, 0)

    def _window(self, size: int) -> memoryview:
        start = self.position - self._base
        if start + size > len(self._buffer) and self._base + len(self._buffer) < self._limit:
            self._fill()
            start = 0
        return memoryview(self._buffer)[start : start + size]

    def _fill(self) -> None:
        self._buffer = os.pread(self._fd, min(_BLOCK, self._limit - self.position), self.position)
        self._base = self.position


def next_record(path: Path, start: int, end: int) -> int:
    """The offset of the first gzip member in `start`…`end` with the start of a WARC record; `end` when none does.

    A member that is stored and not deflated may hold another WARC as it is: then this may be one of its members.
    """
    with path.open("rb") as file:
        at, held = start, b""
        while at < end:
            file.seek(at)
            held = file.read(_STEP + _FIRST)
            found = held.find(_DEFLATED)
            while 0 <= found < _STEP and at + found < end:
                if _begins_record(held[found : found + _FIRST]):
                    return at + found
                found = held.find(_DEFLATED, found + 1)
            at += _STEP
    return end


def _begins_record(data: bytes) -> bool:
    try:
        begun: bytes = isal_zlib.decompressobj(_GZIP).decompress(data, len(_RECORD))
    except _ERROR:
        return False
    return begun == _RECORD


def _inflated(inflater: isal_zlib.Decompress, window: memoryview) -> Iterator[bytes]:
    data: memoryview | bytes = window
    try:
        while True:
            if piece := inflater.decompress(data, _BLOCK):
                yield piece
            data = inflater.unconsumed_tail
            if inflater.eof or not data:
                return
    except _ERROR as error:
        raise DamageError(f"broken gzip member: {error}") from error
