"""`hooks.parquet` and `hook-files.parquet`: written anew from the tracker when a run ends."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from msgspec import Struct, structs
from pyarrow import json

from muniment.archive.durable import archive_error, rename, sync_path
from muniment.model.hooks.runs import HookArtifact, HookResult

__all__ = ["FILE_SCHEMA", "HOOKS", "HOOK_FILES", "RESULT_SCHEMA", "write_tables"]

HOOKS, HOOK_FILES = "hooks.parquet", "hook-files.parquet"
_INT32 = frozenset({"order", "attempt", "exit_code", "files", "records", "bad_lines", "links"})
_INT64 = frozenset({"started_at", "duration_ms", "bytes"})
_BOOL = frozenset({"background", "timed_out"})


def _schema(names: Sequence[str]) -> pa.Schema:
    kinds: dict[str, pa.DataType] = dict.fromkeys(_INT32, pa.int32())
    kinds |= {**dict.fromkeys(_INT64, pa.int64()), **dict.fromkeys(_BOOL, pa.bool_())}
    return pa.schema([pa.field(name, kinds.get(name, pa.string()), nullable=name == "exit_code") for name in names])


RESULT_SCHEMA = _schema(HookResult.__struct_fields__)
FILE_SCHEMA = _schema(HookArtifact.__struct_fields__)


def write_tables(out: Path, results: Iterable[list[HookResult]], files: Iterable[list[HookArtifact]]) -> None:
    """Write both tables aside, sync and rename them. Raises ArchiveError."""
    _write(out / HOOKS, RESULT_SCHEMA, results)
    _write(out / HOOK_FILES, FILE_SCHEMA, files)


def _write(path: Path, schema: pa.Schema, batches: Iterable[Sequence[Struct]]) -> None:
    aside = path.with_name(f"{path.name}.tmp")
    try:
        with pq.ParquetWriter(aside, schema, compression="zstd") as writer:
            for batch in batches:
                writer.write_table(_table(batch, schema))
        sync_path(aside)
        rename(aside, path)
    except OSError as error:
        raise archive_error(error, path) from error


def _table(rows: Sequence[Struct], schema: pa.Schema) -> pa.Table:
    """Rows as a table, by way of JSON: Arrow loads pandas, where it is installed, to take Python's own values."""
    lines = msgspec.json.Encoder().encode_lines([structs.asdict(one) for one in rows])
    whole = json.ReadOptions(use_threads=False, block_size=len(lines) + 1)
    parsed = json.read_json(io.BytesIO(lines), whole, json.ParseOptions(explicit_schema=schema))
    return parsed.cast(schema)
