"""Checking a whole directory: every WARC member by member, and the index both ways; files in parallel."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from msgspec import Struct

from muniment.archive.check_file import Fault, FileChecker
from muniment.archive.check_rows import rows_of_file
from muniment.archive.damaged import half_aside
from muniment.archive.journal import journal_path, journalled_length
from muniment.archive.read import PARTS, rows, sources
from muniment.archive.segment import OPEN_SUFFIX
from muniment.errors import ArchiveError

__all__ = ["Checked", "Fault", "check"]


_WORTH_PROCESSES = 32 << 20
"""Below so many bytes a directory is checked before other processes have started."""


class Checked(Struct, frozen=True, kw_only=True):
    """The result of a check."""

    files: int
    records: int
    rows: int
    faults: tuple[Fault, ...]


class _Task(Struct, frozen=True):
    out: str
    name: str
    path: str
    limit: int


class _Result(Struct, frozen=True):
    records: int
    faults: list[Fault]


def check(out: Path, processes: int | None = None) -> Checked:
    """Read every WARC and the index of a directory, which may be finished, crashed or still running.

    An open WARC is read up to its journalled length. Blocks; unless told otherwise, uses one process per core for more
    than a little. Raises `ArchiveError` when the index cannot be read at all.
    """
    tasks = sorted(_tasks(out), key=lambda task: -task.limit)
    count = min(processes or _processes(tasks), len(tasks))
    if count > 1:
        # Not forked: pyarrow has threads, and a fork would inherit their locks.
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(count, mp_context=context) as pool:
            results = list(pool.map(_check_file, tasks))
    else:
        results = [_check_file(task) for task in tasks]
    row_count, faults = _check_index(out, {task.name for task in tasks})
    for result in results:
        faults += result.faults
    return Checked(
        files=len(tasks),
        records=sum(result.records for result in results),
        rows=row_count,
        faults=tuple(sorted(faults, key=lambda fault: (fault.file, fault.offset))),
    )


def _processes(tasks: list[_Task]) -> int:
    total = sum(task.limit for task in tasks)
    return (os.cpu_count() or 1) if total > _WORTH_PROCESSES else 1


def _tasks(out: Path) -> Iterator[_Task]:
    for path in out.glob("*.warc.gz"):
        yield _Task(str(out), path.name, str(path), path.stat().st_size)
    for path in out.glob("*.warc.gz" + OPEN_SUFFIX):
        name = path.name.removesuffix(OPEN_SUFFIX)
        journal = journal_path(out / PARTS, name)
        if not journal.exists() and half_aside(out, name):
            continue
        if not journal.exists():
            raise ArchiveError(f"{path.name}: its row journal {journal.name} is missing")
        yield _Task(str(out), name, str(path), journalled_length(journal))


def _check_file(task: _Task) -> _Result:
    checker = FileChecker(task.name, rows_of_file(Path(task.out), task.name))
    path = Path(task.path)
    checker.run(path if path.exists() else path.with_name(task.name), task.limit)
    return _Result(checker.records, checker.faults)


def _check_index(out: Path, names: set[str]) -> tuple[int, list[Fault]]:
    count = 0
    files: set[str] = set()
    faults: list[Fault] = []
    for batch in rows(out, ("warc_file", "error", "url")):
        count += batch.num_rows
        held, errors, urls = ([str(value) for value in column.to_pylist()] for column in batch.columns)
        files.update(held)
        faults += [
            Fault("", -1, "index", f"a row has neither a record nor an error: {url[:200]}")
            for name, error, url in zip(held, errors, urls, strict=True)
            if not name and not error
        ]
    if names and not sources(out):
        faults.append(Fault("captures.parquet", -1, "index", "the index is missing: no record has a row"))
    missing = sorted(files - names - {""})
    faults += [Fault(name, -1, "index", "the index has rows for a missing file") for name in missing]
    return count, faults
