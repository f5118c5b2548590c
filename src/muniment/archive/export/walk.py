"""The walk through WARC files that are handed on: every member is inflated, and what is listed is found where it is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import msgspec
from msgspec import Struct

from muniment.archive.export.gather import WarcFile
from muniment.archive.export.pages import PageRow, words_of
from muniment.archive.warc.inflate import DamageError, MemberReader
from muniment.errors import ArchiveError
from muniment.extract.text import PageText

__all__ = ["FoundPage", "RecordRow", "WalkRange", "ranges_of", "row_line", "row_of", "walk"]

FoundPage = tuple[PageRow, PageText | None]
"""A page and its words; a revisit has none of its own."""

_RANGE_BYTES = 4 << 20


class RecordRow(Struct, frozen=True, array_like=True):
    """A row of a record, as the walk needs it."""

    offset: int
    length: int
    content_type: str
    page: PageRow | None


class WalkRange(Struct, frozen=True):
    """A part of a file, from the beginning of a member to that of another, and the rows of its records."""

    file: WarcFile
    start: int
    end: int
    rows: list[RecordRow]


_NO_RECORD = "the index lists a record there, and none begins"
_encode = msgspec.json.encode
_decode = msgspec.json.Decoder(RecordRow).decode


def row_line(entry: int, row: RecordRow) -> str:
    """A line that sorts by the number of the file and the place in it."""
    return f"{entry:08d} {row.offset:018d} {_encode(row).decode()}\n"


def row_of(line: str) -> tuple[int, RecordRow]:
    """The number of the file, and the row."""
    return int(line[:8]), _decode(line[28:])


def ranges_of(file: WarcFile, rows: Iterable[RecordRow]) -> Iterator[WalkRange]:
    """The whole file in ranges of some megabytes; the rows are in the order of their places."""
    start, held = 0, list[RecordRow]()
    for row in rows:
        if row.offset - start >= _RANGE_BYTES and not (held and held[-1].offset == row.offset):
            yield WalkRange(file, start, row.offset, held)
            start, held = row.offset, []
        held.append(row)
    yield WalkRange(file, start, file.length, held)


def walk(part: WalkRange, go_on: Callable[[], bool], *, with_text: bool) -> list[FoundPage]:
    """Inflate a range once; the pages among its rows.

    Raises ArchiveError, with the offset, for a member that is damaged and for a row without a record.
    """
    reader = MemberReader(part.file.path, part.file.length, part.start)
    rows = {row.offset: row for row in reversed(part.rows)}
    pages = []
    try:
        while reader.position < part.end and go_on():
            offset = reader.position
            try:
                page = _page(reader, rows.pop(offset, None), with_text=with_text)
            except DamageError as error:
                raise ArchiveError(_fault(part.file, offset, str(error))) from None
            if page is not None:
                pages.append(page)
        if go_on():
            _check_end(part, reader.position, rows)
    finally:
        reader.close()
    return pages


def _page(reader: MemberReader, row: RecordRow | None, *, with_text: bool) -> FoundPage | None:
    whole = reader.whole(row.length if row is not None else 0)
    pieces = reader.pieces() if whole is None else iter((whole,))
    words = None
    if row is not None and row.page is not None and not row.page.revisit:
        words = words_of(pieces, row.content_type, with_text=with_text)
    for _ in pieces:
        pass
    return (row.page, words) if row is not None and row.page is not None else None


def _check_end(part: WalkRange, position: int, rows: dict[int, RecordRow]) -> None:
    missing = min(rows, default=part.end if position > part.end else None)
    if missing is not None:
        raise ArchiveError(_fault(part.file, missing, _NO_RECORD))


def _fault(file: WarcFile, offset: int, text: str) -> str:
    return f"{file.directory / file.name}: damaged at byte {offset}: {text}; muniment check lists all damage"
