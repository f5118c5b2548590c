"""Request bodies as queries: by these, replay tools tell the answers to requests of one URL apart.

The rules are those that CDX tools share (request-body-canonicalization): forms become arguments, JSON becomes its
leaves, and what is neither becomes base64.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Iterator
from contextlib import suppress
from email.message import Message
from itertools import islice
from urllib.parse import unquote_plus, urlencode

from msgspec import Struct

from muniment.archive.warc.stored import read_record
from muniment.http.chunked import decode

__all__ = ["MOST_BODY", "POSTED", "WITH_BODY", "PostedRequest", "body_key", "posted_request", "request_in"]

POSTED = frozenset({"POST", "PUT"})
"""Methods whose bodies are a part of the key in an index."""
WITH_BODY = POSTED | {"PATCH"}
"""Methods whose requests differ by their bodies."""
_MOST_QUERY = 4096
_MOST_UNTOLD = 8192
MOST_BODY = 64 << 20
"""Bytes of a body that are looked at."""
_HEAD_END = re.compile(rb"\r?\n\r?\n")


class PostedRequest(Struct, frozen=True):
    """What a request record says of a body."""

    method: str
    query: str

    def key_of(self, url: str) -> str:
        """The URL with method and body as arguments."""
        query = f"&{self.query}" if self.query else ""
        return f"{url}{'&' if '?' in url else '?'}__wb_method={self.method}{query}"


def posted_request(pieces: Iterator[bytes], url: str, methods: frozenset[str] = POSTED) -> PostedRequest | None:
    """The request in a record, if it is one for the URL by one of some methods. Raises DamageError and OSError."""
    header, block = read_record(pieces)
    if header.get("warc-type") != "request" or header.get("warc-target-uri").strip("<>") != url:
        return None
    found = request_in(block)
    return found if found.method in methods else None


def request_in(block: Iterator[bytes]) -> PostedRequest:
    """The request in the block of a record; without body but for `WITH_BODY`. Raises DamageError and OSError."""
    held = next(block, b"")
    method = held.lstrip()[:32].split(b" ", 1)[0].decode("latin-1").upper()
    if method not in WITH_BODY:
        return PostedRequest(method, "")
    head, _, body = _parted(held + b"".join(_up_to(block, MOST_BODY)))
    fields = dict(_fields(head.partition(b"\n")[2]))
    return PostedRequest(method, body_key(fields.get("content-type", ""), _told(fields, body)))


def body_key(content_type: str, body: bytes) -> str:
    """The key of a body: its query, as far as it counts."""
    return _query(content_type, body)[:_MOST_QUERY]


def _parted(message: bytes) -> tuple[bytes, bytes, bytes]:
    end = _HEAD_END.search(message)
    return (message[: end.start()], end[0], message[end.end() :]) if end else (message, b"", b"")


def _up_to(pieces: Iterator[bytes], most: int) -> Iterator[bytes]:
    for piece in pieces:
        yield piece[:most]
        most -= len(piece)
        if most <= 0:
            return


def _fields(lines: bytes) -> Iterator[tuple[str, str]]:
    for line in lines.decode("latin-1").split("\n"):
        name, _, value = line.partition(":")
        yield name.strip().lower(), value.strip()


def _told(fields: dict[str, str], body: bytes) -> bytes:
    """Of what follows the head, as much as it says."""
    if fields.get("transfer-encoding", "").lower() == "chunked":
        body = b"".join(map(bytes, decode(iter((body,)))))
    length = fields.get("content-length", str(_MOST_UNTOLD))
    return body[: int(length)] if length.isdecimal() else b""


def _query(kind: str, body: bytes) -> str:
    if kind.startswith("application/x-www-form-urlencoded"):
        with suppress(UnicodeDecodeError):
            return unquote_plus(body.decode())
    elif kind.startswith("multipart/"):
        with suppress(ValueError):
            return urlencode(_parts(body, kind.partition("boundary=")[2]), doseq=True)
    elif kind.startswith("application/json"):
        with suppress(ValueError, RecursionError):
            return _leaves(body)
        return ""
    elif kind.startswith("text/plain"):
        with suppress(ValueError, RecursionError):
            return _leaves(body)
    return f"__wb_post_data={b64encode(body).decode()}"


def _parts(body: bytes, boundary: str) -> list[tuple[str, str | bytes]]:
    """The fields of a form in parts; files as bytes. Raises ValueError when it is not one."""
    if not boundary:
        raise ValueError("no boundary")
    whole = b"\r\n" + body
    pieces = whole.split(b"\r\n--" + boundary.encode("latin-1"))
    if len(pieces) < 2 or not pieces[-1].startswith(b"--"):
        raise ValueError("not in parts")
    return [_part(piece) for piece in islice(pieces, 1, len(pieces) - 1)]


def _part(piece: bytes) -> tuple[str, str | bytes]:
    head, _, value = piece.removeprefix(b"\r\n").partition(b"\r\n\r\n")
    about = Message()
    for name, text in _fields(head):
        about[name] = text
    name = str(about.get_param("name", "", "content-disposition"))
    if about.get_filename():
        return name, value
    return name, value.decode()


def _leaves(body: bytes) -> str:
    """The leaves of JSON, or of lines of JSON, by their names; a name that comes again is numbered."""
    found: dict[str, str] = {}
    times: dict[str, int] = {}

    def take(value: object, name: str) -> None:
        if isinstance(value, dict):
            for key, one in value.items():
                take(one, key)
        elif isinstance(value, list):
            for one in value:
                take(one, name)
        elif name:
            key = name
            if name in found:
                times[name] = times.get(name, 1) + 1
                key = f"{name}.{times[name]}_"
            found[key] = str(value)

    for value in _values(body):
        take(value, "")
    return urlencode(found)


def _values(body: bytes) -> list[object]:
    try:
        return [json.loads(body)]
    except json.JSONDecodeError:
        if b"\n" not in body:
            raise
        return [json.loads(line) for line in body.split(b"\n")]
