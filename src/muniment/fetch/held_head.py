"""A header block that is not complete yet: in memory when small, in an unnamed temporary file when memory is scarce."""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path
from typing import IO

from muniment.fetch.memory_use import SMALL, MemoryUse

__all__ = ["HeldHead"]

_TAIL = 3
"""Bytes of an empty line that may have come before the rest of it."""


class HeldHead:
    """The bytes so far, counted against the budget while they are in memory."""

    __slots__ = ("_bytes", "_counted", "_file", "_folder", "_use", "length")

    def __init__(self, folder: Path, use: MemoryUse) -> None:
        self._folder, self._use = folder, use
        self._bytes = bytearray()
        self._file: IO[bytes] | None = None
        self._counted = 0
        self.length = 0

    @property
    def in_memory(self) -> bool:
        """Whether the bytes can be had without reading a file."""
        return self._file is None

    def add(self, data: bytes | bytearray) -> bytearray:
        """Keep more bytes, in memory for now; all of them. Raises OSError when a file cannot be read."""
        if self._file is not None:
            self._file.seek(0)
            self._bytes = bytearray(self._file.read())
            if len(self._bytes) != self.length:
                raise OSError("a spooled header block is shorter than what was written to it")
            self._end_file()
        self._bytes += data
        self.length = len(self._bytes)
        self._count(self.length)
        return self._bytes

    def settle(self) -> None:
        """Nothing ended: what is long goes to a file when memory is scarce. Raises OSError when that takes nothing."""
        if self.length > SMALL and self._use.scarce:
            self._file = tempfile.TemporaryFile(dir=self._folder, buffering=0)  # noqa: SIM115 - lives with the head
            self._write(self._bytes)

    def end_with(self, data: bytes) -> bytes:
        """The last three bytes in the file, and the bytes after them."""
        return bytes(self._bytes) + data

    def append(self, data: bytes) -> None:
        """Keep more bytes in the file. Raises OSError when it cannot take them."""
        self.length += len(data)
        self._bytes += data[-_TAIL:]
        self._write(data)

    def drop(self) -> None:
        """Give the bytes back to the budget, and the file's room."""
        self._end_file()
        self._bytes = bytearray()
        self.length = 0
        self._count(0)

    def __del__(self) -> None:
        self.drop()

    def _write(self, data: bytes | bytearray) -> None:
        assert self._file is not None
        left = memoryview(bytes(data))
        while left:
            left = left[self._file.write(left) :]
        self._bytes = self._bytes[-_TAIL:]
        self._count(0)

    def _count(self, size: int) -> None:
        self._use.used += size - self._counted
        self._counted = size

    def _end_file(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            with contextlib.suppress(OSError):
                file.close()
