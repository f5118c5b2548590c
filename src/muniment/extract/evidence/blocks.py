"""Blocks of text: what of a page is compared with what its host showed before, numbers and hashes apart."""

from __future__ import annotations

from itertools import repeat
from zlib import crc32

__all__ = ["block_hashes"]

_MOST_TEXT = 1 << 20
_MOST_BLOCKS = 20_000
_SHORTEST = 3
# Digits and the letters of hexadecimal numbers are left out, and white space: what differs in these alone is alike.
_LEFT_OUT = b"0123456789abcdefABCDEF \t\r\f\v"
_LOWER = bytes.maketrans(bytes(range(65, 91)), bytes(range(97, 123)))
_CUT = bytes.maketrans(
    bytes(range(65, 91)) + b"<>{}[],;", bytes(range(97, 123)) + b"\n" * 8
)  # fmt: skip


def block_hashes(text: bytes, seed: int, *, lines: bool = True) -> set[int]:
    """The 32-bit hashes of the lines of a text; without `lines`, it is cut where data usually are."""
    bare = text[:_MOST_TEXT].translate(_LOWER if lines else _CUT, _LEFT_OUT)
    blocks = [block for block in set(bare.split(b"\n")) if len(block) >= _SHORTEST]
    return set(map(crc32, blocks[:_MOST_BLOCKS], repeat(seed)))
