"""The chunked transfer coding, walked without copying (RFC 9112 §7.1), leniently and within bounds."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

__all__ = ["MAX_LINE", "ChunkWalker", "Piece", "decode"]

MAX_LINE = 64 * 1024
"""Bytes of the longest chunk line or trailer line that is still read as one."""

Piece = bytes | memoryview

_SIZE_LINE = re.compile(rb"[ \t]*([0-9A-Fa-f]+)[ \t]*(?:;[^\n]*)?\r?\n", re.ASCII)
_SIZE_START = re.compile(rb"[ \t]*(?:[0-9A-Fa-f]+[ \t]*(?:;[^\n]*|\r)?)?", re.ASCII)
# Sixteen hex digits and more are no size that a server can mean; they stand for an overflow, or a minus in disguise.
_MAX_SIZE_DIGITS = 15

_SIZE, _DATA, _DATA_END, _TRAILER, _RAW, _DONE = range(6)


class ChunkWalker:
    """Finds the payload and the end of a chunked body that is fed in pieces of any size.

    After a malformed line everything counts as payload, that line included: a body that only claims to be chunked is
    then still whole. The payload is a pure function of the bytes, so that it can be found again later.
    """

    __slots__ = ("_left", "_line", "_state", "last_chunk", "malformed")

    def __init__(self) -> None:
        self._state = _SIZE
        self._left = 0
        self._line = b""
        self.malformed = False
        self.last_chunk = False
        """The chunk of size zero was seen: by RFC 9112 §8 the message is no longer incomplete."""

    @property
    def done(self) -> bool:
        """The end of the body was reached."""
        return self._state == _DONE

    def feed(self, data: bytes) -> tuple[int, list[Piece]]:
        """Return the number of bytes of `data` that belong to the body, and the payload in them."""
        view = memoryview(data)
        size = len(data)
        at = 0
        payload: list[Piece] = []
        while at < size and self._state != _DONE:
            if self._state == _DATA:
                end = min(at + self._left, size)
                payload.append(view[at:end])
                self._left -= end - at
                at = end
                if not self._left:
                    self._state = _DATA_END
            elif self._state == _RAW:
                payload.append(view[at:])
                at = size
            else:
                at = self._feed_line(data, at, payload)
        return at, payload

    def eof(self) -> bytes:
        """No more bytes follow; gives the payload that an unfinished line turns out to be."""
        line, self._line = self._line, b""
        if self._state == _SIZE:
            fits = _SIZE_START.fullmatch(line) is not None
        elif self._state == _DATA_END:
            fits = line in (b"", b"\r")
        else:
            return b""
        if fits:
            return b""
        self.malformed = True
        return line

    def _feed_line(self, data: bytes, at: int, payload: list[Piece]) -> int:
        held = self._line
        newline = data.find(b"\n", at, at + MAX_LINE - len(held))
        end = newline + 1 if newline >= 0 else min(len(data), at + MAX_LINE - len(held))
        line = held + data[at:end]
        if newline < 0 and len(line) < MAX_LINE:
            self._line = line
            return end
        self._line = b""
        if newline < 0 or not self._take_line(line):
            self.malformed = True
            self._state = _RAW
            payload.append(line)
        return end

    def _take_line(self, line: bytes) -> bool:
        if self._state == _SIZE:
            match = _SIZE_LINE.fullmatch(line)
            if match is None or len(match[1].lstrip(b"0")) > _MAX_SIZE_DIGITS:
                return False
            self._left = int(match[1], 16)
            self.last_chunk = not self._left
            self._state = _DATA if self._left else _TRAILER
        elif line not in (b"\r\n", b"\n"):
            return self._state == _TRAILER
        else:
            self._state = _SIZE if self._state == _DATA_END else _DONE
        return True


def decode(wire: Iterable[Piece], *, ended: bool = True) -> Iterator[Piece]:
    """The payload of a chunked body, or of the beginning of one; `ended` False when more of it is still to come."""
    walker = ChunkWalker()
    for piece in wire:
        yield from walker.feed(bytes(piece))[1]
    if ended and (tail := walker.eof()):
        yield tail
