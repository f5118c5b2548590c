"""Responses as they come in the wild, and what must be recorded of each.

Play them with `raw_server.RawServer(scripts())`; the record of each must hold `head + body`, byte for byte, where
there is a head, and there must be no record where there is none.
"""

from __future__ import annotations

import gzip
from dataclasses import dataclass

from tests.support.raw_server import Close, HalfClose, Pause, Reset, Script, Send, Stall, Step

__all__ = ["ODD_RESPONSES", "OddResponse", "scripts"]

_OK = b"HTTP/1.1 200 OK\r\n"
_CHUNKED = _OK + b"Transfer-Encoding: chunked\r\n\r\n"
_HELLO = b"<p>hello</p>"
_LENGTH = b"Content-Length: 12\r\n"
_GZIPPED = gzip.compress(_HELLO * 20, mtime=0)
_BIG_HEADER = b"X-Big: " + b"b" * 300_000 + b"\r\n"


@dataclass(frozen=True)
class OddResponse:
    """One response: what the server does, and what is right to keep of it."""

    name: str
    script: Script
    head: bytes = b""
    """The record's header block; empty when there must be no record."""
    body: bytes = b""
    """The record's body, as on the wire."""
    payload: bytes = b""
    """The body without its transfer coding."""
    status: int = 200
    truncated: str = ""
    failure: str = ""
    """The failure's code; empty for a complete capture."""
    kept: bool = False
    """The connection may be used again."""
    slow: bool = False
    """Ends only by the client's time-out."""

    @property
    def path(self) -> str:
        """Where the response is found."""
        return f"/odd/{self.name}"


def scripts() -> dict[str, Script]:
    """Every script, by path."""
    return {odd.path: odd.script for odd in ODD_RESPONSES}


def _odd(
    name: str,
    head: bytes,
    body: bytes = b"",
    *end: Step,
    payload: bytes | None = None,
    before: bytes = b"",
    after: bytes = b"",
    status: int = 200,
    truncated: str = "",
    failure: str = "",
    piece: int = 0,
) -> OddResponse:
    """A response with a record: `before` and `after` are sent around it and belong to no record."""
    return OddResponse(
        name=name,
        script=(Send(before + head + body + after, piece), *end),
        head=head,
        body=body,
        payload=body if payload is None else payload,
        status=status,
        truncated=truncated,
        failure=failure,
        kept=not end and not after,
        slow=Stall() in end,
    )


def _none(name: str, sent: bytes, *end: Step, failure: str) -> OddResponse:
    """No record."""
    return OddResponse(name=name, script=(Send(sent), *end), status=0, failure=failure, slow=Stall() in end)


_HEADS = (
    _odd("plain", _OK + _LENGTH + b"\r\n", _HELLO),
    _odd("lf-only", b"HTTP/1.1 200 OK\nContent-Length: 12\n\n", _HELLO),
    _odd("lf-then-crlf", b"HTTP/1.1 200 OK\r\nContent-Length: 12\n\r\n", _HELLO),
    _odd("folded", _OK + b"X-Folded: one\r\n two\r\n\tthree\r\n" + _LENGTH + b"\r\n", _HELLO),
    _odd("folded-first", _OK + b" lost: line\r\n" + _LENGTH + b"\r\n", _HELLO),
    _odd("no-colon", _OK + b"this line has none\r\n" + _LENGTH + b"\r\n", _HELLO),
    _odd("nul-in-header", _OK + b"X-Nul: a\0b\r\n" + _LENGTH + b"\r\n", _HELLO),
    _odd("utf8-header", _OK + "X-Naïve: žluťoučký\r\n".encode() + _LENGTH + b"\r\n", _HELLO),
    _odd("space-before-colon", _OK + b"Content-Length : 12\r\n\r\n", _HELLO),
    _odd("trailing-spaces", _OK + b"Content-Length:   12  \t\r\nX-Empty:\r\n\r\n", _HELLO),
    _odd("odd-case", _OK + b"cOnTeNt-lEnGtH: 12\r\n\r\n", _HELLO),
    _odd("bare-cr", _OK + b"X-Cr: a\rb\r\n" + _LENGTH + b"\r\n", _HELLO),
    _odd(
        "two-locations",
        b"HTTP/1.1 302 Found\r\nLocation: /a\r\nLocation: /b\r\nContent-Length: 0\r\n\r\n",
        status=302,
    ),
    _odd("header-300k", _OK + _BIG_HEADER + _LENGTH + b"\r\n", _HELLO),
    _none("header-2m", _OK + b"X-Big: " + b"b" * (2 << 20), Close(), failure="too-large"),
    _odd("no-reason", b"HTTP/1.1 200\r\n" + _LENGTH + b"\r\n", _HELLO),
    _odd("http2-line", b"HTTP/2 200 \r\n" + _LENGTH + b"\r\n", _HELLO, Close()),
    _odd("http10", b"HTTP/1.0 200 OK\r\n\r\n", _HELLO, Close()),
    _odd("http10-keep", b"HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\n" + _LENGTH + b"\r\n", _HELLO),
    _odd("says-close", _OK + _LENGTH + b"Connection: close\r\n\r\n", _HELLO, Close()),
    _odd("dribbled", _OK + _LENGTH + b"\r\n", _HELLO, piece=1),
    _odd("early-hints", _OK + _LENGTH + b"\r\n", _HELLO, before=b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"),
    _odd("many-100", _OK + _LENGTH + b"\r\n", _HELLO, before=b"HTTP/1.1 100 Continue\r\n\r\n" * 300),
    _odd("status-999", b"HTTP/1.1 999 Denied\r\n" + _LENGTH + b"\r\n", _HELLO, status=999),
    _none("100-alone", b"HTTP/1.1 100 Continue\r\n\r\n", Close(), failure="cut"),
    _none("icy", b"ICY 200 OK\r\nContent-Type: audio/mpeg\r\n\r\nnoise", Close(), failure="protocol"),
    _none("http09", b"<html>no header at all</html>", Close(), failure="protocol"),
    _none("bad-status", b"HTTP/1.1 OK 200\r\nContent-Length: 0\r\n\r\n", Close(), failure="protocol"),
    _none("two-digit-status", b"HTTP/1.1 20 OK\r\nContent-Length: 0\r\n\r\n", Close(), failure="protocol"),
    _none("leading-line", b"\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", Close(), failure="protocol"),
    _none("empty-reply", b"", Close(), failure="cut"),
    _none("status-line-only", _OK, Close(), failure="cut"),
    _none("cut-in-header", _OK + b"Content-Ty", Close(), failure="cut"),
    _none("reset-in-header", _OK + b"Content-Ty", Reset(), failure="reset"),
    _none("stall-before-header", b"", Stall(), failure="timeout-header"),
    _none("stall-in-header", _OK + b"Content-Ty", Stall(), failure="timeout-header"),
)

_LENGTHS = (
    _odd("length-0", _OK + b"Content-Length: 0\r\n\r\n"),
    _odd("length-twice-equal", _OK + _LENGTH + _LENGTH + b"\r\n", _HELLO),
    _odd("length-list", _OK + b"Content-Length: 12, 12\r\n\r\n", _HELLO),
    _odd("lengths-differ-small", _OK + _LENGTH + b"Content-Length: 20\r\n\r\n", _HELLO, Close()),
    _odd("lengths-differ-large", _OK + b"Content-Length: 5\r\n" + _LENGTH + b"\r\n", _HELLO, Close()),
    _odd(
        "lengths-differ-neither",
        _OK + b"Content-Length: 5\r\nContent-Length: 20\r\n\r\n",
        _HELLO,
        Close(),
        truncated="disconnect",
        failure="cut",
    ),
    _odd("length-negative", _OK + b"Content-Length: -1\r\n\r\n", _HELLO, Close()),
    _odd("length-plus", _OK + b"Content-Length: +5\r\n\r\n", _HELLO, Close()),
    _odd("length-text", _OK + b"Content-Length: twelve\r\n\r\n", _HELLO, Close()),
    _odd("length-empty", _OK + b"Content-Length:\r\n\r\n", _HELLO, Close()),
    _odd("length-huge", _OK + b"Content-Length: 99999999999999999999\r\n\r\n", _HELLO, Close()),
    _odd("no-length", _OK + b"\r\n", _HELLO, Close()),
    _odd("no-length-half-closed", _OK + b"\r\n", _HELLO, HalfClose()),
    _odd("no-length-empty", _OK + b"\r\n", b"", Close()),
    _odd("gzip", _OK + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(_GZIPPED), _GZIPPED),
    _odd("304-with-length", b"HTTP/1.1 304 Not Modified\r\n" + _LENGTH + b"\r\n", status=304),
    _odd("204-with-length", b"HTTP/1.1 204 No Content\r\n" + _LENGTH + b"\r\n", status=204),
    _odd("204-with-body", b"HTTP/1.1 204 No Content\r\n" + _LENGTH + b"\r\n", after=_HELLO, status=204),
    _odd("surplus", _OK + _LENGTH + b"\r\n", _HELLO, after=b"<!-- more -->"),
    _odd("surplus-response", _OK + _LENGTH + b"\r\n", _HELLO, after=b"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n"),
    _odd("cut", _OK + b"Content-Length: 50\r\n\r\n", _HELLO, Close(), truncated="disconnect", failure="cut"),
    _odd("cut-at-once", _OK + b"Content-Length: 50\r\n\r\n", b"", Close(), truncated="disconnect", failure="cut"),
    _odd("reset", _OK + b"Content-Length: 50\r\n\r\n", _HELLO, Reset(), truncated="disconnect", failure="reset"),
    _odd("no-length-reset", _OK + b"\r\n", _HELLO, Reset(), truncated="disconnect", failure="reset"),
    _odd("stall", _OK + b"Content-Length: 50\r\n\r\n", _HELLO, Stall(), truncated="time", failure="timeout-body"),
    OddResponse(
        name="slow",
        script=(Send(_OK + _LENGTH), Pause(0.1), Send(b"\r\n" + _HELLO[:5]), Pause(0.1), Send(_HELLO[5:])),
        head=_OK + _LENGTH + b"\r\n",
        body=_HELLO,
        payload=_HELLO,
        kept=True,
    ),
)


def _chunks(
    name: str,
    body: bytes,
    *end: Step,
    payload: bytes = b"hello world",
    truncated: str = "",
    failure: str = "",
) -> OddResponse:
    return _odd(name, _CHUNKED, body, *end, payload=payload, truncated=truncated, failure=failure)


def _malformed(name: str, body: bytes, *end: Step, payload: bytes) -> OddResponse:
    return _chunks(name, body, *end, payload=payload, truncated="unspecified", failure="protocol")


def _cut_short(name: str, body: bytes, *end: Step, payload: bytes = b"hello world") -> OddResponse:
    return _chunks(name, body, *end, payload=payload, truncated="disconnect", failure="cut")


_FIVE = b"5\r\nhello\r\n0\r\n\r\n"

_CHUNKS = (
    _chunks("chunks", b"5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n"),
    _chunks("chunk-upper", b"B\r\nhello world\r\n0\r\n\r\n"),
    _chunks("chunk-lower", b"b\r\nhello world\r\n0\r\n\r\n"),
    _chunks("chunk-zeros", b"0000000000000000000000B\r\nhello world\r\n000\r\n\r\n"),
    _chunks("chunk-spaces", b"5  \r\nhello\r\n 6\r\n world\r\n0 \r\n\r\n"),
    _chunks("chunk-lf", b"5\nhello\n6\n world\n0\n\n"),
    _chunks("chunk-extensions", b'5;a=b;c="d;e"\r\nhello\r\n6 ;x\r\n world\r\n0;last\r\n\r\n'),
    _chunks("trailers", b"B\r\nhello world\r\n0\r\nX-Trailer: yes\r\nX-Other: \r\n\r\n"),
    _chunks("chunk-end-in-data", b"B\r\n0\r\n\r\n world\r\n0\r\n\r\n", payload=b"0\r\n\r\n world"),
    _chunks("chunk-empty", b"0\r\n\r\n", payload=b""),
    _malformed(
        "chunk-huge", b"5\r\nhello\r\nFFFFFFFFFFFFFFFF\r\n world", Close(), payload=b"helloFFFFFFFFFFFFFFFF\r\n world"
    ),
    _cut_short("chunk-large", b"5\r\nhello\r\nFFFFFFF\r\n world", Close()),
    _malformed(
        "chunk-negative", b"5\r\nhello\r\n-6\r\n world\r\n0\r\n\r\n", Close(), payload=b"hello-6\r\n world\r\n0\r\n\r\n"
    ),
    _malformed("chunk-0x", b"0x5\r\nhello\r\n0\r\n\r\n", Close(), payload=b"0x5\r\nhello\r\n0\r\n\r\n"),
    _malformed("chunk-too-long", b"5\r\nhello world\r\n0\r\n\r\n", Close(), payload=b"hello world\r\n0\r\n\r\n"),
    _malformed("chunk-blank-line", b"5\r\nhello\r\n\r\n6\r\n world", Close(), payload=b"hello\r\n6\r\n world"),
    _malformed("not-chunked", b"<html>plain</html>", Close(), payload=b"<html>plain</html>"),
    _cut_short("chunk-no-last", b"5\r\nhello\r\n6\r\n world\r\n", Close()),
    _chunks("chunk-no-end", b"5\r\nhello\r\n6\r\n world\r\n0\r\n", Close()),
    _cut_short("chunk-cut", b"5\r\nhello\r\nFF\r\n world", Close()),
    _cut_short("chunk-cut-in-size", b"5\r\nhello\r\n6", Close(), payload=b"hello"),
    _chunks(
        "chunk-reset",
        b"5\r\nhello\r\n6\r\n wor",
        Reset(),
        payload=b"hello wor",
        truncated="disconnect",
        failure="reset",
    ),
    _chunks(
        "chunk-stall",
        b"5\r\nhello\r\n6\r\n wor",
        Stall(),
        payload=b"hello wor",
        truncated="time",
        failure="timeout-body",
    ),
    _odd(
        "chunked-and-length", _OK + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n", _FIVE, payload=b"hello"
    ),
    _odd(
        "chunked-twice-named",
        _OK + b"Transfer-Encoding: identity\r\nTransfer-Encoding: Chunked\r\n\r\n",
        _FIVE,
        payload=b"hello",
    ),
    _odd("te-gzip-chunked", _OK + b"Transfer-Encoding: gzip, chunked\r\n\r\n", _FIVE, payload=b"hello"),
    _odd("te-chunked-gzip", _OK + b"Transfer-Encoding: chunked, gzip\r\n\r\n", _FIVE, Close()),
    _odd("te-identity", _OK + b"Transfer-Encoding: identity\r\n\r\n", _HELLO, Close()),
    _odd("te-unknown", _OK + b"Transfer-Encoding: secret\r\n" + _LENGTH + b"\r\n", _HELLO + _HELLO, Close()),
    _odd("chunk-surplus", _CHUNKED, _FIVE, payload=b"hello", after=b"0\r\n\r\n"),
    _odd("chunked-http10", b"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", _FIVE, Close(), payload=b"hello"),
    _odd("chunk-dribbled", _CHUNKED, b"5;ext\r\nhello\r\n0\r\nA: b\r\n\r\n", payload=b"hello", piece=1),
)

ODD_RESPONSES: tuple[OddResponse, ...] = _HEADS + _LENGTHS + _CHUNKS
