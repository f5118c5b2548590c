"""A response's status line and header block: what they say, and what they say about the body (RFC 9112 §4-6)."""

from __future__ import annotations

import re
from typing import Literal

__all__ = ["BodyKind", "Head", "parse_head", "parse_headers", "status_of"]

BodyKind = Literal["none", "length", "chunked", "close"]

_STATUS_LINE = re.compile(rb"HTTP/(\d+(?:\.\d+)?)[ \t]+([1-9]\d\d)(?!\d)", re.ASCII)
_LENGTH = re.compile(r"[0-9]{1,18}", re.ASCII)
_SPACE = " \t\r"
_NO_BODY = (204, 304)


class Head:
    """A parsed header block; `raw` are its bytes through the empty line."""

    __slots__ = ("headers", "keep_alive", "kind", "lengths", "raw", "status")

    def __init__(self, raw: bytes, status: int, headers: tuple[tuple[str, str], ...]) -> None:
        self.raw = raw
        self.status = status
        self.headers = headers
        self.kind: BodyKind = "close"
        self.lengths: tuple[int, ...] = ()
        """The distinct Content-Lengths, ascending; more than one is a conflict."""
        self.keep_alive = False


def status_of(line: bytes | bytearray) -> int | None:
    """The status of what begins with an HTTP status line (1xx included), or None when it is no such line."""
    match = _STATUS_LINE.match(line)
    return int(match[2]) if match else None


def parse_headers(raw: bytes) -> tuple[tuple[str, str], ...]:
    """Names in lower case and stripped values; folded lines joined by a space, lines without a colon left out."""
    found: list[tuple[str, str]] = []
    folds = False
    for line in raw.decode("latin-1").split("\n")[1:]:
        if line[:1] in (" ", "\t"):
            if folds:
                name, value = found[-1]
                found[-1] = name, f"{value} {line.strip(_SPACE)}".strip(_SPACE)
            continue
        name, colon, value = line.partition(":")
        name = name.strip(_SPACE)
        folds = bool(colon and name)
        if folds:
            found.append((name.lower(), value.strip(_SPACE)))
    return tuple(found)


def parse_head(raw: bytes, *, head_only: bool = False) -> Head | None:
    """Read a complete header block; None when it does not begin with an HTTP status line."""
    match = _STATUS_LINE.match(raw)
    if match is None:
        return None
    head = Head(raw, int(match[2]), parse_headers(raw))
    lengths: list[str] = []
    codings: list[str] = []
    connection = ""
    for name, value in head.headers:
        if name == "content-length":
            lengths += value.split(",")
        elif name == "transfer-encoding":
            codings += value.split(",")
        elif name == "connection":
            connection += f",{value.lower()}"
    _decide_body(head, lengths, codings, head_only)
    head.keep_alive = _keeps_alive(match[1], connection) and head.kind != "close" and len(head.lengths) < 2
    return head


def _decide_body(head: Head, lengths: list[str], codings: list[str], head_only: bool) -> None:
    """RFC 9112 §6.3, leniently: chunked wins over lengths, and `identity` (RFC 2616 §3.6) is no coding at all."""
    if head_only or head.status in _NO_BODY:
        head.kind = "none"
        return
    if codings:
        names = [
            name for coding in codings if (name := coding.partition(";")[0].strip().lower()) not in ("", "identity")
        ]
        if names:
            head.kind = "chunked" if names[-1] == "chunked" else "close"
            return
    if not lengths:
        return
    values = [value.strip() for value in lengths]
    if all(_LENGTH.fullmatch(value) for value in values):
        head.lengths = tuple(sorted({int(value) for value in values}))
        head.kind = "length"


def _keeps_alive(version: bytes, connection: str) -> bool:
    # The usual cases first: most servers send no Connection header, or exactly `keep-alive`.
    if version == b"1.1":
        return not connection or connection == ",keep-alive" or "close" not in _tokens(connection)
    return version == b"1.0" and bool(connection) and "keep-alive" in _tokens(connection)


def _tokens(value: str) -> set[str]:
    return {token.strip(_SPACE) for token in value.split(",")}
