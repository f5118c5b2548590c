"""Repair after a crash: cut every open WARC to the length its journal vouches for; nothing is scanned.

What is left waits, still open, to be verified and sealed.
"""

from __future__ import annotations

import os
from pathlib import Path

from msgspec import Struct

from muniment.archive.durable import archive_error, remove, taken
from muniment.archive.index.journal import SUFFIX, JournalEntry, entries, is_torn, journal_path, read_header, rewrite
from muniment.archive.names import OPEN_SUFFIX
from muniment.archive.names import SUFFIX as WARC_SUFFIX
from muniment.archive.recovery.quarantine import half_aside, set_aside
from muniment.disk import sync, sync_directory
from muniment.errors import ArchiveError

__all__ = ["RepairReport", "repair", "repair_file"]

_OPEN_PATTERN = "*.warc.gz" + OPEN_SUFFIX


class RepairReport(Struct, frozen=True, kw_only=True):
    """The repair of one WARC."""

    name: str
    """The final file name."""
    freed: bool
    """Nothing of it was safe, or it was set aside: the file is gone and its number may be given out again."""
    rows: int
    """Captures kept."""
    cut_bytes: int
    """Unfinished bytes cut off the end; they are fetched again."""
    dropped_rows: int = 0
    """Journalled captures whose bytes the file does not hold: damage by the disk, to be reported."""
    torn: bool = False
    """The journal ends with an invalid entry: after a kill nothing was safe there, after damage that is unknown."""


def repair(out: Path, parts: Path) -> list[RepairReport]:
    """Repair every open WARC of a directory that no process is writing to.

    Idempotent, and may be killed at any instant. Raises `ArchiveError` when a WARC has no readable journal or its final
    name is taken. A journal with captures whose WARC is gone stays: its rows are all that is known of them.
    """
    for aside in (*out.glob("*.parquet.tmp"), *parts.glob("*.tmp")):
        aside.unlink()
    done = [repair_file(out, parts, path.name.removesuffix(OPEN_SUFFIX)) for path in sorted(out.glob(_OPEN_PATTERN))]
    for journal in sorted(parts.glob("*" + WARC_SUFFIX + SUFFIX)):
        name = journal.name.removesuffix(SUFFIX)
        if not (out / name).exists() and not (out / (name + OPEN_SUFFIX)).exists() and _is_empty(journal):
            done.append(_without_warc(journal))
    return done


def repair_file(out: Path, parts: Path, name: str) -> RepairReport:
    """Repair the open WARC of one killed worker; `name` is the final name. A file already sealed needs nothing."""
    try:
        return _repaired(out, parts, name)
    except OSError as error:
        raise archive_error(error, out / (name + OPEN_SUFFIX)) from error


def _repaired(out: Path, parts: Path, name: str) -> RepairReport:
    warc, journal = out / (name + OPEN_SUFFIX), journal_path(parts, name)
    if warc.exists() and (out / name).exists():
        raise taken(warc, out / name)
    if not warc.exists() and (out / name).exists():
        rows = sum(map(_is_row, entries(journal))) if journal.exists() else 0
        return RepairReport(name=name, freed=False, rows=rows, cut_bytes=0)
    if not warc.exists():
        # killed before it made anything of the name that it was given, or just after it had begun
        return _without_warc(journal) if journal.exists() else RepairReport(name=name, freed=True, rows=0, cut_bytes=0)
    if not journal.exists() and half_aside(out, name):
        set_aside(out, parts, name)
        return RepairReport(name=name, freed=True, rows=0, cut_bytes=0)
    return _cut_back(warc, journal, name)


def _cut_back(warc: Path, journal: Path, name: str) -> RepairReport:
    if not journal.exists():
        raise ArchiveError(
            f"{warc.name}: its row journal {journal.name} is missing, so what is safe in it is unknown; "
            f"muniment check {warc.parent} --repair keeps all its whole records"
        )
    size = warc.stat().st_size
    if not read_header(journal):
        if size:
            raise ArchiveError(
                f"{warc.name}: its row journal {journal.name} is damaged at its beginning; try muniment check --repair"
            )
        return _free(warc, journal, 0, 0)
    torn = is_torn(journal)
    length, rows, dropped = _vouched(journal, size)
    if dropped:
        rewrite(journal, (entry for entry in entries(journal) if entry.warc_length <= size))
    if not (rows and length):
        return _free(warc, journal, size, dropped, torn=torn)
    if length < size:
        _cut(warc, length)
    return RepairReport(name=name, freed=False, rows=rows, cut_bytes=size - length, dropped_rows=dropped, torn=torn)


def _vouched(journal: Path, size: int) -> tuple[int, int, int]:
    """The last journalled length within the file's size, the rows up to it and the rows beyond it."""
    length = rows = dropped = 0
    for entry in entries(journal):
        if entry.warc_length <= size:
            length = entry.warc_length
            rows += _is_row(entry)
        else:
            dropped += _is_row(entry)
    return length, rows, dropped


def _is_row(entry: JournalEntry) -> bool:
    return entry.capture is not None


def _cut(warc: Path, length: int) -> None:
    fd = os.open(warc, os.O_RDWR)
    try:
        os.ftruncate(fd, length)
        sync(fd)
    finally:
        os.close(fd)


def _free(warc: Path, journal: Path, cut_bytes: int, dropped: int, *, torn: bool = False) -> RepairReport:
    # The WARC goes first: a journal alone is recognised the next time, a WARC alone would be an error.
    remove(warc)
    remove(journal)
    name = warc.name.removesuffix(OPEN_SUFFIX)
    return RepairReport(name=name, freed=True, rows=0, cut_bytes=cut_bytes, dropped_rows=dropped, torn=torn)


def _is_empty(journal: Path) -> bool:
    return not any(map(_is_row, entries(journal)))


def _without_warc(journal: Path) -> RepairReport:
    name = journal.name.removesuffix(SUFFIX)
    if not _is_empty(journal):
        raise ArchiveError(f"{name}{OPEN_SUFFIX} is gone, though its row journal lists captures: put it back")
    journal.unlink()
    sync_directory(journal.parent)
    return RepairReport(name=name, freed=True, rows=0, cut_bytes=0)
