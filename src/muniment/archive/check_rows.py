"""The index's side of the check: a stretch's rows in order of their offsets, compared record by record."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from muniment.archive.check_file import Fault, Found
from muniment.archive.index import CAPTURES, SCHEMA
from muniment.archive.read import Source, batches, sources
from muniment.errors import ArchiveError

__all__ = ["Index", "differences"]

_COLUMNS = (
    "warc_offset", "warc_length", "url", "started_at", "status", "digest", "body_length", "record_type", "record_id",
    "unchanged",
)  # fmt: skip
_NAMES = (
    "warc_length",
    "url",
    "started_at",
    "status",
    "digest",
    "body_length",
    "record_type",
    "record_id",
    "unchanged",
)
_SCHEMA = pa.schema([SCHEMA.field(name) for name in ("warc_file", *_COLUMNS)])
_DATE = "%Y-%m-%dT%H:%M:%SZ"
"""With the microseconds: Arrow adds them to the seconds."""

Row = tuple[Any, ...]


class Index:
    """The index of a directory as it is at this moment; without any file of it, nothing is compared."""

    def __init__(self, out: Path) -> None:
        self.exists = False
        self.files: set[str] = set()
        self.rows = 0
        self.faults: list[Fault] = []
        self._joined: ds.Dataset | None = None
        self._parts: dict[str, Source] = {}
        try:
            self._open(sources(out))
        except ArchiveError as error:
            # without it, every record would be one without a row
            self.faults.append(Fault(CAPTURES, -1, "index", str(error)))
            self.exists = False

    def _open(self, found: Sequence[Source]) -> None:
        self.exists = bool(found)
        self._parts = {source.name: source for source in found if source.name}
        for source in found:
            if not source.name:
                self._joined = ds.dataset(source.path, format="parquet")
            for batch in batches(source, ("warc_file", "error", "url")):
                self._survey(batch)

    def _survey(self, batch: pa.RecordBatch) -> None:
        self.rows += batch.num_rows
        held, errors, urls = ([str(value) for value in column.to_pylist()] for column in batch.columns)
        self.files.update(held)
        for name, error, url in zip(held, errors, urls, strict=True):
            if not name and not error:
                self.faults.append(Fault("", -1, "index", f"a row has neither a record nor an error: {url[:200]}"))

    def compare(self, name: str, start: int, end: int, found: Sequence[Found]) -> Iterator[Fault]:
        """What differs between the records of a stretch of the file `name` and its rows."""
        rows = self._rows(name, start, end)
        row = next(rows, None)
        for record in found:
            while row is not None and row[0] < record.offset:
                yield _lonely(name, row)
                row = next(rows, None)
            if row is None or row[0] != record.offset:
                text = f"the {record.record_type} record has no row: {record.url[:200]}"
                yield Fault(name, record.offset, "row", text)
                continue
            for text in differences(row, record):
                yield Fault(name, record.offset, "row", text)
            while (row := next(rows, None)) is not None and row[0] == record.offset:
                text = f"the record has more than one row: {record.url[:200]}"
                yield Fault(name, record.offset, "row", text)
        while row is not None:
            yield _lonely(name, row)
            row = next(rows, None)

    def _rows(self, name: str, start: int, end: int) -> Iterator[Row]:
        offset = ds.field("warc_offset")
        here = (ds.field("warc_file") == name) & (offset >= start) & (offset < end)
        tables = []
        if self._joined is not None:
            # row groups whose statistics exclude the stretch are not read
            tables.append(self._joined.to_table(columns=list(_COLUMNS), filter=here))
        if name in self._parts:
            whole = pa.Table.from_batches(batches(self._parts[name], _SCHEMA.names), _SCHEMA)
            tables.append(whole.filter(here).select(list(_COLUMNS)))
        for table in tables:
            yield from _in_order(table.replace_schema_metadata(None))


def _in_order(table: pa.Table) -> Iterator[Row]:
    ordered = table.sort_by("warc_offset")
    times: pa.ChunkedArray[Any] = ordered["started_at"].cast(pa.timestamp("us"))
    dates = pc.strftime(times, format=_DATE)
    position = _COLUMNS.index("started_at")
    for batch in ordered.set_column(position, "started_at", dates).to_batches(max_chunksize=4096):
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


def _lonely(name: str, row: Row) -> Fault:
    return Fault(name, row[0], "row", f"the row points at no response or revisit record: {row[2][:200]}")


def differences(row: Row, found: Found) -> list[str]:
    """What a row says and its record does not, as texts."""
    _, _, _, _, status, _, body_length, _, _, unchanged = row
    is_revisit = found.record_type == "revisit"
    held = (
        found.length,
        found.url,
        found.date,
        found.status,
        "" if status == 304 or not body_length else found.digest,
        body_length if is_revisit or status == 304 else found.payload_length,
        found.record_type,
        found.record_id,
        # a 304 is a revisit when it was asked for, and a response otherwise
        is_revisit if status == 304 else unchanged,
    )
    if row[1:] == held:
        return []
    pairs = zip(_NAMES, row[1:], held, strict=True)
    return [
        f"{name} is {said!r} in the row and {there!r} in the record" for name, said, there in pairs if said != there
    ]
