"""Repair of a directory that no process writes to: unfinished ends are cut off and kept, rows are rebuilt.

Nothing is destroyed: what no journal vouches for goes into a file beside before it is cut off, and an index that is
replaced is kept. Each step may be the last before a kill, and be repeated.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from msgspec import Struct, structs

from muniment.archive.check.directory import CheckReport, TornFile
from muniment.archive.check.range_checker import FileRange, RangeChecker
from muniment.archive.check.rebuild import merged, rows_of_records
from muniment.archive.durable import rename, seal, sync_path
from muniment.archive.index.journal import PART_SUFFIX, PARTS, SUFFIX, journal_path, read_header
from muniment.archive.index.parquet import CAPTURES, ROW_GROUP, SCHEMA, is_ours, join, merged_names, replace_index
from muniment.archive.index.read import RowSource, batches
from muniment.archive.names import OPEN_SUFFIX
from muniment.archive.recovery.cut import repair_file
from muniment.disk import sync, sync_directory
from muniment.errors import ArchiveError
from muniment.model.capture import LISTED_AGAIN, Capture

__all__ = ["RepairStep", "join_index", "must_join", "repair_files", "repair_rows", "set_aside_unreadable"]

_COPIED = 1 << 20
_SAY_NOTHING_OF_RECORDS = frozenset({"row", "index", "id", "link", "tracker"})
"""Faults in spite of which every record of their file can be read as it was written."""
_EMPTY = {field.name: "" if field.type == pa.string() else 0 for field in SCHEMA} | {"unchanged": False}
_MAY_BE_NULL = frozenset({"warc_offset", "warc_length"})


class RepairStep(Struct, frozen=True):
    """One thing that was done."""

    file: str
    text: str


def set_aside_unreadable(out: Path) -> list[RepairStep]:
    """Rename files of the index that cannot be read, so that their rows can be rebuilt."""
    done = []
    for path in (out / CAPTURES, *sorted((out / PARTS).glob("*" + PART_SUFFIX))):
        if path.exists() and not _readable(path):
            aside = _move(path, out / (path.name + ".damaged"))
            done.append(RepairStep(path.name, f"is not a readable index; kept as {aside.name}"))
    return done


def _readable(path: Path) -> bool:
    try:
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            for number in range(file.num_row_groups):
                file.read_row_group(number)
            ours = is_ours(file.schema_arrow)
        if ours:
            merged_names(path)
    except (pa.ArrowException, OSError, ArchiveError):
        return False
    return True


def _move(path: Path, wanted: Path) -> Path:
    """Give a file another name, or that with a number where it is taken; the name it got."""
    aside = _free_name(wanted)
    path.replace(aside)
    sync_directory(path.parent)
    sync_directory(aside.parent)
    return aside


def repair_files(out: Path, torn: Collection[TornFile]) -> list[RepairStep]:
    """Seal open files, and cut the unfinished ends off sealed ones."""
    done = [_repair_open(out, path) for path in sorted(out.glob("*.warc.gz" + OPEN_SUFFIX))]
    done += [_cut(out / one.file, one.offset, one.file) for one in torn if one.offset]
    return done


def _repair_open(out: Path, warc: Path) -> RepairStep:
    name = warc.name.removesuffix(OPEN_SUFFIX)
    if (out / name).exists():
        aside = _move(warc, out / (name + ".second"))
        return RepairStep(warc.name, f"is there sealed, too; kept as {aside.name}")
    journal = journal_path(out / PARTS, name)
    if journal.exists() and read_header(journal):
        done = repair_file(out, out / PARTS, name)
        if done.freed:
            return RepairStep(name, f"removed: of its {done.cut_bytes} bytes, none was part of a stored capture")
        seal(warc, warc.with_name(name))
        return RepairStep(
            name, f"sealed with {done.rows} captures; cut off {done.cut_bytes} bytes of incomplete captures"
        )
    if journal.exists():
        _move(journal, out / (journal.name + ".damaged"))
    return _salvage(warc, name)


def _salvage(warc: Path, name: str) -> RepairStep:
    """Seal a file without journal, with all its whole records; what follows them is kept beside."""
    size = warc.stat().st_size
    read = RangeChecker(FileRange(0, name, str(warc), 0, size, size, own=True)).run()
    if not size or read.torn == 0:
        aside = warc.with_name(f"{name}.torn-0")
        rename(warc, aside)
        return RepairStep(name, f"has no whole record; kept as {aside.name}")
    text = _cut(warc, read.torn, name).text + "; " if read.torn > 0 else ""
    seal(warc, warc.with_name(name))
    return RepairStep(name, f"{text}sealed without its journal, with {read.records} records")


def _cut(warc: Path, offset: int, name: str) -> RepairStep:
    """Cut a file's end off, after it was copied into a file beside; a copy from before a kill is made again."""
    aside = warc.with_name(f"{name}.torn-{offset}")
    half = aside.with_name(aside.name + ".tmp")
    with warc.open("rb+") as source:
        source.seek(offset)
        with half.open("wb") as target:
            while data := source.read(_COPIED):
                target.write(data)
        sync_path(half)
        rename(half, aside)
        size = source.tell()
        os.ftruncate(source.fileno(), offset)
        sync(source.fileno())
    return RepairStep(name, f"cut off {size - offset} bytes at {offset} without a whole record; kept as {aside.name}")


def must_join(out: Path) -> bool:
    """Whether the index is not whole."""
    parts = out / PARTS
    left = (*parts.glob("*" + SUFFIX), *parts.glob("*" + PART_SUFFIX), *parts.glob(LISTED_AGAIN))
    return bool(left) or not (out / CAPTURES).exists()


def join_index(out: Path) -> list[RepairStep]:
    """Join what is there of the index, journals included."""
    parts = out / PARTS
    waiting = [*parts.glob("*" + SUFFIX), *parts.glob("*" + PART_SUFFIX)]
    if not must_join(out):
        if parts.is_dir() and not any(parts.iterdir()):
            parts.rmdir()
        return []
    join(out, parts)
    text = f"joined from {len(waiting)} journals and parts" if waiting else "was missing; written again"
    return [RepairStep(CAPTURES, text)]


def repair_rows(out: Path, checked: CheckReport) -> list[RepairStep]:
    """Rebuild the rows of every file with rows that are wrong or missing; all other rows stay as they are.

    A file that is damaged keeps the rows of records that cannot be found in it: they are all that is known of them. One
    without rows whose records are those of another file gets none: it is a copy.
    """
    damaged = {fault.file for fault in checked.faults if fault.code not in _SAY_NOTHING_OF_RECORDS}
    wrong = sorted(set(filter(_is_text, _files_of("row", checked))) - _copies(out, checked))
    counts = {name: _changes(out, name, damaged) for name in wrong if (out / name).exists()}
    names = [name for name, count in counts.items() if count is not None]
    if not names:
        return []
    kept = _keep_index(out)
    replace_index(out, _with_rebuilt(out, names, damaged))
    text = f"rows rebuilt from records; the index before is kept as {kept.name}"
    return [RepairStep(name, f"{counts[name]} {text}") for name in names]


def _copies(out: Path, checked: CheckReport) -> set[str]:
    return {name for name in filter(_is_text, _files_of("id", checked)) if not _old_rows(out, name)}


def _files_of(code: str, checked: CheckReport) -> set[str]:
    return {fault.file for fault in checked.faults if fault.code == code}


def _is_text(name: str) -> bool:
    """Whether an index can hold a file's name; others' may be any bytes."""
    return name.isprintable() or not any("\ud800" <= sign <= "\udfff" for sign in name)


def _changes(out: Path, name: str, damaged: Collection[str]) -> int | None:
    """How many rows the file gets, or None when these are the rows that it has."""
    old = _old_rows(out, name)
    new = _new_rows(out, name, old, keep=name in damaged)
    return None if sorted(old, key=_offset) == new else len(new)


def _offset(row: Capture) -> int:
    return row.warc_offset or 0


def _old_rows(out: Path, name: str) -> list[Capture]:
    return [row for row in _all_rows(out, name) if row.found_as != LISTED_AGAIN]


def _all_rows(out: Path, name: str) -> list[Capture]:
    return _captures(ds.dataset(out / CAPTURES, format="parquet").to_table(filter=ds.field("warc_file") == name))


def _captures(table: pa.Table | pa.RecordBatch) -> list[Capture]:
    return [Capture(**_without_nulls(row)) for row in table.to_pylist()]


def _without_nulls(row: dict[str, Any]) -> dict[str, Any]:
    """A row of which another program may have left something out."""
    gaps = [name for name, value in row.items() if value is None and name not in _MAY_BE_NULL]
    return {**row, **{name: _EMPTY[name] for name in gaps}} if gaps else row


def _new_rows(out: Path, name: str, old: list[Capture], *, keep: bool) -> list[Capture]:
    known = {row.record_id: row for row in reversed(old)}
    rows = rows_of_records(out / name, name)
    found = {row.record_id for row in rows}
    rows = [merged(row, known[row.record_id]) if row.record_id in known else row for row in rows]
    if keep:
        rows += [row for row in old if row.record_id not in found]
    return sorted(rows, key=_offset)


def _listed_again(out: Path, name: str, rows: list[Capture]) -> list[Capture]:
    """The rows of lines that are listed again, by the rows of their URLs as they are now."""
    known = {row.record_id: row for row in rows}
    old = [row for row in _all_rows(out, name) if row.found_as == LISTED_AGAIN and row.record_id in known]
    return [
        structs.replace(known[row.record_id], meta_json=row.meta_json, found_as=LISTED_AGAIN, seed_url=row.seed_url)
        for row in old
    ]


def _keep_index(out: Path) -> Path:
    """A second name for the present index, which its replacement will not touch."""
    captures = out / CAPTURES
    for known in out.glob(CAPTURES + ".before*"):
        if known.samefile(captures):
            return known
    kept = _free_name(out / (CAPTURES + ".before"))
    kept.hardlink_to(captures)
    sync_directory(out)
    return kept


def _with_rebuilt(out: Path, names: Collection[str], damaged: Collection[str]) -> Iterator[list[Capture]]:
    """All rows in batches: those of other files as they are, then file by file those that are new."""
    for batch in batches(RowSource("", out / CAPTURES)):
        yield [row for row in _captures(batch) if row.warc_file not in names]
    for name in names:
        rows = _new_rows(out, name, _old_rows(out, name), keep=name in damaged)
        rows += _listed_again(out, name, rows)
        for at in range(0, len(rows), ROW_GROUP):
            yield rows[at : at + ROW_GROUP]


def _free_name(path: Path) -> Path:
    number = 0
    found = path
    while found.exists():
        number += 1
        found = path.with_name(f"{path.name}-{number}")
    return found
