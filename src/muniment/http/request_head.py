"""A request's line and header block: what they say, and what they say about the body (RFC 9112 §3-6)."""

from __future__ import annotations

import re
from typing import Literal

from msgspec import Struct

__all__ = ["MOST_REQUEST_HEAD", "RequestHead", "parse_request_head"]

MOST_REQUEST_HEAD = 256 << 10
"""Bytes of the longest header block of a request that is read."""

RequestBodyKind = Literal["none", "length", "chunked"]

_LINE = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+) ([^\x00-\x20\x7f]+) HTTP/(1\.[01])")
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_LENGTH = re.compile(r"[0-9]{1,15}", re.ASCII)


class RequestHead(Struct, frozen=True):
    """A parsed request head."""

    method: str
    target: str
    version: str
    """`1.1` or `1.0`."""
    headers: tuple[tuple[str, str], ...]
    """In order and case, as they were written; Latin-1 decoded."""
    kind: RequestBodyKind
    """What ends the body."""
    length: int
    """Of a body of the kind `length`."""

    def all(self, name: str) -> list[str]:
        """The values of a header, by its name in lower case."""
        return [value for other, value in self.headers if other.lower() == name]

    def says(self, name: str, token: str) -> bool:
        """Whether a header has this word in its list (both in lower case)."""
        return any(token in [one.strip() for one in value.lower().split(",")] for value in self.all(name))


def parse_request_head(raw: bytes) -> RequestHead | None:
    """Read a complete head; None for what a client of ours must not write: two clients could read it in two ways."""
    line, *lines = raw.decode("latin-1").rstrip("\r\n").split("\n")
    match, headers = _LINE.fullmatch(line.rstrip("\r")), _headers(lines)
    if match is None or headers is None:
        return None
    found = _body_of(RequestHead(match[1], match[2], match[3], headers, "none", 0))
    return None if found is None else RequestHead(match[1], match[2], match[3], headers, *found)


def _headers(lines: list[str]) -> tuple[tuple[str, str], ...] | None:
    headers = []
    for one in lines:
        name, colon, value = one.rstrip("\r").partition(":")
        if not colon or not _NAME.fullmatch(name) or "\r" in value or "\0" in value:
            return None
        headers.append((name, value.strip(" \t")))
    return tuple(headers)


def _body_of(head: RequestHead) -> tuple[RequestBodyKind, int] | None:
    """What ends its body and its length; None when that is in doubt."""
    codings, lengths = head.all("transfer-encoding"), head.all("content-length")
    if codings:
        return ("chunked", 0) if not lengths and [one.lower() for one in codings] == ["chunked"] else None
    if not lengths:
        return "none", 0
    if len(set(lengths)) > 1 or not _LENGTH.fullmatch(lengths[0]):
        return None
    length = int(lengths[0])
    return ("length" if length else "none"), length
