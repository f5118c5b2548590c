"""Removing content codings, within bounds: what a parser reads, never what is archived."""

from __future__ import annotations

from isal import isal_zlib
from isal.igzip_lib import IsalError

__all__ = ["decode"]

_GZIP = frozenset({"gzip", "x-gzip"})


def decode(payload: bytes, coding: str, limit: int) -> bytes:
    """The payload with its content coding removed, at most `limit` bytes of it; what cannot be decoded is empty.

    Damaged and cut streams give what came out before the damage (RFC 9110 §8.4.1).
    """
    for name in reversed([part.strip().lower() for part in coding.split(",") if part.strip()]):
        if name == "identity":
            continue
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
    room = limit
    try:
        while data and room > 0:
            stream = isal_zlib.decompressobj(wbits=window)
            piece = stream.decompress(data, room)
            pieces.append(piece)
            room -= len(piece)
            data = stream.unused_data if stream.eof and window == 31 else b""
    except IsalError:  # type: ignore[misc]  # its stub hides that it is an exception
        pass
    return b"".join(pieces)
