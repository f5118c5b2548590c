"""Checking a range of a WARC file: every member and every record, in one pass and in flat memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import Path

from msgspec import Struct

from muniment.archive.check.block_validation import HttpBlock, PlainBlock, RequestBlock
from muniment.archive.check.boundary import NEAR, OTHER_DATE, EarlyReference, Near, date_near
from muniment.archive.check.fast_path import FastHeader, usual_header
from muniment.archive.check.fault_list import Fault, FaultList
from muniment.archive.check.ids import CONCURRENT_TO, REFERS_TO, WARCINFO_ID, IdHeaps
from muniment.archive.warc.digest_labels import sha1_hex
from muniment.archive.warc.grammar import RecordHeader, is_length, parse_header, violations
from muniment.archive.warc.inflate import DamageError, MemberReader, next_record

__all__ = ["FileRange", "IndexedRecord", "RangeChecker", "RangeReport"]

_HEADER_END = b"\r\n\r\n"
_MOST_HEADER = 1 << 20
_TRAILER = b"\r\n\r\n"
_HTTP = frozenset({"response", "revisit"})
_WHOLE = frozenset({"resource", "conversion"})
"""Records whose payload is their block (WARC 1.1 §6.4, §6.8), unless that is an HTTP message."""


class FileRange(Struct, frozen=True):
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


class IndexedRecord(Struct, frozen=True, array_like=True):
    """A record that has a row: a response or revisit record of an HTTP exchange, or what a browser made of a page."""

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
    ip: str
    truncated: str
    """Empty for a revisit, whose block is cut in any case."""
    content_type: str
    etag: str
    last_modified: str


class RangeReport(Struct, frozen=True):
    """The records and faults of a range."""

    end: int
    """Where its last member ended; the end of what counts when the rest cannot be read."""
    records: int
    faults: list[Fault]
    more: int
    """Faults behind those that are listed."""
    torn: int
    """Where the file's unfinished end begins, after which no record was found; -1 without one."""
    found: list[IndexedRecord]
    ids: list[bytes]
    early: list[EarlyReference]
    """Names whose records may be before the range."""
    near: list[Near]
    """The last records, for the range behind it."""
    warcinfo: str
    """The last Warcinfo-ID; empty without any."""


class RangeChecker:
    """One pass over one range."""

    def __init__(self, file_range: FileRange) -> None:
        self._range = file_range
        self._records = 0
        self._faults = FaultList()
        self._torn = -1
        self._found: list[IndexedRecord] = []
        self._ids = IdHeaps(file_range.number)
        self._early: list[EarlyReference] = []
        self._named = 0
        self._near: deque[Near] = deque(maxlen=NEAR)
        self._warcinfo = ""

    def run(self) -> RangeReport:
        """Read the range to its end, past damage where a record can be found behind it."""
        file_range = self._range
        path = Path(file_range.path)
        # an open file may have been sealed since it was listed
        path = path if path.exists() else path.with_name(file_range.name)
        offset = file_range.start
        try:
            reader = MemberReader(path, file_range.limit, file_range.start)
        except OSError as error:
            self._cannot_read(offset, error)
            return self._read(file_range.limit)
        try:
            while reader.position < file_range.end:
                offset = reader.position
                try:
                    self._member(reader, offset)
                except DamageError as error:
                    reader.position = self._past_damage(offset, error)
        except OSError as error:
            self._cannot_read(offset, error)
            reader.position = file_range.limit
        finally:
            reader.close()
        return self._read(reader.position)

    def _read(self, end: int) -> RangeReport:
        return RangeReport(
            end,
            self._records,
            self._faults.listed(),
            self._faults.more(),
            self._torn,
            self._found,
            self._ids.packed(),
            self._early,
            list(self._near),
            self._warcinfo,
        )

    def _past_damage(self, offset: int, error: DamageError) -> int:
        file_range = self._range
        there = next_record(Path(file_range.path), offset + 1, file_range.end)
        if there == file_range.limit:
            self._torn = offset
            self._fault(offset, "gzip", f"{error}; {there - offset} bytes to the end of the file have no whole record")
        else:
            self._fault(offset, "gzip", f"{error}; {there - offset} bytes were passed over to the next record")
        return there

    def _cannot_read(self, offset: int, error: OSError) -> None:
        self._fault(offset, "gzip", f"cannot be read: {error.strerror}; the rest was not checked")

    def _fault(self, offset: int, code: str, text: str) -> None:
        self._faults.add(Fault(self._range.name, offset, code, text))

    def _member(self, reader: MemberReader, offset: int) -> None:
        data = reader.whole()
        if data is not None and self._usual(data, offset, reader.position - offset):
            return
        pieces = reader.pieces() if data is None else iter((data,))
        try:
            header, block = self._record(pieces, offset)
        except _SpoiltError as error:
            self._fault(offset, error.code, str(error))
            for _ in pieces:
                pass
            return
        self._records += 1
        if isinstance(block, HttpBlock) and block.lacks_body:
            block.told_of_head = self._answers_head(header.get("warc-record-id"), reader.position)
        for code, text in block.faults():
            self._fault(offset, code, text)
        if isinstance(block, HttpBlock):
            self._note(header, block, offset, reader.position - offset)
        elif self._range.own and header.get("warc-type") == "resource":
            self._note_resource(header, offset, reader.position - offset)

    def _answers_head(self, record_id: str, position: int) -> bool:
        """Whether the next record is the request of this response, and asks for its head alone."""
        file_range = self._range
        path = Path(file_range.path)
        reader = MemberReader(path if path.exists() else path.with_name(file_range.name), file_range.limit, position)
        try:
            head, _, block = (reader.whole() or b"").partition(_HEADER_END)
        except DamageError:
            return False
        finally:
            reader.close()
        return block.startswith(b"HEAD ") and f"WARC-Concurrent-To: {record_id}\r\n".encode() in head

    def _usual(self, data: bytes, offset: int, length: int) -> bool:
        """Judge a member as nearly all are; False for another one, and for one with a fault.

        Then nothing is noted of it yet.
        """
        begin = data.find(_HEADER_END) + len(_HEADER_END)
        header = usual_header(data[:begin])
        if header is None or len(data) != begin + int(header.length) + len(_TRAILER) or not data.endswith(_TRAILER):
            return False
        block = _usual_block(header)
        block.feed(memoryview(data)[begin : -len(_TRAILER)])
        for _ in block.faults():
            return False
        if isinstance(block, HttpBlock) and block.payload_length and not header.payload_digest:
            return False
        self._records += 1
        others = (header.concurrent_to,) if header.concurrent_to else ()
        self._remember(offset, header.record_id, header.date, header.warcinfo)
        self._follow(offset, header.date, others, header.refers_to)
        self._pass(header.record_id, header.date)
        if isinstance(block, HttpBlock):
            digest, name = sha1_hex(header.payload_digest), header.record_id[1:-1]
            about = block.status, digest, block.payload_length, header.response, name, header.ip, header.truncated
            self._found.append(IndexedRecord(offset, length, header.target, header.date, *about, *block.told()))
        return True

    def _record(self, pieces: Iterator[bytes], offset: int) -> tuple[RecordHeader, PlainBlock]:
        first = b""
        while (end := first.find(_HEADER_END)) < 0:
            piece = next(pieces, b"")
            if not piece or len(first) > _MOST_HEADER:
                raise _SpoiltError("header", "no end of the record's header")
            first += piece
        header = parse_header(first[:end])
        for code, text in violations(header, own=self._range.own):
            self._fault(offset, code, text)
        self._remember_fields(header, offset)
        length = header.get("content-length")
        if not is_length(length):
            raise _SpoiltError("length", "no valid Content-Length, so the record's end is unknown")
        block = self._block(header)
        if self._range.own and header.get("warc-type") in _HTTP and not isinstance(block, HttpBlock):
            self._fault(offset, "field", f"content-type has no valid value: {header.get('content-type')[:80]!r}")
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
        is_http = value("content-type", "").lower().startswith("application/http")
        if is_http and kind in _HTTP:
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

    def _remember_fields(self, header: RecordHeader, offset: int) -> None:
        values = header.values
        record_id, date = header.get("warc-record-id"), header.get("warc-date")
        is_info = values.get("warc-type") == "warcinfo"
        if not offset and not is_info:
            self._fault(offset, "warcinfo", "the file does not begin with a warcinfo record")
        self._remember(offset, record_id, date, header.get("warc-warcinfo-id"), is_info=is_info)
        refers = header.get("warc-refers-to")
        if not self._range.own and _says_where(header):
            refers = ""
        self._follow(offset, date, header.all("warc-concurrent-to"), refers)
        self._pass(record_id, date)

    def _remember(self, offset: int, record_id: str, date: str, warcinfo: str, *, is_info: bool = False) -> None:
        """Note the record's name and its file's."""
        if record_id:
            self._ids.named(record_id, offset, warcinfo=is_info)
        if warcinfo and warcinfo != self._warcinfo:
            self._use(WARCINFO_ID, warcinfo, offset, date, early=not self._warcinfo)
            self._warcinfo = warcinfo

    def _follow(self, offset: int, date: str, concurrent_to: Iterable[str], refers_to: str) -> None:
        """Note the records that this one names, unless they are near; those of one capture have one date (§5.4)."""
        early = self._named < NEAR
        for other in concurrent_to:
            there = date_near(other, self._near)
            if there is None:
                self._use(CONCURRENT_TO, other, offset, date, early=early)
            elif there != date:
                self._fault(offset, "field", OTHER_DATE)
        if refers_to and date_near(refers_to, self._near) is None:
            self._use(REFERS_TO, refers_to, offset, date, early=early)

    def _use(self, field: int, name: str, offset: int, date: str, *, early: bool) -> None:
        if early and self._range.start:
            self._early.append(EarlyReference(field, name, offset, date, self._named))
        else:
            self._ids.used(field, name, offset)

    def _pass(self, record_id: str, date: str) -> None:
        self._near.append((record_id, date))
        self._named += 1

    def _note(self, header: RecordHeader, block: HttpBlock, offset: int, length: int) -> None:
        if header.get("warc-profile").endswith("/server-not-modified") and block.status != 304:
            self._fault(offset, "http", f"a {block.status} answer stands as one that says not modified")
        digested = header.get("warc-payload-digest") or header.get("warc-type") == "revisit"
        if self._range.own and block.payload_length and not digested:
            self._fault(offset, "field", "response without warc-payload-digest")
        self._found.append(
            IndexedRecord(
                offset,
                length,
                header.get("warc-target-uri"),
                header.get("warc-date"),
                block.status,
                sha1_hex(header.get("warc-payload-digest")),
                block.payload_length,
                header.get("warc-type"),
                header.get("warc-record-id").strip("<>"),
                header.get("warc-ip-address"),
                header.get("warc-truncated") if header.get("warc-type") != "revisit" else "",
                *block.told(),
            )
        )

    def _note_resource(self, header: RecordHeader, offset: int, length: int) -> None:
        """A browser made it of a page: it has a row, too."""
        self._found.append(
            IndexedRecord(
                offset,
                length,
                header.get("warc-target-uri"),
                header.get("warc-date"),
                0,
                sha1_hex(header.get("warc-payload-digest")),
                int(header.get("content-length")),
                "resource",
                header.get("warc-record-id").strip("<>"),
                "",
                "",
                header.get("content-type"),
                "",
                "",
            )
        )


def _usual_block(header: FastHeader) -> PlainBlock:
    if not header.response:
        return PlainBlock(header.block_digest)
    return HttpBlock(
        header.block_digest,
        header.payload_digest,
        revisit=False,
        truncated=bool(header.truncated),
        on_the_wire="protocol: http/1" in header.protocols.lower(),
    )


class _SpoiltError(Exception):
    """The record cannot be read to its end; stays inside this module."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code


def _says_where(header: RecordHeader) -> bool:
    """The revisit names its original as one that may be in another archive (WARC 1.1 §6.7.2)."""
    return bool(header.get("warc-refers-to-target-uri") and header.get("warc-refers-to-date"))
