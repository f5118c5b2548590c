"""Digests as WARC spells them: a lower-case label, and SHA-1 in upper-case base32 (WARC 1.1 §5.8)."""

from __future__ import annotations

import hashlib
import re
import struct
from collections.abc import Iterable

__all__ = ["sha1_hex", "sha1_label", "sha1_of"]

_ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
# Ten bits at a time, out of numbers of forty: less than a quarter of the time of base64.b32encode for twenty bytes.
_PAIRS = tuple(a + b for a in _ALPHABET for b in _ALPHABET)
_FORTIES = struct.Struct(">BIBIBIBI").unpack
_LABEL = re.compile(r"sha1:[A-Z2-7]{32}\Z")
# From the digits of RFC 4648 to those that `int` reads.
_DIGITS = bytes.maketrans(_ALPHABET.encode(), b"0123456789ABCDEFGHIJKLMNOPQRSTUV")


def sha1_label(digest: bytes) -> str:
    """`sha1:` and the base32 of a twenty-byte digest."""
    p = _PAIRS
    a, b, c, d, e, f, g, h = _FORTIES(digest)
    return (
        f"sha1:{p[a << 2 | b >> 30]}{p[b >> 20 & 1023]}{p[b >> 10 & 1023]}{p[b & 1023]}"
        f"{p[c << 2 | d >> 30]}{p[d >> 20 & 1023]}{p[d >> 10 & 1023]}{p[d & 1023]}"
        f"{p[e << 2 | f >> 30]}{p[f >> 20 & 1023]}{p[f >> 10 & 1023]}{p[f & 1023]}"
        f"{p[g << 2 | h >> 30]}{p[h >> 20 & 1023]}{p[h >> 10 & 1023]}{p[h & 1023]}"
    )


def sha1_hex(label: str) -> str:
    """The forty hexadecimal digits of a digest that is spelled as `sha1_label` does; any other spelling as it is."""
    return f"{int(label[5:].encode().translate(_DIGITS), 32):040x}" if _LABEL.match(label) else label


def sha1_of(head: bytes, pieces: Iterable[bytes | memoryview] = ()) -> bytes:
    """SHA-1 of some bytes and the pieces that follow them."""
    digest = hashlib.sha1(head, usedforsecurity=False)
    for piece in pieces:
        digest.update(piece)
    return digest.digest()
