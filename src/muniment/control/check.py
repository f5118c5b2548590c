"""`check`: one directory's files, index and tracker held against each other, and repaired where that is safe."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from msgspec import Struct

from muniment.archive.check.directory import CheckReport, Fault, check, is_own
from muniment.archive.check.pool import Enrol
from muniment.control.privacy import is_private, keep_private
from muniment.control.tracker_location import POINTER
from muniment.model.place import TRACKER
from muniment.procs.lock import EVENTS_FILE, lock_directory
from muniment.procs.registry import ProcessPlan, ProcessRegistry

_HOOK_FILES = "hook-files.parquet"

__all__ = ["CheckResult", "check_directory", "repair_directory"]


class RepairAction(Struct, frozen=True):
    """One thing that `--repair` did."""

    file: str
    text: str


class CheckResult(Struct, frozen=True, kw_only=True):
    """The faults that a check found, and the repairs before it."""

    files: int
    records: int
    rows: int
    faults: tuple[Fault, ...]
    repaired: tuple[RepairAction, ...] = ()
    notes: tuple[str, ...] = ()
    """What could not be compared, and why; no fault."""


def check_directory(out: Path, registry: ProcessRegistry | None = None) -> CheckResult:
    """Check a directory, which may be of a run that is under way; blocks. Its processes have rows in the registry."""
    return _verdict(out, check(out, enrol=_enrolling(registry)))


def repair_directory(out: Path, registry: ProcessRegistry | None = None) -> CheckResult:
    """Repair what can be repaired safely and check the result; raises BusyError while a run holds the directory."""
    # pyarrow has threads: it is not loaded before processes of a plain check are forked
    from muniment.archive.check import repair  # noqa: PLC0415

    locks = lock_directory(out, EVENTS_FILE if (out / EVENTS_FILE).exists() else "")
    own, enrol = is_own(out), _enrolling(registry)
    if is_private(out):
        keep_private()
    try:
        done = repair.set_aside_unreadable(out)
        checked = check(out, enrol=enrol)
        while steps := repair.repair_files(out, checked.torn):
            # what is damaged before a torn end is the end now
            done += steps
            checked = check(out, enrol=enrol)
        half = own and repair.must_join(out)
        if own and (joined := repair.join_index(out)):
            done += joined
            checked = check(out, enrol=enrol)
        if own and (steps := repair.repair_rows(out, checked)):
            done += steps
            checked = check(out, enrol=enrol)
        if half and _has_tracker(out):
            _list_again(out)
        repaired = tuple([RepairAction(one.file, one.text) for one in done]) + _fetched_again(out)
        return _verdict(out, checked, repaired)
    finally:
        for lock in locks:
            os.close(lock)


def _list_again(out: Path) -> None:
    """Make the rows of lines whose URL an earlier line has, now that the rows of these are there."""
    from muniment.archive.check import repair  # noqa: PLC0415  (as above)
    from muniment.control.missing_rows import tell_repeats  # noqa: PLC0415  (as below)

    tell_repeats(out)
    repair.join_index(out)


def _enrolling(registry: ProcessRegistry | None) -> Enrol:
    # one that was forked, or that Python spawned, has no command line of its own
    plan = ProcessPlan(process_type="worker", label="check", command=tuple(sys.orig_argv))
    return lambda: registry.enter(plan, own_files=False) if registry else None


def _fetched_again(out: Path) -> tuple[RepairAction, ...]:
    if not _has_tracker(out):
        return ()
    from muniment.control.missing_rows import fetch_again  # noqa: PLC0415  (as below)

    pages = fetch_again(out)
    text = f"{pages} pages that were done without a row wait again: give the command of their run again"
    return (RepairAction(TRACKER, text),) if pages else ()


def _has_tracker(out: Path) -> bool:
    return (out / TRACKER).exists() or (out / POINTER).exists()


def _against_tracker(out: Path) -> tuple[list[Fault], str]:
    from muniment.control.missing_rows import pages_without_row  # noqa: PLC0415  (SQLAlchemy: only where a tracker is)

    return pages_without_row(out)


def _of_hooks(out: Path) -> list[Fault]:
    if not (out / _HOOK_FILES).exists():
        return []
    from muniment.control.hook_reports import hook_faults  # noqa: PLC0415  (pyarrow: where hooks left files)

    return hook_faults(out)


def _verdict(out: Path, checked: CheckReport, repaired: tuple[RepairAction, ...] = ()) -> CheckResult:
    faults, note = _against_tracker(out) if _has_tracker(out) else ([], "")
    return CheckResult(
        files=checked.files,
        records=checked.records,
        rows=checked.rows,
        faults=(*checked.faults, *faults, *_of_hooks(out)),
        repaired=repaired,
        notes=(f"the tracker was not compared with the index: {note}",) if note else (),
    )
