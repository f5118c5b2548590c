"""The capture index: row journals become Parquet parts, and parts become `captures.parquet`.

Every file is written aside, synced and renamed before what it replaces is removed. `captures.parquet` names in its
metadata the WARCs whose rows its last join took in, so that parts and journals left by a crash after the rename are
recognised and not taken in twice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from muniment.archive.durable import archive_error, remove, rename, sync_path
from muniment.archive.index.journal import CAPTURES, PART_SUFFIX, entries, journal_path, names_in_parts
from muniment.archive.index.repeated_lines import RepeatedLines, again_path
from muniment.archive.names import OPEN_SUFFIX, packed, parted, unpacked
from muniment.disk import sync_directory
from muniment.errors import ArchiveError
from muniment.model.capture import LISTED_AGAIN, Capture

__all__ = [
    "CAPTURES",
    "ROW_GROUP",
    "SCHEMA",
    "file_batches",
    "groups_with",
    "index_journal",
    "index_rows",
    "indexed_names",
    "is_ours",
    "join",
    "journal_batches",
    "merged_names",
    "open_parquet",
    "part_path",
    "replace_index",
    "rows_of_part",
]

ROW_GROUP = 10_000

_MERGED = b"muniment.merged"
_FILES = b"muniment.files"
"""All WARCs that were ever joined, those without rows, too: their names are taken."""
_VERSION = b"muniment.index"
_FORMAT = b"1"
_TYPES: dict[object, pa.DataType] = {str: pa.string(), int: pa.int64(), bool: pa.bool_(), int | None: pa.int64()}
_NARROW: dict[str, pa.DataType] = {"status": pa.int32(), "attempt": pa.int32(), "depth": pa.int32()}


_ALIKE = (
    "host", "status", "content_type", "warc_file", "error", "record_type", "ip", "attempt", "depth", "found_as",
    "truncated", "method", "page_id", "engine",
)  # fmt: skip
"""Columns whose values come again and again; a dictionary of others, such as URLs, is longer than they are."""


def _schema() -> pa.Schema:
    fields = msgspec.structs.fields(Capture)
    return pa.schema([(field.name, _NARROW.get(field.name) or _TYPES[field.type]) for field in fields])


SCHEMA: pa.Schema = _schema()
"""The columns of the index, in order."""
_ADDED = {"method": "GET", "page_id": "", "engine": "http"}
"""Columns that older files of the index have not, and what their rows have there."""
_OLDER = pa.schema([field for field in SCHEMA if field.name not in _ADDED])


def part_path(parts: Path, name: str) -> Path:
    """The path of the part of the WARC `name`."""
    return parts / (name + PART_SUFFIX)


def index_journal(out: Path, parts: Path, name: str) -> None:
    """Turn the journal of a sealed WARC into its part of the index; may be repeated after a crash."""
    journal, part = journal_path(parts, name), part_path(parts, name)
    _see_sealed(out, name)
    try:
        if not journal.exists():
            return
        if not part.exists():
            _write(part, journal_batches(journal), {})
        remove(journal)
    except OSError as error:
        raise archive_error(error, part) from error


def index_rows(parts: Path, name: str, rows: Sequence[Capture]) -> None:
    """Write a part of the index from rows that were rebuilt from the records of the WARC `name`."""
    part = part_path(parts, name)
    try:
        parts.mkdir(exist_ok=True)
        sync_directory(parts.parent)
        _write(part, (_batch(rows[at : at + ROW_GROUP]) for at in range(0, len(rows), ROW_GROUP)), {})
    except OSError as error:
        raise archive_error(error, part) from error


def rows_of_part(parts: Path, name: str) -> list[Capture]:
    """The rows of a part."""
    return [Capture(**row) for batch in _parquet_batches(part_path(parts, name)) for row in batch.to_pylist()]


def indexed_names(captures: Path) -> dict[str, int]:
    """The WARCs that `captures.parquet` took in, and how many rows; mostly read from its statistics alone."""
    counted: Counter[str] = Counter(dict.fromkeys((name for name in merged_names(captures) if parted(name)), 0))
    with open_parquet(captures) as file:
        try:
            counted.update(dict.fromkeys(unpacked((file.schema_arrow.metadata or {}).get(_FILES, b"{}")), 0))
        except ValueError as error:
            raise ArchiveError(f"{captures.name}: its metadata is damaged") from error
        column = SCHEMA.names.index("warc_file")
        for number in range(file.metadata.num_row_groups):
            group = file.metadata.row_group(number)
            told = group.column(column).statistics
            if told is not None and told.has_min_max and told.min == told.max:
                counted[str(told.min)] += group.num_rows
            else:
                counted.update(_names_of(file, number))
    return {name: count for name, count in counted.items() if name}


def _names_of(file: pq.ParquetFile, number: int) -> list[str]:
    try:
        return [str(name) for name in file.read_row_group(number, columns=["warc_file"]).column(0).to_pylist()]
    except (pa.ArrowException, OSError) as error:
        raise ArchiveError(
            f"{CAPTURES}: damaged; muniment check --repair moves it aside and rebuilds its rows"
        ) from error


def join(out: Path, parts: Path) -> None:
    """Join the parts, and the journals that have none, into `captures.parquet`; remove them and the empty `parts`.

    If the list has lines with URLs of earlier lines (`again`), their rows are written again. May be killed at
    any instant and repeated: no row is lost or doubled. All WARCs must be sealed. A directory without any row gets an
    index without rows.
    """
    captures = out / CAPTURES
    try:
        merged = merged_names(captures) if captures.exists() else frozenset()
        for name in names_in_parts(parts) & merged:
            _remove_rows(parts, name)
        names = sorted(names_in_parts(parts))
        if names or not captures.exists() or again_path(parts).exists():
            files = packed({*names, *(indexed_names(captures) if captures.exists() else ())})
            rows = _with_repeats(parts, _joined(out, parts, names))
            _write(captures, rows, {_MERGED: msgspec.json.encode(names), _FILES: files})
        for name in names:
            _remove_rows(parts, name)
        again_path(parts).unlink(missing_ok=True)
        for aside in parts.glob("*.tmp"):
            aside.unlink()
        if parts.exists() and not any(parts.iterdir()):
            parts.rmdir()
            sync_directory(out)
    except OSError as error:
        raise archive_error(error, captures) from error


def replace_index(out: Path, batches: Iterable[Sequence[Capture]]) -> None:
    """Put a new `captures.parquet` in the place of the present one; no part may be waiting to be joined."""
    captures = out / CAPTURES
    try:
        files = packed(indexed_names(captures)) if captures.exists() else packed(())
        _write(captures, (_batch(rows) for rows in batches if rows), {_FILES: files})
    except OSError as error:
        raise archive_error(error, captures) from error


def merged_names(captures: Path) -> frozenset[str]:
    """The WARC names whose rows the last join took in."""
    with open_parquet(captures) as file:
        metadata = file.schema_arrow.metadata or {}
    try:
        return frozenset(msgspec.json.decode(metadata.get(_MERGED, b"[]"), type=list[str]))
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise ArchiveError(f"{captures.name}: its metadata is damaged") from error


def open_parquet(path: Path) -> pq.ParquetFile:
    """A file of the index; raises `ArchiveError` when it is damaged or has other columns than this version's."""
    try:
        file = pq.ParquetFile(path, page_checksum_verification=True)
    except FileNotFoundError:
        raise
    except (pa.ArrowException, OSError) as error:
        raise ArchiveError(
            f"{path.name}: not a readable Parquet file; muniment check --repair moves it aside and rebuilds its rows"
        ) from error
    if not is_ours(file.schema_arrow):
        file.close()
        raise ArchiveError(
            f"{path.name}: its columns are not those of this version's index; restore the file, or "
            "move it away and rebuild its rows with muniment check --repair"
        )
    return file


def is_ours(schema: pa.Schema) -> bool:
    """Whether a file has the columns of this version's index, or of an older one that is read as well."""
    return bool(schema.equals(SCHEMA) or schema.equals(_OLDER))


def file_batches(
    file: pq.ParquetFile, columns: Sequence[str] | None = None, groups: list[int] | None = None
) -> Iterator[pa.RecordBatch]:
    """The rows of an open file, or of some of its row groups, in batches; what an older one has not is filled in."""
    wanted = SCHEMA.names if columns is None else list(columns)
    here = file.schema_arrow.names
    lacking = [name for name in wanted if name not in here]
    read = [name for name in wanted if name in here]
    for batch in file.iter_batches(batch_size=ROW_GROUP, columns=read, row_groups=groups):
        if not lacking:
            yield batch
            continue
        held = dict(zip(batch.schema.names, batch.columns, strict=True))
        held |= {name: pa.repeat(_ADDED[name], batch.num_rows) for name in lacking}
        schema = pa.schema([SCHEMA.field(name) for name in wanted])
        yield pa.RecordBatch.from_arrays([held[name] for name in wanted], schema=schema)


def groups_with(file: pq.ParquetFile, column: str, values: Sequence[str]) -> list[int]:
    """The row groups of an open file that have one of some values in a column."""
    groups, wanted = range(file.num_row_groups), pa.array(values)
    return [at for at in groups if _has(file.read_row_group(at, columns=[column]).column(column), wanted)]


def _has(column: pa.ChunkedArray[Any], wanted: pa.Array[Any]) -> bool:
    import pyarrow.compute as pc  # noqa: PLC0415  (slow to import, and for whole tables not needed)

    return bool(pc.any(pc.is_in(column, value_set=wanted)).as_py())


def journal_batches(journal: Path) -> Iterator[pa.RecordBatch]:
    """The rows of a journal's valid prefix, in batches."""
    rows: list[Capture] = []
    for entry in entries(journal):
        if entry.capture is not None:
            rows.append(entry.capture)
            if len(rows) == ROW_GROUP:
                yield _batch(rows)
                rows.clear()
    if rows:
        yield _batch(rows)


def _batch(rows: Sequence[Capture]) -> pa.RecordBatch:
    columns = zip(*map(msgspec.structs.astuple, rows), strict=True)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def _joined(out: Path, parts: Path, names: list[str]) -> Iterator[pa.RecordBatch]:
    if (out / CAPTURES).exists():
        yield from _parquet_batches(out / CAPTURES)
    for name in names:
        if part_path(parts, name).exists():
            yield from _parquet_batches(part_path(parts, name))
        else:
            _see_sealed(out, name)
            yield from journal_batches(journal_path(parts, name))


def _with_repeats(parts: Path, rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows, those of lines that are listed again last; unchanged if no such lines are given."""
    if not again_path(parts).exists():
        yield from rows
        return
    with RepeatedLines(parts) as repeats:
        for batch in rows:
            yield _sifted(batch, repeats)
        made = repeats.rows()
        while some := list(islice(made, ROW_GROUP)):
            yield _batch(some)


def _sifted(batch: pa.RecordBatch, repeats: RepeatedLines) -> pa.RecordBatch:
    """A batch without rows of such lines, after what they are made of was put aside."""
    own = [at for at, found_as in enumerate(batch.column("found_as").to_pylist()) if found_as != LISTED_AGAIN]
    batch = batch if len(own) == batch.num_rows else batch.take(pa.array(own, pa.int64()))
    concerned = [at for at, url in enumerate(batch.column("url").to_pylist()) if repeats.concerns(str(url))]
    if concerned:
        for row in batch.take(pa.array(concerned, pa.int64())).to_pylist():
            repeats.put_aside(Capture(**row))
    return batch


def _parquet_batches(path: Path) -> Iterator[pa.RecordBatch]:
    with open_parquet(path) as file:
        yield from file_batches(file)


def _see_sealed(out: Path, name: str) -> None:
    if (out / (name + OPEN_SUFFIX)).exists():
        raise ArchiveError(f"{name}: still open; its rows are not complete")


def _write(target: Path, batches: Iterable[pa.RecordBatch], metadata: dict[bytes, bytes]) -> None:
    aside = target.with_name(target.name + ".tmp")
    schema = SCHEMA.with_metadata({_VERSION: _FORMAT, **metadata})
    with pq.ParquetWriter(
        aside,
        schema,
        compression="zstd",
        compression_level=1,
        use_dictionary=_ALIKE,  # type: ignore[arg-type]  # the stubs know only yes and no
        write_page_checksum=True,
    ) as writer:
        for table in _row_groups(batches):
            writer.write_table(table.replace_schema_metadata(schema.metadata), row_group_size=ROW_GROUP)
    sync_path(aside)
    rename(aside, target)


def _row_groups(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    # Small parts are put together: a row group for each would make the joined index slow to query for ever.
    held: list[pa.RecordBatch] = []
    count = 0
    for batch in batches:
        held.append(batch)
        count += batch.num_rows
        if count >= ROW_GROUP:
            table = pa.Table.from_batches(held, SCHEMA)
            whole = count - count % ROW_GROUP
            yield table.slice(0, whole)
            held = table.slice(whole).to_batches()
            count -= whole
    if count:
        yield pa.Table.from_batches(held, SCHEMA)


def _remove_rows(parts: Path, name: str) -> None:
    # Should both exist, the journal goes first: a journal without its part would be taken for new rows.
    journal_path(parts, name).unlink(missing_ok=True)
    sync_directory(parts)
    remove(part_path(parts, name))
