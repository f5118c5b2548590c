"""Trees of processes, and who is alive: decided from rows and from what the kernel shows, without asking either."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

from muniment.model.process import LiveProcess, Process, ProcessPlace

__all__ = [
    "LEASE_MS",
    "PID_REUSE_WINDOW_MS",
    "START_TIME_TOLERANCE_MS",
    "Verdict",
    "ancestors_of",
    "in_tree_order",
    "is_part",
    "judge",
    "related",
    "same_process",
]

PID_REUSE_WINDOW_MS = 24 * 3600 * 1000
"""How long a number is believed where nothing else proves which process it is."""
START_TIME_TOLERANCE_MS = 5_000
"""How far two readings of a start time may be apart where the kernel has no ticks."""
LEASE_MS = 180_000
"""How old the heartbeat of a process elsewhere may be until it counts as silent."""

Verdict = Literal["alive", "dead", "elsewhere"]


def same_process(row: Process, seen: LiveProcess, *, seen_started_at: int, now: int) -> bool:
    """Whether the process that has a row's number now is the row's; `seen_started_at` in Unix ms.

    Start ticks prove it, whatever the clock says. Without them only the date is left, and that for a day.
    """
    if seen.ended or row.pid != seen.pid:
        return False
    if row.start_ticks is not None:
        return row.start_ticks == seen.start_ticks
    if row.started_at is None or now - row.started_at > PID_REUSE_WINDOW_MS:
        return False
    return abs(row.started_at - seen_started_at) < START_TIME_TOLERANCE_MS


def is_part(row: Process, rows: Iterable[Process]) -> bool:
    """Whether a row is of a part of a process: its parent, among rows, is of the same one."""
    mine = row.pid, row.start_ticks
    return row.pid is not None and any(one.id == row.parent_id and (one.pid, one.start_ticks) == mine for one in rows)


def judge(
    row: Process, here: ProcessPlace, seen: LiveProcess | None, *, seen_started_at: int, booted_at: int, now: int
) -> Verdict:
    """Whether a row that is not exited is of a living process; `elsewhere` when that cannot be seen from here.

    A row of an earlier start of this machine is dead once its heartbeat is before this start: a machine that was
    cloned with its id goes on beating.
    """
    if row.machine_id != here.machine_id:
        return "elsewhere"
    if row.boot_id != here.boot_id:
        return "dead" if row.beat_at < min(booted_at, now - LEASE_MS) else "elsewhere"
    if row.pid_namespace != here.pid_namespace:
        return "elsewhere"
    return "alive" if seen and same_process(row, seen, seen_started_at=seen_started_at, now=now) else "dead"


def related(living: Mapping[int, LiveProcess], found: Iterable[int]) -> set[int]:
    """The living among processes that were found, and all that descend from one or are in the session of one."""
    roots = set(found)
    while more := {
        pid
        for pid, seen in living.items()
        if pid not in roots and (seen.parent in roots or (seen.session in roots and seen.session != pid))
    }:
        roots |= more
    return roots & living.keys()


def ancestors_of(process: Process, rows: Iterable[Process]) -> list[Process]:
    """The ancestors of a process, its parent first; a circle in damaged data ends it."""
    by_id = {row.id: row for row in rows}
    found: list[Process] = []
    met = {process.id}
    at = process.parent_id
    while at is not None and at not in met and at in by_id:
        met.add(at)
        found.append(by_id[at])
        at = by_id[at].parent_id
    return found


def in_tree_order(rows: Sequence[Process]) -> Iterator[tuple[int, Process]]:
    """Every row once, children after their parents and the eldest first, with its level among the rows given.

    Rows without a parent among them begin a tree; so does, of a circle, the row that was queued first.
    """
    children: dict[str | None, list[Process]] = defaultdict(list)
    ids = {row.id for row in rows}
    ordered = sorted(rows, key=lambda row: (row.queued_at, row.id))
    for row in ordered:
        children[row.parent_id if row.parent_id in ids and row.parent_id != row.id else None].append(row)
    met: set[str] = set()
    for start in (*children[None], *ordered):
        waiting = [(0, start)]
        while waiting:
            level, row = waiting.pop()
            if row.id in met:
                continue
            met.add(row.id)
            yield level, row
            waiting += [(level + 1, child) for child in reversed(children[row.id])]
