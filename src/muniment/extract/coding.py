"""Removing content codings, within bounds: what a parser reads, never what is archived."""

from __future__ import annotations

from collections.abc import Iterator

from isal import isal_zlib
from isal.igzip_lib import IsalError

__all__ = ["decode"]

_MOST_CODINGS = 3
"""Codings one in another that are removed: each may cost a whole limit, and a header has room for 100,000 names."""
_MOST_MEMBERS = 2_000
"""Gzip members of one payload that are read; hostile ones are empty, and so do not count towards the limit."""
_STEP = 64 << 10
"""Bytes given to an inflater at once: what it does not use is copied at the end of every member."""
_GZIP = frozenset({"gzip", "x-gzip"})


def decode(payload: bytes, coding: str, limit: int) -> bytes:
    """The payload with its content coding removed, at most `limit` bytes of it; what cannot be decoded is empty.

    Damaged and cut streams give what came out before the damage (RFC 9110 §8.4.1).
    """
    names = [name for part in coding.split(",") if (name := part.strip().lower()) not in {"", "identity"}]
    if len(names) > _MOST_CODINGS:
        return b""
    for name in reversed(names):
        if name in _GZIP:
            payload = _inflate(payload, 31, limit)
        elif name == "deflate":
            # zlib as the RFC says, or bare deflate as some servers send
            payload = _inflate(payload, 15, limit) or _inflate(payload, -15, limit)
        else:
            return b""
    return payload[:limit]


def _inflate(data: bytes, window: int, limit: int) -> bytes:
    pieces: list[bytes] = []
    try:
        for piece in _inflated(data, window, limit):
            pieces.append(piece)  # noqa: PERF402 - what came before the damage is kept
    except IsalError:  # type: ignore[misc]  # its stub hides that it is an exception
        pass
    return b"".join(pieces)


def _inflated(data: bytes, window: int, room: int) -> Iterator[bytes]:
    at = members = 0
    stream = isal_zlib.decompressobj(wbits=window)
    while at < len(data) and room > 0:
        if stream.eof:
            members += 1
            if window != 31 or members >= _MOST_MEMBERS:
                return
            stream = isal_zlib.decompressobj(wbits=window)
        step = stream.unconsumed_tail or data[at : at + _STEP]
        piece = stream.decompress(step, room)
        at += len(step) - len(stream.unconsumed_tail) - len(stream.unused_data)
        room -= len(piece)
        yield piece
