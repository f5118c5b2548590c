"""Removing content codings, within bounds: what a parser reads, never what is archived."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

from isal import isal_zlib
from isal.igzip_lib import IsalError

if TYPE_CHECKING:
    import brotli
    from backports.zstd import ZstdDecompressor

__all__ = ["STEP", "ZSTD_WINDOW_LOG", "codings_to_remove", "decode"]

_MOST_CODINGS = 3
"""Codings one in another that are removed: each may cost a whole limit, and a header has room for 100,000 names."""
_MOST_MEMBERS = 2_000
"""Gzip members, or frames of zstd, of one payload that are read: hostile ones are empty, and count towards no limit."""
STEP = 64 << 10
"""Bytes given to an inflater at once: what it does not use is copied at the end of every member."""
_GZIP = frozenset({"gzip", "x-gzip"})
_KNOWN = _GZIP | {"deflate", "br", "zstd"}
_MARKS = {b"\x1f\x8b\x08": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"x\x9c": "deflate", b"x\xda": "deflate"}
"""How payloads begin that no text begins like."""
ZSTD_WINDOW_LOG = 23
"""8 MiB, the largest window that HTTP allows (RFC 9659)."""


def decode(payload: bytes, coding: str, limit: int) -> bytes:
    """The payload with its content coding removed, at most `limit` bytes of it; what cannot be decoded is empty.

    Damaged and cut streams give what came out before the damage (RFC 9110 §8.4.1).
    """
    for name in codings_to_remove(coding, payload):
        if name in _GZIP:
            payload = _inflate(payload, 31, limit)
        elif name == "deflate":
            # zlib as the RFC says, or bare deflate as some servers send
            payload = _inflate(payload, 15, limit) or _inflate(payload, -15, limit)
        elif name == "br":
            payload = _unbrotli(payload, limit)
        elif name == "zstd":
            payload = _unzstd(payload, limit)
        else:
            return b""
    return payload[:limit]


def codings_to_remove(coding: str, start: bytes) -> list[str]:
    """The codings that a Content-Encoding names, the one to remove first at the front; of too many, one unknown name.

    Other words mean nothing (`utf-8`, `none`), unless the payload, of which `start` is given, begins as a coding does.
    """
    said = [name for part in coding.split(",") if (name := part.strip().lower()) not in {"", "identity"}]
    names = [name for name in said if name in _KNOWN]
    if said and not names and (name := _begins_as(start)):
        names = [name]
    return names[::-1] if len(names) <= _MOST_CODINGS else ["too many"]


def _begins_as(start: bytes) -> str:
    return next((name for mark, name in _MARKS.items() if start.startswith(mark)), "")


def _inflate(data: bytes, window: int, limit: int) -> bytes:
    return _before_damage(_inflated(data, window, limit), IsalError)  # type: ignore[arg-type]  # its stub hides what it is


def _unbrotli(data: bytes, limit: int) -> bytes:
    # few servers send these unasked: loaded for the first one that does
    import brotli  # noqa: PLC0415

    return _before_damage(_unbrotlied(brotli.Decompressor(), data, limit), brotli.error)


def _unzstd(data: bytes, limit: int) -> bytes:
    if sys.version_info >= (3, 14):
        from compression import zstd  # noqa: PLC0415
    else:
        from backports import zstd  # noqa: PLC0415

    options = {int(zstd.DecompressionParameter.window_log_max): ZSTD_WINDOW_LOG}
    return _before_damage(_unzstded(lambda: zstd.ZstdDecompressor(options=options), data, limit), zstd.ZstdError)


def _before_damage(decoded: Iterator[bytes], damage: type[Exception]) -> bytes:
    pieces: list[bytes] = []
    with suppress(damage):
        for piece in decoded:
            pieces.append(piece)  # noqa: PERF402 - what came before the damage is kept
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
        step = stream.unconsumed_tail or data[at : at + STEP]
        piece = stream.decompress(step, room)
        at += len(step) - len(stream.unconsumed_tail) - len(stream.unused_data)
        room -= len(piece)
        yield piece


def _unbrotlied(stream: brotli.Decompressor, data: bytes, room: int) -> Iterator[bytes]:
    at = 0
    while room > 0 and not stream.is_finished():
        step = data[at : at + STEP] if stream.can_accept_more_data() else b""
        if not step and stream.can_accept_more_data():
            return
        piece = stream.process(step, output_buffer_limit=room)
        at += len(step)
        room -= len(piece)
        yield piece


def _unzstded(new_stream: Callable[[], ZstdDecompressor], data: bytes, room: int) -> Iterator[bytes]:
    at = frames = 0
    stream = new_stream()
    while room > 0:
        if stream.eof:
            at -= len(stream.unused_data)
            frames += 1
            if frames >= _MOST_MEMBERS:
                return
            stream = new_stream()
        step = data[at : at + STEP] if stream.needs_input else b""
        if not step and stream.needs_input:
            return
        piece = stream.decompress(step, room)
        at += len(step)
        room -= len(piece)
        yield piece
