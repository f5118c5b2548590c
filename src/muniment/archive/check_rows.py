"""The index's side of the check: one file's rows in order of their offsets, compared record by record."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from msgspec import Struct

from muniment.archive.digests import sha1_label
from muniment.archive.index import SCHEMA
from muniment.archive.read import Source, batches, sources
from muniment.clock import iso_us

__all__ = ["FileRows", "Found", "rows_of_file"]

_COLUMNS = (
    "warc_file", "warc_offset", "warc_length", "url", "started_at", "status", "digest", "body_length",
    "record_type", "record_id", "unchanged",
)  # fmt: skip


class Found(Struct, frozen=True, kw_only=True):
    """What the file holds for one capture."""

    offset: int
    length: int
    url: str
    date: str
    status: int
    digest: str
    """The payload's digest as the record spells it; empty when it states none."""
    payload_length: int
    """As read; of no meaning for a revisit."""
    record_type: str
    record_id: str


class _Row(Struct, frozen=True):
    warc_file: str
    offset: int
    length: int
    url: str
    started_at: int
    status: int
    digest: str
    body_length: int
    record_type: str
    record_id: str
    unchanged: bool


class FileRows:
    """The rows of one file, used up in step with its records."""

    def __init__(self, table: pa.Table | None) -> None:
        self._rows = _sorted_rows(table) if table is not None else None
        self._next: _Row | None = next(self._rows, None) if self._rows is not None else None

    def compare(self, found: Found) -> Iterator[tuple[int, str]]:
        """What differs between a record and its rows, as (offset, text); without an index, nothing."""
        if self._rows is None:
            return
        yield from self._before(found.offset)
        row = self._take(found.offset)
        if row is None:
            yield found.offset, f"the {found.record_type} record has no row: {found.url[:200]}"
            return
        yield from _differences(row, found)
        while self._take(found.offset) is not None:
            yield found.offset, f"the record has more than one row: {found.url[:200]}"

    def rest(self, limit: int) -> Iterator[tuple[int, str]]:
        """Rows left over when the file has been read up to `limit`."""
        if self._rows is not None:
            yield from self._before(limit)

    def _before(self, offset: int) -> Iterator[tuple[int, str]]:
        while self._next is not None and self._next.offset < offset:
            row = self._next
            self._advance()
            yield row.offset, f"the row points at no response or revisit record: {row.url[:200]}"

    def _take(self, offset: int) -> _Row | None:
        row = self._next
        if row is None or row.offset != offset:
            return None
        self._advance()
        return row

    def _advance(self) -> None:
        if self._rows is not None:
            self._next = next(self._rows, None)


def rows_of_file(out: Path, name: str) -> FileRows:
    """The rows that the index of a directory has for one of its files; none at all when there is no index."""
    found = sources(out)
    tables = [_filtered(source, name) for source in found if source.name in {"", name}]
    if not found:
        return FileRows(None)
    return FileRows(pa.concat_tables(tables) if tables else _none())


def _filtered(source: Source, name: str) -> pa.Table:
    if source.name:
        return pa.Table.from_batches(batches(source, _COLUMNS), _none().schema)
    # Row groups whose statistics exclude the file are not read.
    table: pa.Table = pq.read_table(source.path, columns=list(_COLUMNS), filters=[("warc_file", "=", name)])
    return table.replace_schema_metadata(None)


def _none() -> pa.Table:
    return pa.schema([SCHEMA.field(name) for name in _COLUMNS]).empty_table()


def _sorted_rows(table: pa.Table) -> Iterator[_Row]:
    ordered = table.filter(table["warc_offset"].is_valid()).sort_by("warc_offset")
    for batch in ordered.to_batches(max_chunksize=4096):
        for values in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            yield _Row(*values)


def _differences(row: _Row, found: Found) -> Iterator[tuple[int, str]]:
    digest = "" if row.status == 304 or not row.body_length else found.digest
    length = row.body_length if found.record_type == "revisit" or row.status == 304 else found.payload_length
    # a 304 is a revisit when it was asked for, and a response otherwise
    unchanged = found.record_type == "revisit" if row.status == 304 else row.unchanged
    pairs = (
        ("warc_length", row.length, found.length),
        ("url", row.url, found.url),
        ("started_at", iso_us(row.started_at), found.date),
        ("status", row.status, found.status),
        ("digest", _label(row.digest), digest),
        ("body_length", row.body_length, length),
        ("unchanged", row.unchanged, unchanged),
        ("record_type", row.record_type, found.record_type),
        ("record_id", row.record_id.removeprefix("urn:uuid:"), found.record_id.removeprefix("urn:uuid:")),
    )
    for name, said, held in pairs:
        if said != held:
            yield row.offset, f"{name} is {said!r} in the row and {held!r} in the record"


def _label(digest: str) -> str:
    try:
        return sha1_label(bytes.fromhex(digest)) if digest else ""
    except ValueError:
        return digest
