"""Removing content codings piece by piece, for bodies of any size, within a bound: little may unfold to terabytes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

from isal import isal_zlib
from isal.igzip_lib import IsalError

from muniment.extract.coding import STEP, ZSTD_WINDOW_LOG, codings_to_remove

__all__ = ["CODINGS", "decoded"]

_MOST = 4 << 30
"""Bytes that come out at most."""
_ROOM = 1 << 20
_MARK = 4
"""Bytes by which a coding is known that its header does not name."""

Stream = Callable[[Iterator[bytes]], Iterator[bytes]]


def decoded(pieces: Iterator[bytes], coding: str) -> Iterator[bytes]:
    """The pieces of a payload without its content coding; what cannot be decoded is empty, damage ends it."""
    first = b""
    for piece in pieces:
        first += piece
        if len(first) >= _MARK:
            break
    names = codings_to_remove(coding, first)
    if any(name not in _STREAMS for name in names):
        return iter(())
    pieces = _chain(first, pieces)
    for name in names:
        pieces = _bounded(_STREAMS[name](pieces))
    return pieces


def _bounded(pieces: Iterator[bytes]) -> Iterator[bytes]:
    left = _MOST
    for piece in pieces:
        yield piece[:left]
        left -= len(piece)
        if left <= 0:
            return


def _steps(pieces: Iterator[bytes]) -> Iterator[bytes]:
    for piece in pieces:
        for at in range(0, len(piece), STEP):
            yield piece[at : at + STEP]


def _gzip(pieces: Iterator[bytes]) -> Iterator[bytes]:
    stream = isal_zlib.decompressobj(wbits=31)
    try:
        for step in _steps(pieces):
            data = step
            while data:
                if stream.eof:
                    stream = isal_zlib.decompressobj(wbits=31)
                yield stream.decompress(data, _ROOM)
                data = stream.unconsumed_tail or stream.unused_data
    except IsalError:  # type: ignore[misc]  # its stub hides what it is
        return


def _deflate(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """As the RFC says in zlib's form, or bare as some servers send it."""
    steps = _steps(pieces)
    first = next(steps, b"")
    window = 15 if len(first) > 1 and first[0] & 15 == 8 and (first[0] << 8 | first[1]) % 31 == 0 else -15
    stream = isal_zlib.decompressobj(wbits=window)
    try:
        for step in _chain(first, steps):
            data = step
            while data and not stream.eof:
                yield stream.decompress(data, _ROOM)
                data = stream.unconsumed_tail
    except IsalError:  # type: ignore[misc]  # as above
        return


def _chain(first: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    yield first
    yield from rest


def _brotli(pieces: Iterator[bytes]) -> Iterator[bytes]:
    import brotli  # noqa: PLC0415  (few servers send it)

    stream = brotli.Decompressor()
    try:
        for step in _steps(pieces):
            yield stream.process(step, output_buffer_limit=_ROOM)
            while not stream.can_accept_more_data():
                yield stream.process(b"", output_buffer_limit=_ROOM)
    except brotli.error:
        return


def _zstd(pieces: Iterator[bytes]) -> Iterator[bytes]:
    zstd = _zstd_module()
    options = {int(zstd.DecompressionParameter.window_log_max): ZSTD_WINDOW_LOG}
    stream = zstd.ZstdDecompressor(options=options)
    try:
        for step in _steps(pieces):
            data = step
            while data or not stream.needs_input:
                if stream.eof:
                    data = stream.unused_data or data
                    stream = zstd.ZstdDecompressor(options=options)
                yield stream.decompress(data, _ROOM)
                data = stream.unused_data if stream.eof else b""
    except zstd.ZstdError:
        return


def _zstd_module() -> Any:
    if sys.version_info >= (3, 14):
        from compression import zstd  # noqa: PLC0415
    else:
        from backports import zstd  # noqa: PLC0415
    return zstd


_STREAMS: dict[str, Stream] = {
    "gzip": _gzip,
    "x-gzip": _gzip,
    "deflate": _deflate,
    "br": _brotli,
    "zstd": _zstd,
}
CODINGS = frozenset(_STREAMS)
"""Names of the codings that can be removed."""
