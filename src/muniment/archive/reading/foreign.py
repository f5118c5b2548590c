"""An index of WARC files of any tool: their captures, found by reading all headers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime

from msgspec import Struct

from muniment.archive.reading.containers import Container
from muniment.archive.warc.digest_labels import sha1_hex
from muniment.archive.warc.grammar import RecordHeader
from muniment.archive.warc.inflate import DamageError, MemberReader
from muniment.archive.warc.stored import read_message, read_record
from muniment.extract.headers import redirect_reference
from muniment.http.head import Head
from muniment.http.redirects import REDIRECTS
from muniment.model.url import resolve

__all__ = ["FoundCapture", "captures_in"]

_CAPTURES = frozenset({"response", "revisit", "resource"})
_DATE = re.compile(r"(\d{4})-(\d\d)-(\d\d)(?:T(\d\d):(\d\d):(\d\d)(?:\.(\d{1,6})\d*)?)?")
_HEADER_END = b"\r\n\r\n"


class FoundCapture(Struct, frozen=True):
    """A capture in a WARC file."""

    url: str
    started_at: int
    """Unix microseconds."""
    status: int
    content_type: str
    digest: str
    """SHA-1, lower-case hex; empty when the record has none."""
    record_type: str
    offset: int
    truncated: bool
    redirect_to: str


def captures_in(container: Container) -> Iterator[FoundCapture]:
    """The captures of a WARC file up to where it is damaged. Raises OSError."""
    records = _packed(container) if container.packed else _plain(container)
    try:
        for offset, pieces in records:
            header, block = read_record(pieces)
            if header.get("warc-type") in _CAPTURES and (found := _capture(header, block, offset)) is not None:
                yield found
            for _ in block:
                pass
    except DamageError:
        return


def _packed(container: Container) -> Iterator[tuple[int, Iterator[bytes]]]:
    end = container.start + container.length
    reader = MemberReader(container.path, end, container.start)
    try:
        while reader.position < end:
            offset, pieces = reader.position - container.start, reader.pieces()
            yield offset, pieces
            for _ in pieces:
                pass
    finally:
        reader.close()


def _plain(container: Container) -> Iterator[tuple[int, Iterator[bytes]]]:
    offset = 0
    while offset < container.length:
        yield offset, container.record(offset)
        offset += _length(container.record(offset))


def _length(pieces: Iterator[bytes]) -> int:
    """The bytes of the record that begins here, its end included."""
    held = next(pieces, b"")
    while (end := held.find(_HEADER_END)) < 0 and (piece := next(pieces, b"")):
        held += piece
    header, _ = read_record(iter((held,)))
    return end + len(_HEADER_END) + int(header.get("content-length")) + len(_HEADER_END)


def _capture(header: RecordHeader, block: Iterator[bytes], offset: int) -> FoundCapture | None:
    url, at = header.get("warc-target-uri").strip("<>"), _micros(header.get("warc-date"))
    if not url.startswith(("http:", "https:")) or at is None:
        return None
    kind, content_type = header.get("warc-type"), header.get("content-type")
    if kind == "resource" or not content_type.startswith("application/http"):
        if content_type.startswith("application/warc-fields"):
            return None
        status, redirect = (200, "") if kind == "resource" else (0, "")
    else:
        head, body = read_message(block)
        for _ in body:
            pass
        if head is None:
            return None
        status, content_type, redirect = head.status, _field(head, "content-type"), _redirect(url, head)
    digest = sha1_hex(header.get("warc-payload-digest")) or ""
    return FoundCapture(
        url, at, status, content_type, digest, kind, offset, bool(header.get("warc-truncated")) and kind != "revisit",
        redirect,
    )  # fmt: skip


def _redirect(url: str, head: Head) -> str:
    if head.status not in REDIRECTS:
        return ""
    location = redirect_reference(_field(head, "location"))
    return resolve(url, location) or "" if location else ""


def _field(head: Head, name: str) -> str:
    return next((value for other, value in head.headers if other == name), "")


def _micros(date: str) -> int | None:
    found = _DATE.match(date)
    if found is None:
        return None
    try:
        seconds = datetime(*(int(part or 0) for part in found.groups()[:6]), tzinfo=UTC).timestamp()  # type: ignore[arg-type,misc]
    except (ValueError, OverflowError):
        return None
    return int(seconds) * 1_000_000 + int((found[7] or "").ljust(6, "0") or 0)
