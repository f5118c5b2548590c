"""Answers of servers that mean harm, and what is right to make of each: nothing may hang, grow or be taken for another.

Play them with `raw_server.RawServer(hostile_scripts())`. The answers that never end are written for a time-out of a few
seconds and a `--max-body` of `MOST_BODY`.
"""

from __future__ import annotations

import gzip
import struct
import sys
import zlib
from dataclasses import dataclass
from functools import cache

import brotli
from isal import isal_zlib
from tests.support.raw_server import Close, Flood, Pause, Script, Send, Stall

__all__ = ["FORGED", "HOSTILE", "MOST_BODY", "Hostile", "bomb", "brotli_bomb", "hostile_scripts", "html", "zstd_bomb"]

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

MOST_BODY = 60 << 20
FORGED = b"<p>forged: this answers nothing that was asked</p>"
_OK = b"HTTP/1.1 200 OK\r\n"
_HTML = _OK + b"Content-Type: text/html; charset=%s\r\n"
_MIB = 1 << 20


@dataclass(frozen=True)
class Hostile:
    """One answer: what the server does, and the row that must come of it."""

    name: str
    script: Script
    status: int = 200
    failure: str = ""
    """The failure's code; empty for a complete capture."""
    truncated: str = ""
    leads_to: str = ""
    """A path that the document links to, at its end, and that must be found."""

    @property
    def path(self) -> str:
        """Where the answer is found."""
        return f"/hostile/{self.name}"


def hostile_scripts() -> dict[str, Script]:
    """Every script, by path."""
    return {case.path: case.script for case in HOSTILE}


def html(body: bytes, *headers: bytes, charset: bytes = b"utf-8") -> Send:
    """A whole answer with an HTML body."""
    lines = b"".join(header + b"\r\n" for header in headers)
    return Send(_HTML % charset + lines + b"Content-Length: %d\r\n\r\n" % len(body) + body)


@cache
def bomb(size: int, layers: int = 1) -> bytes:
    """Markup that deflates to almost nothing, `size` bytes of it (a multiple of 1 MiB), gzipped again and again."""
    piece = (b"<p>boom</p>" * (_MIB // 11 + 1))[:_MIB]
    deflater = zlib.compressobj(9, zlib.DEFLATED, -15)
    # flushed in full it refers to nothing before, so that it may be repeated
    block = deflater.compress(piece) + deflater.flush(zlib.Z_FULL_FLUSH)
    checksum = 0
    for _ in range(size // _MIB):
        checksum = isal_zlib.crc32(piece, checksum)
    end = b"\x03\x00" + struct.pack("<II", checksum, size & 0xFFFFFFFF)
    data = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff" + block * (size // _MIB) + end
    for _ in range(layers - 1):
        data = gzip.compress(data, mtime=0)
    return data


def _link(name: str) -> bytes:
    return b'<a href="/behind/%s">' % name.encode()


def _page(name: str, before: bytes, charset: bytes = b"utf-8") -> Hostile:
    return Hostile(name, (html(before + _link(name), charset=charset),), leads_to=f"/behind/{name}")


def _coded(name: str, coding: bytes, data: bytes) -> Hostile:
    return Hostile(name, (html(data, b"Content-Encoding: " + coding),))


def _never(name: str, *script: Send | Flood | Stall, failure: str, status: int = 0, truncated: str = "") -> Hostile:
    return Hostile(name, script, status=status, failure=failure, truncated=truncated)


@cache
def brotli_bomb(size: int) -> bytes:
    """`size` zero bytes, a multiple of 1 MiB, as brotli."""
    stream = brotli.Compressor(quality=1)
    pieces: list[bytes] = [stream.process(bytes(_MIB)) for _ in range(size // _MIB)]
    return b"".join([*pieces, stream.finish()])


@cache
def zstd_bomb(size: int) -> bytes:
    """The same as one frame of zstd."""
    stream = zstd.ZstdCompressor()
    return b"".join(stream.compress(bytes(_MIB)) for _ in range(size // _MIB)) + stream.flush()


_EMPTY_MEMBERS = gzip.compress(b"", mtime=0) * 100_000
_SURPLUS = _OK + b"Content-Type: text/html\r\nContent-Length: %d\r\n\r\n" % len(FORGED) + FORGED
_CHAIN = 30

HOSTILE: tuple[Hostile, ...] = (
    _never("header-gigabyte", Send(_OK), Flood(b"X-Big: " + b"b" * 4000 + b"\r\n"), failure="too-large"),
    _never("header-line-endless", Send(_OK + b"X-Big: "), Flood(b"b" * 65536), failure="too-large"),
    _never("interim-endless", Flood(b"HTTP/1.1 100 Continue\r\n\r\n" * 1000), failure="too-large"),
    _never("status-line-endless", Send(b"HTTP/1.1 200 "), Flood(b"K" * 65536), failure="too-large"),
    _never(
        "body-endless", Send(_OK + b"\r\n"), Flood(b"b" * 65536), failure="too-large", status=200, truncated="length"
    ),
    _never(
        "chunks-endless",
        Send(_OK + b"Transfer-Encoding: chunked\r\n\r\n"),
        Flood(b"10000\r\n" + b"b" * 65536 + b"\r\n"),
        failure="too-large",
        status=200,
        truncated="length",
    ),
    _never("header-drip", Send(_OK), Flood(b"X", 0.3), failure="timeout-header"),
    _never("body-drip", Send(_OK + b"\r\n"), Flood(b"b", 0.3), failure="timeout-body", status=200, truncated="time"),
    _never("stall-at-once", Stall(), failure="timeout-header"),
    _never("stall-in-status-line", Send(b"HTTP/1.1 2"), Stall(), failure="timeout-header"),
    _never("stall-in-header", Send(_OK + b"X-H"), Stall(), failure="timeout-header"),
    _never(
        "stall-before-body",
        Send(_OK + b"Content-Length: 9\r\n\r\n"),
        Stall(),
        failure="timeout-body",
        status=200,
        truncated="time",
    ),
    _never(
        "stall-in-chunk",
        Send(_OK + b"Transfer-Encoding: chunked\r\n\r\nff\r\nabc"),
        Stall(),
        failure="timeout-body",
        status=200,
        truncated="time",
    ),
    _coded("gzip-bomb", b"gzip", bomb(8 << 20)),
    _coded("gzip-bomb-nested", b"gzip, gzip", bomb(8 << 20, 2)),
    _coded("codings-endless", b"gzip, " * 20_000 + b"gzip", bomb(_MIB, 2)),
    _coded("deflate-bomb", b"deflate", zlib.compress(b"\0" * (8 << 20), 1)),
    _coded("gzip-members-empty", b"gzip", _EMPTY_MEMBERS),
    _coded("brotli-damaged", b"br", b"\x8b\xff\xff\x80" * 1000),
    _coded("brotli-bomb", b"br", brotli_bomb(8 << 20)),
    _coded("zstd-damaged", b"zstd", b"\x28\xb5\x2f\xfd" + b"\xff" * 4000),
    _coded("zstd-bomb", b"zstd", zstd_bomb(8 << 20)),
    _page("tags-deep", b"<div>" * 100_000),
    _page("tags-open", b"<b id=1><p>" * 30_000),
    _page("nul-bytes", b"<p>\0\0\0</p>\0" * 1000),
    _page("charset-unknown", b"<p>\xff\xfe\x80</p>", charset=b"no-such-charset"),
    _page("charset-codec", b"<p>\xff\x80</p>", charset=b"zlib_codec"),
    _page("charset-broken", b"<p>\xc3\x28\xed\xa0\x80\xff</p>"),
    Hostile(
        "line-50-mb",
        (Send(_HTML % b"utf-8" + b"Content-Length: %d\r\n\r\n" % (50 << 20)), Flood(b"a" * _MIB, times=50)),
    ),
    Hostile(
        "surplus",
        (Send(_OK + b"Content-Type: text/html\r\nContent-Length: 2\r\n\r\nhi" + _SURPLUS), Pause(0.2), Send(_SURPLUS)),
    ),
    Hostile("surplus-late", (html(b"hi"), Pause(0.2), Send(_SURPLUS), Pause(0.2), Close())),
    Hostile("loop", (Send(b"HTTP/1.1 302 Found\r\nLocation: /hostile/loop\r\nContent-Length: 0\r\n\r\n"),), status=302),
    *(
        Hostile(
            f"chain-{n}",
            (Send(b"HTTP/1.1 302 Found\r\nLocation: /hostile/chain-%d\r\nContent-Length: 0\r\n\r\n" % (n + 1)),),
            status=302,
        )
        for n in range(_CHAIN)
    ),
)
