"""The index's side of the check: a range's rows in order of their offsets, compared record by record."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from operator import itemgetter
from pathlib import Path
from typing import Any

import pyarrow as pa

from muniment.archive.check.fault_list import Fault
from muniment.archive.check.range_checker import IndexedRecord
from muniment.archive.index.parquet import CAPTURES, SCHEMA, open_parquet
from muniment.archive.index.read import RowSource, batches, sources
from muniment.archive.index.rows import host_in
from muniment.clock import iso_us
from muniment.errors import ArchiveError
from muniment.model.capture import LISTED_AGAIN

__all__ = ["StretchRows", "differences"]

_COLUMNS = (
    "warc_offset", "warc_length", "url", "host", "started_at", "status", "digest", "body_length", "record_type",
    "record_id", "unchanged", "ip", "truncated", "content_type", "etag", "last_modified", "error",
)  # fmt: skip
_NAMES = _COLUMNS[1:]
_SURVEYED = ["warc_file", "error", "url", "found_as"]
_STARTED_AT = _COLUMNS.index("started_at")
_JUDGED_BY = tuple(_COLUMNS.index(name) for name in ("status", "body_length", "unchanged", "error"))
_SCHEMA = pa.schema([SCHEMA.field(name) for name in ("warc_file", "found_as", *_COLUMNS)])

Row = tuple[Any, ...]


class StretchRows:
    """The index of a directory as it is at this moment; without any file of it, nothing is compared."""

    def __init__(self, out: Path) -> None:
        self.exists = False
        self.files: set[str] = set()
        self.rows = 0
        self.faults: list[Fault] = []
        self._joined: _Joined | None = None
        self._parts: dict[str, RowSource] = {}
        try:
            self._open(sources(out))
        except ArchiveError as error:
            # without it, every record would be one without a row
            self.faults.append(Fault(CAPTURES, -1, "index", str(error)))
            self.exists = False

    def _open(self, found: Sequence[RowSource]) -> None:
        self.exists = bool(found)
        self._parts = {source.name: source for source in found if source.name}
        for source in found:
            # all columns, so that each page of the file is held to its checksum
            if source.name:
                for batch in batches(source):
                    self._survey(batch.select(_SURVEYED))
                continue
            self._joined = _Joined(source.path)
            for table in self._joined.whole():
                self._survey(table.select(_SURVEYED))

    def _survey(self, batch: pa.RecordBatch | pa.Table) -> None:
        held, errors, urls, found = ([str(value) for value in column.to_pylist()] for column in batch.columns)
        self.rows += len(found) - found.count(LISTED_AGAIN)
        self.files.update(held)
        for name, error, url in zip(held, errors, urls, strict=True):
            if not name and not error:
                self.faults.append(Fault("", -1, "index", f"a row has neither a record nor an error: {url[:200]}"))

    def compare(self, name: str, start: int, end: int, found: Sequence[IndexedRecord]) -> Iterator[Fault]:
        """Return the differences between the records of a range of the file `name` and its rows."""
        rows = iter(self._rows(name, start, end))
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

    def _rows(self, name: str, start: int, end: int) -> list[Row]:
        """The rows of a range in order of their offsets."""
        tables: list[Iterator[pa.Table | pa.RecordBatch]] = []
        if self._joined is not None:
            tables.append(self._joined.groups(name, start, end))
        if name in self._parts:
            tables.append(iter(batches(self._parts[name], _SCHEMA.names)))
        rows = [row for table in chain.from_iterable(tables) for row in _chosen(table, name, start, end)]
        rows.sort(key=itemgetter(0))
        return rows


_Bounds = tuple[Any, Any] | None


class _Joined:
    """`captures.parquet`, read by row groups: Arrow's datasets take long to load (decision 0091)."""

    def __init__(self, path: Path) -> None:
        self._file = open_parquet(path)
        self._bounds: list[tuple[_Bounds, _Bounds]] = []
        """The least and the greatest file name and offset of each row group, once it was read.

        The statistics of the file say the same, but a damaged footer makes Arrow abort when it is asked for them.
        """
        self._held: tuple[int, pa.Table] | None = None

    def whole(self) -> Iterator[pa.Table]:
        """All row groups with all columns, read once before `groups`; raises ArchiveError when one cannot be read."""
        for number in range(self._file.num_row_groups):
            try:
                table = self._file.read_row_group(number)
            except (pa.ArrowException, OSError) as error:
                raise ArchiveError(f"{CAPTURES}: damaged: not all rows can be read") from error
            self._bounds.append((_bounds(table.column("warc_file")), _bounds(table.column("warc_offset"))))
            yield table

    def groups(self, name: str, start: int, end: int) -> Iterator[pa.Table]:
        """The row groups that may hold rows of a range, one by one."""
        for number, (names, offsets) in enumerate(self._bounds):
            if _may_hold(names, name, name) and _may_hold(offsets, start, end - 1):
                yield self._group(number)

    def _group(self, number: int) -> pa.Table:
        """A row group; the last one is kept, for the next range mostly needs it, too."""
        if self._held is None or self._held[0] != number:
            self._held = None
            self._held = number, self._file.read_row_group(number, columns=_SCHEMA.names).select(_SCHEMA.names)
        return self._held[1]


def _bounds(column: pa.ChunkedArray[Any]) -> _Bounds:
    values = [value for value in column.to_pylist() if value is not None]
    return (min(values), max(values)) if values else None


def _may_hold(bounds: _Bounds, least: Any, most: Any) -> bool:
    return bounds is None or bool(bounds[0] <= most and bounds[1] >= least)


def _chosen(table: pa.Table | pa.RecordBatch, name: str, start: int, end: int) -> Iterator[Row]:
    """The rows of a range, of which most tables hold few: the rows before and after them stay in Arrow.

    Nothing is asked of Arrow that needs a scalar, for that loads pandas where it is installed.
    """
    offsets = table.column(_SCHEMA.get_field_index("warc_offset")).to_pylist()
    places = [place for place, offset in enumerate(offsets) if offset is not None and start <= offset < end]
    if not places:
        return
    near = table.slice(places[0], places[-1] - places[0] + 1)
    held, found, *columns = (column.to_pylist() for column in near.columns)
    times: list[Any] = columns[_STARTED_AT]
    # another program may have left it out
    columns[_STARTED_AT] = [time if time is None else iso_us(time) for time in times]
    for file, found_as, row in zip(held, found, zip(*columns, strict=True), strict=True):
        if file == name and found_as != LISTED_AGAIN and row[0] is not None and start <= row[0] < end:
            yield row


def _lonely(name: str, row: Row) -> Fault:
    return Fault(name, row[0], "row", f"the row points at no response or revisit record: {row[2][:200]}")


def differences(row: Row, found: IndexedRecord) -> list[str]:
    """Return the differences between a row and its record, as texts."""
    status, body_length, unchanged, error = (row[place] for place in _JUDGED_BY)
    unchanged = bool(unchanged)
    is_revisit = found.record_type == "revisit"
    held = (
        found.length,
        found.url,
        host_in(found.url),
        found.date,
        found.status,
        "" if status == 304 or not body_length else found.digest,
        body_length if is_revisit or status == 304 else found.payload_length,
        found.record_type,
        found.record_id,
        # a 304 is a revisit when it was asked for, and a response otherwise
        is_revisit if status == 304 else unchanged,
        found.ip,
        found.truncated,
        found.content_type,
        found.etag,
        found.last_modified,
        # the record tells that it is not whole, and not why
        (error or "cut") if found.truncated else "",
    )
    if row[1:] == held:
        return []
    pairs = zip(_NAMES, row[1:], held, strict=True)
    return [
        f"{name} is {said!r} in the row and {there!r} in the record" for name, said, there in pairs if said != there
    ]
