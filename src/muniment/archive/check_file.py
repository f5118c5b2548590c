"""Checking one WARC: every member, every record, and its rows of the index, in one pass and in flat memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from muniment.archive.check_rows import FileRows, Found
from muniment.archive.grammar import RecordHeader, parse_header, violations
from muniment.archive.inflate import DamageError, MemberReader
from muniment.archive.payload import HttpBlock, PlainBlock

__all__ = ["Fault", "FileChecker"]

_HEADER_END = b"\r\n\r\n"
_MOST_HEADER = 1 << 20
_TRAILER = b"\r\n\r\n"
_MOST_FAULTS = 1000
"""A file with more is broken as a whole; the rest is counted, not listed."""


class Fault(Struct, frozen=True):
    """One thing that is wrong, and where."""

    file: str
    offset: int
    """Of the gzip member within the file; -1 when the fault has no place in it."""
    code: str
    """`gzip member version header field length trailer block-digest payload-digest http id link warcinfo row index`."""
    text: str


class FileChecker:
    """One pass over one file; the faults collect in `faults`."""

    def __init__(self, name: str, rows: FileRows) -> None:
        self.name = name
        self.records = 0
        self.faults: list[Fault] = []
        self._rows = rows
        self._uncounted = 0
        self._ids: set[str] = set()
        self._wanted: dict[str, int] = {}
        self._warcinfo: set[str] = set()

    def run(self, path: Path, limit: int) -> None:
        """Read the file up to `limit` bytes."""
        reader = MemberReader(path, limit)
        whole = True
        try:
            while not reader.at_end:
                self._member(reader)
        except DamageError as error:
            whole = False
            self._fault(reader.position, "gzip", f"{error}; the rest of the file was not read")
        finally:
            reader.close()
        for wanted, offset in self._wanted.items():
            if wanted not in self._ids:
                self._fault(offset, "link", f"no record {wanted} in this file")
        if whole:
            for offset, text in self._rows.rest(limit):
                self._fault(offset, "row", text)
        if self._uncounted:
            self._fault(-1, "member", f"{self._uncounted} more faults in this file")

    def _fault(self, offset: int, code: str, text: str) -> None:
        if len(self.faults) < _MOST_FAULTS:
            self.faults.append(Fault(self.name, offset, code, text))
        else:
            self._uncounted += 1

    def _member(self, reader: MemberReader) -> None:
        offset = reader.position
        pieces = reader.pieces()
        try:
            header, block = self._record(pieces, offset)
        except _SpoiltError as error:
            self._fault(offset, error.code, str(error))
            for _ in pieces:
                pass
            return
        self.records += 1
        for code, text in block.faults():
            self._fault(offset, code, text)
        if isinstance(block, HttpBlock):
            self._compare(header, block, offset, reader.position - offset)

    def _record(self, pieces: Iterator[bytes], offset: int) -> tuple[RecordHeader, PlainBlock]:
        first = b""
        while (end := first.find(_HEADER_END)) < 0:
            piece = next(pieces, b"")
            if not piece or len(first) > _MOST_HEADER:
                raise _SpoiltError("header", "no end of the record's header")
            first += piece
        header = parse_header(first[:end])
        for code, text in violations(header):
            self._fault(offset, code, text)
        self._remember(header, offset)
        length = header.get("content-length")
        if not length.isdecimal():
            raise _SpoiltError("length", "no Content-Length, so the record's end is unknown")
        block = _block(header)
        self._read_block(block, memoryview(first)[end + 4 :], pieces, int(length), offset)
        return header, block

    def _read_block(
        self, block: PlainBlock, data: memoryview, pieces: Iterator[bytes], length: int, offset: int
    ) -> None:
        left = length
        while left:
            if not data:
                data = memoryview(next(pieces, b""))
                if not data:
                    raise _SpoiltError("length", f"the block is {left} bytes shorter than Content-Length says")
            block.feed(data[:left])
            taken = min(left, len(data))
            data = data[taken:]
            left -= taken
        self._trailer(bytes(data[:64]), len(data), pieces, offset)

    def _trailer(self, data: bytes, count: int, pieces: Iterator[bytes], offset: int) -> None:
        for piece in pieces:
            data = data if len(data) >= 64 else data + piece[:64]
            count += len(piece)
        if data.startswith(_TRAILER) and count == 4:
            return
        if data.startswith(b"WARC/") or data[4:].startswith(b"WARC/"):
            self._fault(offset, "member", "more than one record in a gzip member")
        elif data.startswith(_TRAILER):
            self._fault(offset, "trailer", f"{count - 4} bytes after the record's end")
        else:
            self._fault(offset, "trailer", f"the block is not followed by CRLF CRLF but by {data[:12]!r}")

    def _remember(self, header: RecordHeader, offset: int) -> None:
        record_id = header.get("warc-record-id")
        if record_id in self._ids:
            self._fault(offset, "id", f"the Record-ID {record_id} is not unique")
        self._ids.add(record_id)
        if header.get("warc-type") == "warcinfo":
            self._warcinfo.add(record_id)
        elif not self._warcinfo and not self.records:
            self._fault(offset, "warcinfo", "the file does not begin with a warcinfo record")
        info = header.get("warc-warcinfo-id")
        if info and info not in self._warcinfo:
            self._fault(offset, "link", f"no warcinfo record {info} before this one")
        for other in header.all("warc-concurrent-to"):
            # Most point back to the record just read; only those that point forward are kept.
            if other not in self._ids:
                self._wanted.setdefault(other, offset)

    def _compare(self, header: RecordHeader, block: HttpBlock, offset: int, length: int) -> None:
        found = Found(
            offset=offset,
            length=length,
            url=header.get("warc-target-uri"),
            date=header.get("warc-date"),
            status=block.status,
            digest=header.get("warc-payload-digest"),
            payload_length=block.payload_length,
            record_type=header.get("warc-type"),
            record_id=header.get("warc-record-id").strip("<>"),
        )
        if header.get("warc-profile").endswith("/server-not-modified") and block.status != 304:
            self._fault(offset, "http", f"a {block.status} answer stands as one that says not modified")
        for row_offset, text in self._rows.compare(found):
            self._fault(row_offset, "row", text)


class _SpoiltError(Exception):
    """The record cannot be read to its end; stays inside this module."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code


def _block(header: RecordHeader) -> PlainBlock:
    kind = header.get("warc-type")
    digest = header.get("warc-block-digest")
    if kind in {"response", "revisit"} and header.get("content-type").startswith("application/http"):
        return HttpBlock(
            digest,
            header.get("warc-payload-digest"),
            revisit=kind == "revisit",
            truncated=bool(header.get("warc-truncated")),
            on_the_wire=header.get("warc-protocol").lower().startswith("http/1"),
        )
    return PlainBlock(digest)
