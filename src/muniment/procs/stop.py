"""Ending a subtree of processes: gracefully, then by force, and said to be over when that is seen."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from muniment.clock import monotonic, now_ms
from muniment.errors import ProcessError, TrackerError
from muniment.model.process import LiveProcess, Output, Process, ProcessEnding
from muniment.procs import stop_timeouts
from muniment.procs.files import ProcessFiles
from muniment.procs.liveness import same_process
from muniment.procs.platform.identity import everyone, here, is_own, look, mark_of, send, started_at, within_reach
from muniment.procs.registry import MARK
from muniment.procs.shim import AT_ONCE, KEEPS
from muniment.procs.store import Store
from muniment.procs.tree import is_part, related

__all__ = ["conclude", "is_alive", "kill_strays", "members", "stop_tree"]

_LAUNCH_S = 5.0
"""How long a launch that is under way may take to come to something that can be ended."""
_RECORD_S = 2.0
_LOOK_AGAIN_S = 0.05
_GRACEFUL = frozenset({"cli", "supervisord", "orchestrator"})
"""Types that end their own children when they are asked to end."""


def is_alive(row: Process) -> bool:
    """Whether the process of a row that belongs here runs now."""
    seen = look(row.pid) if row.pid is not None and within_reach(row) else None
    return seen is not None and same_process(row, seen, seen_started_at=started_at(seen), now=now_ms())


def members(rows: Iterable[Process]) -> dict[int, LiveProcess]:
    """Every living process that belongs to rows: their own, their descendants, their sessions, and those they marked.

    Whoever leaves its parent and its session behind still has the mark of the process that it descends from.
    """
    return _members(rows)[0]


def _members(rows: Iterable[Process]) -> tuple[dict[int, LiveProcess], set[int]]:
    """The same, and which of them are shims."""
    rows = [row for row in rows if within_reach(row)]
    ids = {row.id for row in rows}
    living = {pid: seen for pid, seen in everyone().items() if not seen.ended and pid != os.getpid()}
    found = {row.pid for row in rows if row.pid is not None and row.pid in living and is_alive(row)}
    keepers = _keepers(rows)
    found |= {pid for pid in living if mark_of(pid, MARK) in ids} | keepers
    left = related(living, found)
    shims = {pid for pid in left if mark_of(pid, KEEPS) in ids}
    # as the last thing: one whose command has ended meanwhile may keep another by now
    keeping = _keepers(rows)
    return {pid: living[pid] for pid in left - (keepers - keeping)}, shims | (keeping & left)


def stop_tree(store: Store, row: Process, *, grace_s: float = stop_timeouts.SUBTREE_S) -> list[Process]:
    """End a process and all its descendants; their rows as they are then. No grace: at once, by force.

    Raises ProcessError when the process or some below it are of another machine, namespace or user, or when something
    will not end.
    """
    if row.place != here():
        raise ProcessError(f"process {row.id[:8]} runs on another machine or in another container; stop it there")
    if not is_own(row):
        raise ProcessError(f"process {row.id[:8]} is of {_user(row)}; stop it as that user, or as root")
    parent = store.get(row.parent_id) if row.parent_id else None
    if parent is not None and is_part(row, [parent]):
        raise ProcessError(f"process {row.id[:8]} is a part of process {parent.id[:8]}; stop that, or end its job")
    _wait_for_launch(store, row)
    # who ends what it belongs to itself says how it ends
    unended = [one for one in store.below(row.id) if one.status != "exited" and not _is_this(one)]
    rows = [one for one in unended if within_reach(one)]
    if grace_s > 0:
        _ask(row, rows)
        _wait(rows, grace_s)
    killed = _force(rows)
    try:
        ended = [_record(store, one, killed=killed) for one in rows]
    except TrackerError as error:
        raise ProcessError(f"it has ended, but its row cannot be written: {error}") from None
    if left := [one.id[:8] for one in unended if not within_reach(one)]:
        raise ProcessError(f"not stopped, because of another machine, container or user: {', '.join(sorted(left))}")
    return ended


def _wait_for_launch(store: Store, row: Process) -> None:
    """What is ended between its row and its process would begin afterwards."""
    over_at = monotonic() + _LAUNCH_S
    while row.status == "queued" and monotonic() < over_at:
        parent = store.get(row.parent_id) if row.parent_id else None
        if parent is None or not is_alive(parent):
            return
        time.sleep(_LOOK_AGAIN_S)
        row = store.get(row.id) or row


def _is_this(row: Process) -> bool:
    return row.pid == os.getpid() and row.place == here()


def _user(row: Process) -> str:
    return "a user who is not known" if row.uid is None else f"the user with the number {row.uid}"


def _ask(row: Process, rows: Collection[Process]) -> None:
    if row.process_type in _GRACEFUL and row.pid is not None and is_alive(row):
        send(row.pid, row.start_ticks, signal.SIGTERM)
        return
    for pid, seen in _eldest_first(members(rows)):
        send(pid, seen.start_ticks, signal.SIGTERM)


def _wait(rows: Collection[Process], seconds: float) -> dict[int, LiveProcess]:
    """The members that are still there when the time is over."""
    over_at = monotonic() + seconds
    while (left := members(rows)) and monotonic() < over_at:
        time.sleep(_LOOK_AGAIN_S)
    return left


def _force(rows: Collection[Process]) -> set[int]:
    """Kill what is left, and what it makes meanwhile; the numbers of those killed.

    Shims are asked first, and are killed when they take too long: only they learn how a command ends.
    """
    killed: set[int] = set()
    told: set[int] = set()
    patient_until = monotonic() + stop_timeouts.SHIM_S
    while (found := _members(rows))[0]:
        left, shims = found
        patient = monotonic() < patient_until
        for pid, seen in _eldest_first(left):
            if pid not in shims or not patient:
                killed |= {pid} if send(pid, seen.start_ticks, signal.SIGKILL) else set()
            elif pid not in told:
                told.add(pid)
                send(pid, seen.start_ticks, AT_ONCE)
                send(pid, seen.start_ticks, signal.SIGCONT)
        if monotonic() > patient_until + stop_timeouts.FORCED_S:
            raise ProcessError(f"processes did not end: {', '.join(map(str, sorted(left)))}")
        time.sleep(_LOOK_AGAIN_S)
    return killed


def _eldest_first(found: Mapping[int, LiveProcess]) -> list[tuple[int, LiveProcess]]:
    """A shell whose child is ended first would report an exit code of its own."""
    return sorted(found.items(), key=lambda one: one[1].start_ticks)


def _keepers(rows: Iterable[Process]) -> set[int]:
    """The living shims of rows by their own report: one that a fork server forked has no mark."""
    reports = (ProcessFiles(Path(row.directory)).kept() for row in rows if row.directory)
    known = (one for report in reports if report for one in report.shims)
    return {pid for pid, ticks in known if (seen := look(pid)) and seen.start_ticks == ticks and not seen.ended}


def _record(store: Store, row: Process, *, killed: set[int]) -> Process:
    """The row once its launcher has noted its end; when that is not there to do so, it is noted here."""
    over_at = monotonic() + _RECORD_S
    while True:
        now = store.get(row.id)
        if now is None or now.status == "exited":
            return now or row
        parent = store.get(row.parent_id) if row.parent_id else None
        if monotonic() > over_at or parent is None or not is_alive(parent):
            break
        time.sleep(_LOOK_AGAIN_S)
    conclude(store, row, ProcessEnding(-signal.SIGKILL if row.pid in killed else None))
    return store.get(row.id) or row


def conclude(store: Store, row: Process, otherwise: ProcessEnding) -> None:
    """Note the end of a process whose launcher did not: what its shim wrote, or else what is known."""
    files = ProcessFiles(Path(row.directory)) if row.directory else None
    ending = (files.ending() if files else None) or otherwise
    stdout, stderr = files.conclude() if files else (Output(), Output())
    store.ended(row.id, ending, now_ms(), stdout, stderr)


def kill_strays(rows: Collection[Process]) -> set[int]:
    """Kill what is left of processes and what they began; the numbers of those killed."""
    return _force(rows)
