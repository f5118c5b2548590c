"""Rows from records: rebuilt values of rows that are lost or wrong."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from msgspec import structs

from muniment.archive.check.block_validation import HttpBlock, PlainBlock
from muniment.archive.check.range_checker import FileRange, RangeChecker
from muniment.archive.index.rows import host_in
from muniment.archive.warc.digest_labels import sha1_hex
from muniment.archive.warc.grammar import RecordHeader, is_length
from muniment.extract.headers import redirect_reference
from muniment.http.redirects import REDIRECTS
from muniment.model.capture import Capture
from muniment.model.url import resolve

__all__ = ["merged", "rows_of_records"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ERRORS = {"length": "too-large", "time": "timeout-body", "disconnect": "cut", "unspecified": "cut"}
_NUMBER = re.compile(rb"^(hopsFromSeed|fetchTimeMs): (\d{1,9})\r?$", re.MULTILINE)
_METHOD = re.compile(rb"([A-Z]{1,20}) ")
_MOST_METADATA = 4096


def rows_of_records(path: Path, name: str) -> list[Capture]:
    """A row for each response, revisit and resource record of a sealed WARC, in their order.

    No record has `meta_json`, `seed_url`, `attempt`, `found_as` and `ttfb_ms`; only a metadata record has `depth`
    and `duration_ms`.
    """
    size = path.stat().st_size
    maker = _RowMaker(FileRange(0, name, str(path), 0, size, size, own=True))
    maker.run()
    return maker.rows


def merged(row: Capture, old: Capture) -> Capture:
    """A rebuilt row with what only the old row of the same record knows."""
    return structs.replace(
        row,
        meta_json=old.meta_json,
        seed_url=old.seed_url,
        attempt=old.attempt,
        depth=old.depth,
        found_as=old.found_as,
        method=old.method,
        page_id=old.page_id,
        engine=old.engine,
        duration_ms=old.duration_ms,
        ttfb_ms=old.ttfb_ms,
        fetched_at=row.started_at // 1000 + old.duration_ms,
        body_length=old.body_length if row.record_type == "revisit" else row.body_length,
        unchanged=old.unchanged if row.status != 304 else row.unchanged,
        error=old.error if row.error and old.error else row.error,
    )


class _RowMaker(RangeChecker):
    """Reads a file as the check does, and keeps rows."""

    def __init__(self, file_range: FileRange) -> None:
        super().__init__(file_range)
        self.rows: list[Capture] = []
        self._name = file_range.name

    def _usual(self, data: bytes, offset: int, length: int) -> bool:
        """Every header is needed in full."""
        return False

    def _record(self, *arguments: Any) -> tuple[RecordHeader, PlainBlock]:
        header, block = super()._record(*arguments)
        if isinstance(block, _Beside) and self.rows and self.rows[-1].record_id == block.about:
            self.rows[-1] = block.applied(self.rows[-1])
        return header, block

    def _block(self, header: RecordHeader) -> PlainBlock:
        if header.get("warc-type") == "metadata":
            return _Metadata(header.get("warc-block-digest"), header.get("warc-refers-to").strip("<>"))
        if header.get("warc-type") == "request":
            return _Request(header.get("warc-block-digest"), header.get("warc-concurrent-to").strip("<>"))
        return super()._block(header)

    def _note(self, header: RecordHeader, block: HttpBlock, offset: int, length: int) -> None:
        if block.head is not None:
            self.rows.append(_row(header, block, (self._name, offset, length)))

    def _note_resource(self, header: RecordHeader, offset: int, length: int) -> None:
        self.rows.append(_resource_row(header, (self._name, offset, length)))


class _Beside(PlainBlock):
    """The beginning of the block of a record about the one before it."""

    def __init__(self, block_digest: str, about: str) -> None:
        super().__init__(block_digest)
        self.about = about
        self._kept = b""

    def feed(self, data: memoryview) -> None:
        """Take in more bytes of the block."""
        super().feed(data)
        self._kept += bytes(data[: max(0, _MOST_METADATA - len(self._kept))])

    def applied(self, row: Capture) -> Capture:
        """The row with what the block says."""
        return row


class _Request(_Beside):
    """A request, which says its method."""

    def applied(self, row: Capture) -> Capture:
        """The row with its method."""
        found = _METHOD.match(self._kept)
        return structs.replace(row, method=found[1].decode()) if found else row


class _Metadata(_Beside):
    """A metadata record, which says how the page was found."""

    def applied(self, row: Capture) -> Capture:
        """The row with what the block says."""
        said = {name: int(value) for name, value in _NUMBER.findall(self._kept)}
        took = said.get(b"fetchTimeMs", 0)
        depth = said.get(b"hopsFromSeed", row.depth)
        return structs.replace(row, depth=depth, duration_ms=took, fetched_at=row.started_at // 1000 + took)


def _row(header: RecordHeader, block: HttpBlock, place: tuple[str, int, int]) -> Capture:
    url, kind, status = header.get("warc-target-uri"), header.get("warc-type"), block.status
    revisit = kind == "revisit"
    content_type, etag, last_modified = block.told()
    cut = "" if revisit else header.get("warc-truncated")
    length = 0 if status == 304 else _stated_length(block.field("content-length")) if revisit else block.payload_length
    started_at = _micros(header.get("warc-date"))
    return Capture(
        url=url,
        host=host_in(url),
        status=status,
        fetched_at=started_at // 1000,
        content_type=content_type,
        body_length=length,
        digest=sha1_hex(header.get("warc-payload-digest")) if length else "",
        unchanged=revisit and status == 304,
        warc_file=place[0],
        warc_offset=place[1],
        warc_length=place[2],
        error=f"{_ERRORS.get(cut, 'cut')}: by its record, the body is not whole" if cut else "",
        meta_json="",
        record_id=header.get("warc-record-id").strip("<>"),
        record_type=kind,
        ip=header.get("warc-ip-address"),
        started_at=started_at,
        duration_ms=0,
        ttfb_ms=0,
        redirect_to=_target(url, block.field("location")) if status in REDIRECTS else "",
        seed_url="",
        attempt=1,
        depth=-1,
        found_as="",
        truncated=cut,
        etag=etag,
        last_modified=last_modified,
        page_id=header.get("warc-page-id"),
        engine=_engine_of(header),
    )


def _resource_row(header: RecordHeader, place: tuple[str, int, int]) -> Capture:
    url, length, started_at = header.get("warc-target-uri"), int(header.get("content-length")), header.get("warc-date")
    return Capture(
        url=url,
        host=host_in(url),
        status=0,
        fetched_at=_micros(started_at) // 1000,
        content_type=header.get("content-type"),
        body_length=length,
        digest=sha1_hex(header.get("warc-payload-digest")),
        unchanged=False,
        warc_file=place[0],
        warc_offset=place[1],
        warc_length=place[2],
        error="",
        meta_json="",
        record_id=header.get("warc-record-id").strip("<>"),
        record_type="resource",
        ip="",
        started_at=_micros(started_at),
        duration_ms=0,
        ttfb_ms=0,
        redirect_to="",
        seed_url="",
        attempt=1,
        depth=-1,
        found_as="requisite",
        truncated="",
        etag="",
        last_modified="",
        page_id=header.get("warc-page-id"),
        engine="browser",
    )


def _engine_of(header: RecordHeader) -> str:
    """Who asked, by what only records of a browser's or a hook's page say."""
    if not header.get("warc-page-id"):
        return "http"
    return "browser" if header.get("warc-resource-type") else "hook"


def _target(url: str, location: str) -> str:
    reference = redirect_reference(location)
    return (resolve(url, reference) or "") if reference else ""


def _stated_length(stated: str) -> int:
    """The payload's length of a revisit, as its headers state it; 0 when they do not, as for a chunked body."""
    return int(stated) if is_length(stated) else 0


def _micros(date: str) -> int:
    try:
        at = datetime.fromisoformat(date[:26].rstrip("Z") + "+00:00")
    except ValueError:
        return 0
    since = at - _EPOCH
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
