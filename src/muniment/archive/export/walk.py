"""The walk through a WARC file that is handed on: every member is inflated, and what is listed is found where it is."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec
from msgspec import Struct

from muniment.archive.export.gather import WarcFile
from muniment.archive.export.pages import PackagePages, PageRow, words_of
from muniment.archive.warc.inflate import DamageError, MemberReader
from muniment.errors import ArchiveError

__all__ = ["RecordRow", "row_line", "row_of", "walk_file"]


class RecordRow(Struct, frozen=True, array_like=True):
    """A row of a record, as the walk needs it."""

    offset: int
    content_type: str
    page: PageRow | None


_NO_RECORD = "the index lists a record there, and none begins"
_encode = msgspec.json.encode
_decode = msgspec.json.Decoder(RecordRow).decode


def row_line(entry: int, row: RecordRow) -> str:
    """A line that sorts by the number of the file and the place in it."""
    return f"{entry:08d} {row.offset:018d} {_encode(row).decode()}\n"


def row_of(line: str) -> tuple[int, RecordRow]:
    """The number of the file, and the row."""
    return int(line[:8]), _decode(line[28:])


def walk_file(
    file: WarcFile, rows: Iterable[RecordRow], pages: PackagePages, go_on: Callable[[], bool], *, with_text: bool
) -> None:
    """Inflate a file once and take the pages among its rows, which are in order of their places.

    Raises ArchiveError, with the offset, for a member that is damaged and for a row without a record.
    """
    reader = MemberReader(file.path, file.length)
    upcoming = iter(rows)
    row = next(upcoming, None)
    try:
        while reader.position < file.length and go_on():
            offset = reader.position
            if row is not None and row.offset < offset:
                raise ArchiveError(_fault(file, row.offset, _NO_RECORD))
            here = row if row is not None and row.offset == offset else None
            try:
                _member(reader, here, pages, with_text=with_text)
            except DamageError as error:
                raise ArchiveError(_fault(file, offset, str(error))) from None
            while row is not None and row.offset == offset:
                row = next(upcoming, None)
        if row is not None and go_on():
            raise ArchiveError(_fault(file, row.offset, _NO_RECORD))
    finally:
        reader.close()


def _member(reader: MemberReader, row: RecordRow | None, pages: PackagePages, *, with_text: bool) -> None:
    page = row.page if row is not None else None
    if page is not None and page.revisit:
        pages.add(page, None)
    whole = reader.whole()
    pieces = reader.pieces() if whole is None else iter((whole,))
    if row is not None and page is not None and not page.revisit:
        pages.add(page, words_of(pieces, row.content_type, with_text=with_text))
    for _ in pieces:
        pass


def _fault(file: WarcFile, offset: int, text: str) -> str:
    return f"{file.directory / file.name}: damaged at byte {offset}: {text}; muniment check lists all damage"
