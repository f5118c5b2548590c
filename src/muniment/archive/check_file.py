"""Checking one stretch of a WARC: every member and every record, in one pass and in flat memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from muniment.archive.check_ids import CONCURRENT_TO, REFERS_TO, WARCINFO_ID, IdHeaps
from muniment.archive.digests import sha1_hex
from muniment.archive.grammar import RecordHeader, parse_header, violations
from muniment.archive.inflate import DamageError, MemberReader, next_record
from muniment.archive.payload import HttpBlock, PlainBlock, RequestBlock

__all__ = ["Checker", "Fault", "Found", "Read", "Stretch"]

_HEADER_END = b"\r\n\r\n"
_MOST_HEADER = 1 << 20
_TRAILER = b"\r\n\r\n"
_MOST_FAULTS = 1000
"""A file with more is broken as a whole; the rest is counted, not listed."""
_NEAR = 8
"""A record mostly names one of so many before it."""
_WHOLE = frozenset({"resource", "conversion"})
"""Records whose payload is their block (WARC 1.1 §6.4, §6.8), unless that is an HTTP message."""


class Fault(Struct, frozen=True):
    """One thing that is wrong, and where."""

    file: str
    offset: int
    """Of the gzip member within the file; -1 when the fault has no place in it."""
    code: str
    """docs/check.md lists them."""
    text: str


class Stretch(Struct, frozen=True):
    """A part of a WARC that is checked by itself: members that begin from `start` on and before `end`."""

    number: int
    """Of the file within the directory."""
    name: str
    """The final file name."""
    path: str
    start: int
    end: int
    limit: int
    """Bytes of the file that count; the last member may reach up to here."""
    own: bool
    """Muniment wrote the directory, which then has an index and what else it promises."""


class Found(Struct, frozen=True, array_like=True):
    """What a file holds for one capture: a response or revisit record of an HTTP exchange."""

    offset: int
    length: int
    url: str
    date: str
    status: int
    digest: str
    """Of the payload as the record states it: SHA-1 in hexadecimal digits, any other as it is spelled; may be empty."""
    payload_length: int
    """As read; of no meaning for a revisit."""
    record_type: str
    record_id: str


class Read(Struct, frozen=True):
    """What a stretch was found to hold."""

    end: int
    """Where its last member ended."""
    records: int
    faults: list[Fault]
    uncounted: int
    """Faults beyond those that are listed."""
    torn: int
    """Where the file's unfinished end begins, after which no record was found; -1 without one."""
    found: list[Found]
    ids: list[bytes]


class Checker:
    """One pass over one stretch."""

    def __init__(self, stretch: Stretch) -> None:
        self._stretch = stretch
        self._records = 0
        self._faults: list[Fault] = []
        self._uncounted = 0
        self._torn = -1
        self._found: list[Found] = []
        self._ids = IdHeaps(stretch.number)
        self._near: deque[str] = deque(maxlen=_NEAR)
        self._dates: deque[str] = deque(maxlen=_NEAR)
        self._info = ""

    def run(self) -> Read:
        """Read the stretch to its end, past damage where a record can be found behind it."""
        stretch = self._stretch
        path = Path(stretch.path)
        # an open file may have been sealed since it was listed
        reader = MemberReader(path if path.exists() else path.with_name(stretch.name), stretch.limit, stretch.start)
        try:
            while reader.position < stretch.end:
                offset = reader.position
                try:
                    self._member(reader, offset)
                except DamageError as error:
                    reader.position = self._past_damage(offset, error)
        except OSError as error:
            self._fault(reader.position, "gzip", f"cannot be read: {error.strerror}; the rest was not checked")
        finally:
            reader.close()
        ids = self._ids.packed()
        end = reader.position
        return Read(end, self._records, self._faults, self._uncounted, self._torn, self._found, ids)

    def _past_damage(self, offset: int, error: DamageError) -> int:
        stretch = self._stretch
        there = next_record(Path(stretch.path), offset + 1, stretch.end)
        if there == stretch.limit:
            self._torn = offset
            self._fault(offset, "gzip", f"{error}; {there - offset} bytes to the end of the file hold no whole record")
        else:
            self._fault(offset, "gzip", f"{error}; {there - offset} bytes were passed over to the next record")
        return there

    def _fault(self, offset: int, code: str, text: str) -> None:
        if len(self._faults) < _MOST_FAULTS:
            self._faults.append(Fault(self._stretch.name, offset, code, text))
        else:
            self._uncounted += 1

    def _member(self, reader: MemberReader, offset: int) -> None:
        pieces = reader.pieces()
        try:
            header, block = self._record(pieces, offset)
        except _SpoiltError as error:
            self._fault(offset, error.code, str(error))
            for _ in pieces:
                pass
            return
        self._records += 1
        for code, text in block.faults():
            self._fault(offset, code, text)
        if isinstance(block, HttpBlock):
            self._note(header, block, offset, reader.position - offset)

    def _record(self, pieces: Iterator[bytes], offset: int) -> tuple[RecordHeader, PlainBlock]:
        first = b""
        while (end := first.find(_HEADER_END)) < 0:
            piece = next(pieces, b"")
            if not piece or len(first) > _MOST_HEADER:
                raise _SpoiltError("header", "no end of the record's header")
            first += piece
        header = parse_header(first[:end])
        for code, text in violations(header, own=self._stretch.own):
            self._fault(offset, code, text)
        self._remember(header, offset)
        length = header.get("content-length")
        if not length.isdecimal():
            raise _SpoiltError("length", "no Content-Length, so the record's end is unknown")
        block = self._block(header)
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
        if count == 4 and data == _TRAILER:
            return
        if data.startswith(b"WARC/") or data[4:].startswith(b"WARC/"):
            self._fault(offset, "member", "more than one record in a gzip member")
        elif data.startswith(_TRAILER):
            self._fault(offset, "trailer", f"{count - 4} bytes after the record's end")
        else:
            self._fault(offset, "trailer", f"the block is not followed by CRLF CRLF but by {data[:12]!r}")

    def _block(self, header: RecordHeader) -> PlainBlock:
        value = header.values.get
        kind, digest = value("warc-type", ""), value("warc-block-digest", "")
        payload = value("warc-payload-digest", "")
        is_http = value("content-type", "").startswith("application/http")
        if is_http and kind in {"response", "revisit"}:
            return HttpBlock(
                digest,
                payload,
                revisit=kind == "revisit",
                truncated="warc-truncated" in header.values,
                on_the_wire=any(value.lower().startswith("http/1") for value in header.all("warc-protocol")),
            )
        if is_http and kind == "request" and payload:
            return RequestBlock(digest, payload)
        return PlainBlock(digest, payload if kind in _WHOLE and not is_http else "")

    def _remember(self, header: RecordHeader, offset: int) -> None:
        values = header.values
        record_id = values.get("warc-record-id", "")
        is_info = values.get("warc-type") == "warcinfo"
        if record_id:
            self._ids.named(record_id, offset, warcinfo=is_info)
        if not offset and not is_info:
            self._fault(offset, "warcinfo", "the file does not begin with a warcinfo record")
        info = values.get("warc-warcinfo-id")
        if info and info != self._info:
            self._info = info
            self._ids.used(WARCINFO_ID, info, offset)
        if "warc-concurrent-to" in values or "warc-refers-to" in values:
            self._follow(header, offset)
        self._near.append(record_id)
        self._dates.append(values.get("warc-date", ""))

    def _follow(self, header: RecordHeader, offset: int) -> None:
        """Note the records that this one names, unless they are near; those of one capture have one date (§5.4)."""
        date = header.get("warc-date")
        for other in header.all("warc-concurrent-to"):
            if other not in self._near:
                self._ids.used(CONCURRENT_TO, other, offset)
            elif self._dates[self._near.index(other)] != date:
                self._fault(offset, "field", "warc-date differs from that of the record in warc-concurrent-to")
        refers = header.get("warc-refers-to")
        if refers and refers not in self._near and (self._stretch.own or not _says_where(header)):
            self._ids.used(REFERS_TO, refers, offset)

    def _note(self, header: RecordHeader, block: HttpBlock, offset: int, length: int) -> None:
        if header.get("warc-profile").endswith("/server-not-modified") and block.status != 304:
            self._fault(offset, "http", f"a {block.status} answer stands as one that says not modified")
        self._found.append(
            Found(
                offset,
                length,
                header.get("warc-target-uri"),
                header.get("warc-date"),
                block.status,
                sha1_hex(header.get("warc-payload-digest")),
                block.payload_length,
                header.get("warc-type"),
                header.get("warc-record-id").strip("<>"),
            )
        )


class _SpoiltError(Exception):
    """The record cannot be read to its end; stays inside this module."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code


def _says_where(header: RecordHeader) -> bool:
    """The revisit names its original as one that may lie in another archive (WARC 1.1 §6.7.2)."""
    return bool(header.get("warc-refers-to-target-uri") and header.get("warc-refers-to-date"))
