"""Ranges of a payload (RFC 9110, section 14): what a video player asks for when its reader seeks."""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

__all__ = ["ByteRange", "part_of", "wanted_range"]

_RANGE = re.compile(r"bytes=\s*(\d{0,18})-(\d{0,18})\s*", re.ASCII)


class ByteRange(Struct, frozen=True):
    """Bytes from `start` up to `stop`, which is not among them; empty when there are none such."""

    start: int
    stop: int


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


def part_of(pieces: Iterator[bytes], wanted: ByteRange) -> Iterator[bytes]:
    """The bytes of a range."""
    at = 0
    for piece in pieces:
        if part := piece[max(0, wanted.start - at) : max(0, wanted.stop - at)]:
            yield part
        at += len(piece)
        if at >= wanted.stop:
            return
