"""Ranges of a payload (RFC 9110, section 14), for readers who seek in a video, and parts of one that were kept."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from msgspec import Struct

__all__ = ["BodyPart", "ByteRange", "kept_part", "part_of", "run_from", "wanted_range"]

_RANGE = re.compile(r"bytes=\s*(\d{0,18})-(\d{0,18})\s*", re.ASCII | re.IGNORECASE)
_CONTENT_RANGE = re.compile(r"\s*bytes\s+(\d{1,18})-(\d{1,18})/(?:(\d{1,18})|\*)\s*", re.ASCII | re.IGNORECASE)


class ByteRange(Struct, frozen=True):
    """Bytes from `start` up to `stop`, which is not among them; empty when there are none such."""

    start: int
    stop: int


class BodyPart(Struct, frozen=True):
    """What a 206 holds of a whole."""

    start: int
    stop: int
    """Not among them."""
    total: int | None
    """None where the server did not know it."""
    validator: str
    """The ETag, else the Last-Modified of the whole; empty without both."""

    @property
    def is_all(self) -> bool:
        """The part is the whole."""
        return self.start == 0 and self.stop == self.total

    def belongs_to(self, other: BodyPart) -> bool:
        """Both are parts of one whole."""
        return (self.total, self.validator) == (other.total, other.validator)


def wanted_range(text: str, total: int) -> ByteRange | None:
    """The one range that a header asks for; None when it asks for none, for several, or says nothing that is valid."""
    found = _RANGE.fullmatch(text)
    if found is None or not (found[1] or found[2]):
        return None
    if not found[1]:
        return ByteRange(max(0, total - int(found[2])), total)
    start, stop = int(found[1]), min(int(found[2]) + 1 if found[2] else total, total)
    if found[2] and int(found[2]) < start:
        return None
    return ByteRange(min(start, total), max(stop, min(start, total)))


def kept_part(content_range: str, validator: str, length: int) -> BodyPart | None:
    """The part that a Content-Range names, as far as its bytes are there; None when it names nothing valid."""
    found = _CONTENT_RANGE.fullmatch(content_range)
    if found is None or int(found[2]) < int(found[1]):
        return None
    start = int(found[1])
    stop = min(int(found[2]) + 1, start + length)
    return BodyPart(start, stop, int(found[3]) if found[3] else None, validator)


def run_from(start: int, parts: Sequence[BodyPart]) -> list[tuple[int, ByteRange]]:
    """What to take of which part (by its number) from a byte on, as far as the parts meet; nothing if none has it."""
    taken: list[tuple[int, ByteRange]] = []
    at = start
    while True:
        here = [(part.stop, number) for number, part in enumerate(parts) if part.start <= at < part.stop]
        if not here:
            return taken
        stop, number = max(here)
        taken.append((number, ByteRange(at, stop)))
        at = stop


def part_of(pieces: Iterator[bytes], wanted: ByteRange) -> Iterator[bytes]:
    """The bytes of a range."""
    at = 0
    for piece in pieces:
        if part := piece[max(0, wanted.start - at) : max(0, wanted.stop - at)]:
            yield part
        at += len(piece)
        if at >= wanted.stop:
            return
