"""An index of WARC files of any tool: their captures, found by reading all headers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime

from msgspec import Struct, structs

from muniment.archive.reading.containers import Container
from muniment.archive.warc.digest_labels import digest_key
from muniment.archive.warc.grammar import RecordHeader
from muniment.archive.warc.inflate import DamageError, MemberReader
from muniment.archive.warc.request_bodies import WITH_BODY, PostedRequest, request_in
from muniment.archive.warc.stored import read_head, read_record
from muniment.extract.headers import redirect_reference
from muniment.http.chunked import ChunkWalker
from muniment.http.head import Head
from muniment.http.redirects import REDIRECTS
from muniment.model.url import resolve

__all__ = ["FoundCapture", "captures_in"]

_CAPTURES = frozenset({"response", "revisit", "resource"})
_DATE = re.compile(r"(\d{4})-(\d\d)-(\d\d)(?:T(\d\d):(\d\d):(\d\d)(?:\.(\d{1,6})\d*)?)?")
_HEADER_END = b"\r\n\r\n"
_WAITING = 64
"""Records between a capture and its request."""


class FoundCapture(Struct, frozen=True, kw_only=True):
    """A capture in a WARC file."""

    url: str
    started_at: int
    """Unix microseconds."""
    status: int
    """0 for a revisit without a head."""
    content_type: str
    digest: str
    """As `digest_key` spells it; empty when the record has none."""
    record_type: str
    offset: int
    length: int
    """Bytes of the payload, content coding kept."""
    whole: bool
    redirect_to: str
    method: str = "GET"
    """That of the request beside it; GET when there is none."""
    body: str | None = None
    """The key of the request's body, where its method has one."""


def captures_in(container: Container) -> Iterator[FoundCapture]:
    """The captures of a WARC file up to where it is damaged.

    They come in the order of their records but for those that wait for their requests. Raises OSError.
    """
    records = _packed(container) if container.packed else _plain(container)
    pairs = _RequestPairs()
    try:
        for offset, pieces in records:
            header, block = read_record(pieces)
            if header.get("warc-type") in _CAPTURES and (found := _capture(header, block, offset)) is not None:
                yield from pairs.take(header, found)
            elif header.get("warc-type") == "request":
                yield from pairs.take_request(header, request_in(block))
            for _ in block:
                pass
    except DamageError:
        pass
    yield from pairs.rest()


class _RequestPairs:
    """Brings captures and their requests together, whichever comes first; far apart, they stay alone."""

    def __init__(self) -> None:
        self._captures: dict[str, tuple[RecordHeader, FoundCapture]] = {}
        self._requests: dict[str, tuple[RecordHeader, PostedRequest]] = {}

    def take(self, header: RecordHeader, found: FoundCapture) -> Iterator[FoundCapture]:
        """A capture; what need not wait."""
        for name, (asking, asked) in reversed(self._requests.items()):
            if _belong(header, asking):
                del self._requests[name]
                yield _asked(found, asked)
                return
        self._captures[header.get("warc-record-id")] = header, found
        yield from self._first_of_many()

    def take_request(self, header: RecordHeader, asked: PostedRequest) -> Iterator[FoundCapture]:
        """A request; the capture that it belongs to."""
        for name, (answering, found) in reversed(self._captures.items()):
            if _belong(answering, header):
                del self._captures[name]
                yield _asked(found, asked)
                return
        self._requests[header.get("warc-record-id")] = header, asked
        if len(self._requests) > _WAITING:
            del self._requests[next(iter(self._requests))]

    def rest(self) -> Iterator[FoundCapture]:
        """What has waited in vain."""
        for _, found in self._captures.values():
            yield found

    def _first_of_many(self) -> Iterator[FoundCapture]:
        if len(self._captures) > _WAITING:
            yield self._captures.pop(next(iter(self._captures)))[1]


def _belong(answer: RecordHeader, request: RecordHeader) -> bool:
    """By the ids that they name, else by URL and date."""
    if (named := _concurrent_to(answer)) and request.get("warc-record-id") in named:
        return True
    if (named_too := _concurrent_to(request)) and answer.get("warc-record-id") in named_too:
        return True
    return not (named or named_too) and all(
        answer.get(name) == request.get(name) for name in ("warc-target-uri", "warc-date")
    )


def _concurrent_to(header: RecordHeader) -> list[str]:
    return [value for name, value in header.fields if name == "warc-concurrent-to"]


def _asked(found: FoundCapture, asked: PostedRequest) -> FoundCapture:
    # an answer to HEAD has the length of what it leaves out
    whole = found.whole or (asked.method == "HEAD" and not found.length)
    body = asked.query if asked.method in WITH_BODY else None
    return structs.replace(found, method=asked.method, body=body, whole=whole)


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
    status, redirect, length, cut = 0, "", 0, False
    if content_type.startswith("application/http"):
        head, rest = read_head(block)
        if head is None and kind != "revisit":
            return None
        content_type = ""
        if head is not None:
            status, content_type, redirect = head.status, _field(head, "content-type"), _redirect(url, head)
            length, cut = _measured(head, rest)
    elif content_type.startswith("application/warc-fields") and kind != "revisit":
        return None
    elif kind == "resource":
        status, length = 200, sum(map(len, block))
    return FoundCapture(
        url=url,
        started_at=at,
        status=status,
        content_type=content_type,
        digest=digest_key(header.get("warc-payload-digest")),
        record_type=kind,
        offset=offset,
        length=length,
        whole=kind == "revisit" or not (cut or header.get("warc-truncated")),
        redirect_to=redirect,
    )


def _measured(head: Head, body: Iterator[bytes]) -> tuple[int, bool]:
    """Bytes of the payload, and whether more of it was announced."""
    if head.kind != "chunked":
        length = sum(map(len, body))
        return length, head.kind == "length" and length < head.lengths[0]
    walker, length = ChunkWalker(), 0
    for piece in body:
        length += sum(map(len, walker.feed(piece)[1]))
    length += len(walker.eof())
    return length, not (walker.malformed or walker.last_chunk)


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
