"""The children of a page, as its row of `relations` has them: packed into words."""

from __future__ import annotations

import sys
from array import array

__all__ = ["pack_children", "packed_words", "unpack_children"]


def unpack_children(packed: bytes) -> array[int]:
    """The words of a `relations.children` value: page id << 8 | FoundAs."""
    words = array("Q", packed)
    if sys.byteorder == "big":
        words.byteswap()
    return words


def pack_children(words: list[int], kinds: bytes, moved: dict[int, int]) -> bytes:
    """A `relations.children` value of the words of the seen-cache; `moved` are pages with other numbers."""
    children = [word >> 32 << 8 | kind for word, kind in zip(words, kinds, strict=True)]
    if moved:
        children = [moved.get(child >> 8, child >> 8) << 8 | child & 0xFF for child in children]
    return packed_words(children)


def packed_words(children: list[int]) -> bytes:
    """The words of a `relations.children` value as bytes."""
    packed = array("Q", children)
    if sys.byteorder == "big":
        packed.byteswap()
    return packed.tobytes()
