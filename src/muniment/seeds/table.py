"""Seed lists in Parquet files: any with a column `url`, an earlier capture index among them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from muniment.errors import UsageError
from muniment.extract.seed_lines import Parsed, table_row
from muniment.model.seed import SeedPlace

__all__ = ["names_accounts", "rows"]

_COLUMNS = (
    "url", "digest", "etag", "last_modified", "meta_json", "status", "error", "fetched_at", "started_at", "record_type",
)  # fmt: skip
_READ_AT_ONCE = 1_000
_ROWS = 10_000
_ACCOUNT = r"https?:[\\/]*[^\\/?#]*@"


def rows(path: Path, start: SeedPlace) -> Iterator[tuple[SeedPlace, Parsed]]:
    """The rows after a place; raises UsageError when the file is no Parquet or has no text column `url`."""
    # Arrow's own allocator keeps what it was given; a list is read beside a fetch that needs the memory
    pa.set_memory_pool(pa.system_memory_pool())
    try:
        with pq.ParquetFile(path, pre_buffer=False, buffer_size=1 << 20) as file:
            columns = _columns(path, file.schema_arrow)
            yield from _rows(file, columns, start.number)
    except (pa.ArrowException, OSError) as error:
        text = str(error).partition("\n")[0]
        raise UsageError(f"the list {path} cannot be read as Parquet: {text}") from None


def names_accounts(path: Path) -> bool:
    """Whether a URL of the table may have an account in it; raises UsageError as `rows` does."""
    try:
        with pq.ParquetFile(path, pre_buffer=False, buffer_size=1 << 20) as file:
            _columns(path, file.schema_arrow)
            urls = (batch.column(0).cast(pa.large_string()) for batch in file.iter_batches(_ROWS, columns=["url"]))
            return any(pc.any(pc.match_substring_regex(some, _ACCOUNT, ignore_case=True)).as_py() for some in urls)
    except (pa.ArrowException, OSError) as error:
        raise UsageError(f"the list {path} cannot be read as Parquet: {str(error).partition(chr(10))[0]}") from None


def _columns(path: Path, schema: pa.Schema) -> list[str]:
    at = schema.get_field_index("url")
    if at < 0:
        raise UsageError(f"the list {path} has no column url; it has {', '.join(schema.names[:20])}")
    kind = schema.field(at).type
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        raise UsageError(f"the column url of {path} has the type {kind}, not text")
    return [name for name in _COLUMNS if name in schema.names]


def _rows(file: pq.ParquetFile, columns: list[str], done: int) -> Iterator[tuple[SeedPlace, Parsed]]:
    number = 0
    for group in range(file.num_row_groups):
        size = file.metadata.row_group(group).num_rows
        if number + size <= done:
            number += size
            continue
        for batch in file.iter_batches(_READ_AT_ONCE, row_groups=[group], columns=columns):
            for row in batch.to_pylist():
                number += 1
                if number > done:
                    yield SeedPlace(number, number), table_row(number, row)
