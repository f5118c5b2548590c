"""The recorded body of a page, out of its WARC: content coding removed, flat in memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from muniment.archive.names import OPEN_SUFFIX
from muniment.archive.warc.grammar import RecordHeader
from muniment.archive.warc.inflate import DamageError
from muniment.archive.warc.stored import member_pieces, read_message, read_record
from muniment.extract.coding_stream import decoded
from muniment.model.hooks.runs import CapturedPage

__all__ = ["RecordedBody", "recorded_body"]


class RecordedBody(Struct, frozen=True):
    """A body as it is read."""

    content_type: str
    pieces: Iterator[bytes]


def recorded_body(out: Path, page: CapturedPage) -> RecordedBody | None:
    """The body of a page, of a revisit that of the record that it refers to; None when it is not to be had."""
    try:
        header, block = _record(out, page.warc_file, page.warc_offset)
        if header.get("warc-type") == "revisit":
            place = _original(out, page, header)
            if place is None:
                return None
            _, block = _record(out, *place)
        head, payload = read_message(block)
    except (DamageError, OSError):
        return None
    if head is None:
        return None
    pieces = decoded(_until_damage(payload), head.field("content-encoding"))
    return RecordedBody(head.field("content-type") or page.content_type, pieces)


def _record(out: Path, name: str, offset: int) -> tuple[RecordHeader, Iterator[bytes]]:
    try:
        return read_record(member_pieces(out / name, offset))
    except FileNotFoundError:
        pass
    try:
        return read_record(member_pieces(out / f"{name}{OPEN_SUFFIX}", offset))
    except FileNotFoundError:
        return read_record(member_pieces(out / name, offset))  # it was sealed in between


def _until_damage(pieces: Iterator[bytes]) -> Iterator[bytes]:
    try:
        yield from pieces
    except (DamageError, OSError):
        return


def _original(out: Path, page: CapturedPage, header: RecordHeader) -> tuple[str, int] | None:
    from muniment.archive.index.find import find_payload  # noqa: PLC0415  (pyarrow: where a page was not new)

    url = header.get("warc-refers-to-target-uri").strip("<>") or page.url
    return find_payload(out, page.digest, url)
