"""Reads of a page what guards go by: the blocks of its text that are new here, and a digest of all of it."""

from __future__ import annotations

import sys
from array import array
from itertools import repeat
from zlib import crc32

import xxhash

from muniment.extract.links import Extraction
from muniment.model.exchange import Exchange
from muniment.model.page import Claim, PageReading

__all__ = ["PageReader"]

_MOST_KNOWN = 100_000
"""Hashes that a worker remembers: about 9 MB."""
_NOTHING = PageReading()
_NO_TEXT = PageReading(is_text=False)
_MOST_TEXT = 1 << 20
_MOST_BLOCKS = 20_000
_SHORTEST = 3
# Digits and the letters of hexadecimal numbers are left out, and white space: what differs in these alone is alike.
_LEFT_OUT = b"0123456789abcdefABCDEF \t\r\f\v"
_LOWER = bytes.maketrans(bytes(range(65, 91)), bytes(range(97, 123)))
_CUT = bytes.maketrans(
    bytes(range(65, 91)) + b"<>{}[],;", bytes(range(97, 123)) + b"\n" * 8
)  # fmt: skip


class PageReader:
    """Reads the pages of one worker; blocks that it has sent are not sent again."""

    def __init__(self) -> None:
        self._sent: set[int] = set()

    def read(
        self, claim: Claim, exchange: Exchange, document: Extraction | None, *, redirects: bool
    ) -> PageReading | None:
        """What guards go by of a page; None where they do not ask for it, or there is no answer."""
        if not claim.reads or not exchange.status:
            return None
        if redirects or not exchange.body.payload_length:
            return _NOTHING
        if document is None or document.text is None:
            return _NO_TEXT
        found = _block_hashes(document.text, crc32(claim.host.encode()), lines=document.in_lines)
        if not found:
            return _NOTHING
        if len(self._sent) > _MOST_KNOWN:
            self._sent.clear()
        fresh = array("I", found - self._sent)
        self._sent.update(fresh)
        if sys.byteorder == "big":
            fresh.byteswap()
        return PageReading(fresh.tobytes(), xxhash.xxh3_64_digest(document.text))


def _block_hashes(text: bytes, seed: int, *, lines: bool = True) -> set[int]:
    """The 32-bit hashes of the lines of a text; without `lines`, it is cut where data usually are."""
    bare = text[:_MOST_TEXT].translate(_LOWER if lines else _CUT, _LEFT_OUT)
    blocks = [block for block in set(bare.split(b"\n")) if len(block) >= _SHORTEST]
    return set(map(crc32, blocks[:_MOST_BLOCKS], repeat(seed)))
