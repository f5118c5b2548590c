"""A response's status line and header block: what they say, and what they say about the body (RFC 9112 §4-6)."""

from __future__ import annotations

import re
from typing import Literal

from msgspec import Struct

__all__ = ["BodyKind", "Head", "parse_head", "parse_headers", "status_of"]

BodyKind = Literal["none", "length", "chunked", "close"]

Headers = tuple[tuple[str, str], ...]

_STATUS_LINE = re.compile(rb"HTTP/(\d+(?:\.\d+)?)[ \t]+([1-9]\d\d)(?!\d)", re.ASCII)
_LENGTH = re.compile(r"[0-9]{1,18}", re.ASCII)
# A line as nearly all are. A block of nothing else is read with the help of what was read before: a server sends most
# of its lines again and again, and the values of all its responses are then the same objects.
_USUAL_LINE = re.compile(r"([^:\s]+):[ \t]*([^\r\n]*)")
_MAX_LINES = 4096
_MAX_LINE = 256
_lines: dict[bytes, tuple[str, str]] = {}
_SPACE = " \t\r"
_NO_BODY = (204, 304)


class Head(Struct, frozen=True):
    """A parsed header block; `raw` are its bytes through the empty line."""

    raw: bytes
    status: int
    headers: Headers
    kind: BodyKind
    """What ends the body: nothing (there is none), its length, its last chunk, or the end of the connection."""
    lengths: tuple[int, ...]
    """The distinct Content-Lengths, ascending; more than one is a conflict."""
    keep_alive: bool
    """The connection may carry another request after this message."""

    def field(self, name: str) -> str:
        """All values of a field (name in lower case) as one list, which is what they are (RFC 9110 §5.3)."""
        return ", ".join([value for other, value in self.headers if other == name])


def status_of(line: bytes | bytearray) -> int | None:
    """The status of what begins with an HTTP status line (1xx included), or None for another line."""
    match = _STATUS_LINE.match(line)
    return int(match[2]) if match else None


def parse_headers(raw: bytes) -> Headers:
    """Names in lower case and stripped values; folded lines joined by a space, lines without a colon left out."""
    if not raw.endswith(b"\r\n\r\n"):
        return _parse_lines(raw)
    found = []
    known = _lines.get
    for line in raw.split(b"\r\n")[1:-2]:
        pair = known(line) or _usual_line(line)
        if pair is None:
            return _parse_lines(raw)
        found.append(pair)
    return tuple(found)


def parse_head(raw: bytes, *, head_only: bool = False) -> Head | None:
    """Read a complete header block; None when it does not begin with an HTTP status line."""
    match = _STATUS_LINE.match(raw)
    if match is None:
        return None
    status = int(match[2])
    headers = parse_headers(raw)
    fields = dict(headers)
    if len(fields) != len(headers):
        # Repeated fields are one list (RFC 9110 §5.3).
        for name in ("content-length", "transfer-encoding", "connection"):
            if name in fields:
                fields[name] = ",".join([value for other, value in headers if other == name])
    kind: BodyKind = "none"
    lengths: tuple[int, ...] = ()
    if not head_only and status not in _NO_BODY:
        kind, lengths = _body_of(fields)
    keep_alive = kind != "close" and len(lengths) < 2 and _keeps_alive(match[1], fields.get("connection", ""))
    return Head(raw, status, headers, kind, lengths, keep_alive)


def _usual_line(line: bytes) -> tuple[str, str] | None:
    match = _USUAL_LINE.fullmatch(line.decode("latin-1"))
    if match is None:
        return None
    pair = match[1].lower(), match[2].rstrip(_SPACE)
    if len(line) <= _MAX_LINE:
        if len(_lines) >= _MAX_LINES:
            _lines.clear()
        _lines[line] = pair
    return pair


def _parse_lines(raw: bytes) -> Headers:
    # pieces, not texts that grow: a block of nothing but folded lines would be copied once for each
    found: list[tuple[str, list[str]]] = []
    folds = False
    for line in raw.decode("latin-1").split("\n")[1:]:
        if line[:1] in (" ", "\t"):
            if folds:
                found[-1][1].append(line.strip(_SPACE))
            continue
        name, colon, value = line.partition(":")
        name = name.strip(_SPACE)
        folds = bool(colon and name)
        if folds:
            found.append((name.lower(), [value.strip(_SPACE)]))
    return tuple([(name, " ".join(filter(None, pieces))) for name, pieces in found])


def _body_of(fields: dict[str, str]) -> tuple[BodyKind, tuple[int, ...]]:
    """RFC 9112 §6.3, leniently: chunked wins over lengths, and `identity` (RFC 2616 §3.6) is not a coding."""
    coding = fields.get("transfer-encoding")
    if coding is not None:
        names = [name.partition(";")[0].strip().lower() for name in coding.split(",")]
        names = [name for name in names if name not in ("", "identity")]
        if names:
            return ("chunked" if names[-1] == "chunked" else "close"), ()
    length = fields.get("content-length")
    if length is None:
        return "close", ()
    if _LENGTH.fullmatch(length):
        return "length", (int(length),)
    values = [value.strip() for value in length.split(",")]
    if all(_LENGTH.fullmatch(value) for value in values):
        return "length", tuple(sorted({int(value) for value in values}))
    return "close", ()


def _keeps_alive(version: bytes, connection: str) -> bool:
    if version == b"1.1":
        return not connection or connection == "keep-alive" or "close" not in _tokens(connection)
    return version == b"1.0" and "keep-alive" in _tokens(connection)


def _tokens(value: str) -> list[str]:
    return [token.strip(_SPACE) for token in value.lower().split(",")]
