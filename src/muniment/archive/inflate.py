"""Reading a WARC member by member: each gzip member inflated in pieces, in flat memory."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import cast

from isal import isal_zlib

__all__ = ["DamageError", "MemberReader"]

_ERROR: type[Exception] = cast("type[Exception]", isal_zlib.error)
"""The stubs of isal call its exception class an instance."""
_GZIP = 31
_MAGIC = b"\x1f\x8b"
_BLOCK = 1 << 20
_FIRST = 4 << 10
"""The first step into a member; small, since what is read past its end is copied by the inflater."""
_MOST = 256 << 10


class DamageError(Exception):
    """The gzip layer is broken at this point, so that nothing after it can be read; stays inside the reader."""


class MemberReader:
    """The members of one file, one after the other, up to `limit` bytes."""

    def __init__(self, path: Path, limit: int) -> None:
        self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self._limit = limit
        self._buffer = b""
        self._base = 0
        self.position = 0
        """Where the next member begins, once the pieces of the present one are used up."""

    def close(self) -> None:
        """Give back the descriptor."""
        os.close(self._fd)

    @property
    def at_end(self) -> bool:
        """Whether everything up to the limit has been read."""
        return self.position >= self._limit

    def pieces(self) -> Iterator[bytes]:
        """The contents of the member at `position`, at most 1 MiB at a time; must be used up.

        Raises `DamageError` for what is no whole gzip member with the right checksum.
        """
        if bytes(self._window(2)) != _MAGIC:
            raise DamageError("not a gzip member: bytes after the last member")
        inflater = isal_zlib.decompressobj(_GZIP)
        step = _FIRST
        while not inflater.eof:
            window = self._window(step)
            got = False
            for piece in _inflated(inflater, window):
                got = True
                yield piece
            if not window and not got:
                raise DamageError("the file ends inside a gzip member")
            self.position += len(window) - len(inflater.unused_data)
            step = min(step * 2, _MOST)

    def _window(self, size: int) -> memoryview:
        start = self.position - self._base
        if start + size > len(self._buffer) and self._base + len(self._buffer) < self._limit:
            self._buffer = os.pread(self._fd, min(_BLOCK, self._limit - self.position), self.position)
            self._base, start = self.position, 0
        return memoryview(self._buffer)[start : start + size]


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
