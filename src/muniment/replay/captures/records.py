"""The bytes of captures: the record as it is stored, its payload, and what a revisit stands for."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime

from msgspec import Struct

from muniment.archive.warc.digest_labels import digest_key
from muniment.archive.warc.grammar import RecordHeader
from muniment.archive.warc.inflate import DamageError
from muniment.archive.warc.request_bodies import WITH_BODY, posted_request
from muniment.archive.warc.stored import read_message, read_record
from muniment.http.head import Head
from muniment.model.url import normalise
from muniment.replay.captures.catalog import Catalog
from muniment.replay.choice import Entry, original_of

__all__ = ["Message", "RecordError", "kept_lines", "message_of", "request_body", "stored_record"]

_OF_NOTHING = "da39a3ee5e6b4b0d3255bfef95601890afd80709"
"""The digest of no payload, which many captures have and none stands for another by."""


class RecordError(Exception):
    """A capture whose bytes cannot be had; its text says why, and stays inside replay."""


class Message(Struct, frozen=True):
    """What a server said, the payload being that of the original record where the capture stands for another."""

    head: Head
    payload: Iterator[bytes]
    """Without transfer coding, still content-coded."""
    refers_to: Entry | None
    """The capture whose payload it is, if that is another one."""
    length: int = 0
    """Bytes of the payload, as the catalogue knows them."""


def stored_record(catalog: Catalog, entry: Entry) -> Iterator[bytes]:
    """The record as it is stored, its end included. Raises RecordError."""
    header, block, raw = _open(catalog, entry)
    del header
    yield raw
    yield from _guarded(block)
    yield b"\r\n\r\n"


def message_of(catalog: Catalog, entry: Entry) -> Message:
    """The HTTP message of a capture. Raises RecordError when it, or what it stands for, is missing or damaged."""
    header, block, _ = _open(catalog, entry)
    if header.get("warc-type") == "resource":
        return Message(_made_head(header), _guarded(block), None, entry.length)
    revisit = header.get("warc-type") == "revisit"
    try:
        head, payload = read_message(block)
    except (DamageError, OSError) as error:
        raise RecordError(f"its record is damaged: {error}") from None
    if head is None and not revisit:
        raise RecordError("its record holds no HTTP response")
    if head is not None and not revisit and head.status != 304:
        return Message(head, _guarded(payload), None, entry.length)
    original = _original(catalog, entry, header)
    found = message_of(catalog, original)
    # a 304 says little of the page: what it left out is as it was (RFC 9110, section 15.4.5)
    kept = found.head if head is None or head.status == 304 else head
    return Message(kept, found.payload, original, found.length)


def request_body(catalog: Catalog, entry: Entry) -> str | None:
    """The key of the body of the request whose record follows a capture; None when there is none to read."""
    try:
        pieces = catalog.container(entry.place).record(entry.offset + entry.packed)
        found = posted_request(pieces, entry.url, WITH_BODY)
    except (DamageError, OSError):
        return None
    return found.query if found else None


def _original(catalog: Catalog, entry: Entry, header: RecordHeader) -> Entry:
    named, date = header.get("warc-refers-to-target-uri").strip("<>"), header.get("warc-refers-to-date")
    url = normalise(named) or named or entry.url
    at = _micros(date)
    digest = digest_key(header.get("warc-payload-digest")) or entry.digest
    near = entry.at if at is None else at
    told = digest not in {"", _OF_NOTHING} and entry.status != 304
    if told and (found := catalog.stored_with(digest, near)):
        return found
    if found := original_of(entry, catalog.alike(url, near), url, at):
        return found
    missing = f"{url}{f' of {date}' if date else ''}"
    raise RecordError(f"it is unchanged since an earlier capture, {missing}, which is not in these archives")


def _open(catalog: Catalog, entry: Entry) -> tuple[RecordHeader, Iterator[bytes], bytes]:
    """Header, block, and the header's bytes."""
    try:
        pieces = catalog.container(entry.place).record(entry.offset)
        held = next(pieces, b"")
        while (end := held.find(b"\r\n\r\n")) < 0 and (piece := next(pieces, b"")):
            held += piece
        header, block = read_record(_again(held, pieces))
    except DamageError as error:
        raise RecordError(f"its record is damaged: {error}") from None
    except OSError as error:
        raise RecordError(f"its WARC file cannot be read: {error.strerror or error}") from None
    return header, block, held[: end + 4]


def _again(held: bytes, pieces: Iterator[bytes]) -> Iterator[bytes]:
    yield held
    yield from pieces


def _guarded(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Pieces up to where the record is damaged: what was sent before cannot be taken back."""
    try:
        yield from pieces
    except (DamageError, OSError):
        return


def _made_head(header: RecordHeader) -> Head:
    kind = header.get("content-type") or "application/octet-stream"
    raw = f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\n\r\n".encode("latin-1", "replace")
    return Head(raw, 200, (("content-type", kind),), "close", (), keep_alive=False)


def kept_lines(head: Head, dropped: re.Pattern[bytes]) -> list[bytes]:
    """The header lines as they were sent, without those that begin like `dropped`."""
    lines = [line.rstrip(b"\r") for line in head.raw.rstrip(b"\r\n").split(b"\n")[1:]]
    return [line for line in lines if not dropped.match(line)]


def _micros(date: str) -> int | None:
    try:
        at = datetime.fromisoformat(date[:26].rstrip("Z")).replace(tzinfo=UTC)
    except ValueError:
        return None
    return round(at.timestamp() * 1_000_000)
