"""`hooks.parquet` and `hook-files.parquet`: written anew from the tracker when a run ends."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from msgspec import structs

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


def _write(path: Path, schema: pa.Schema, batches: Iterable[Sequence[Any]]) -> None:
    aside = path.with_name(f"{path.name}.tmp")
    try:
        with pq.ParquetWriter(aside, schema, compression="zstd") as writer:
            for batch in batches:
                writer.write_table(pa.Table.from_pylist([structs.asdict(one) for one in batch], schema=schema))
        sync_path(aside)
        rename(aside, path)
    except OSError as error:
        raise archive_error(error, path) from error
