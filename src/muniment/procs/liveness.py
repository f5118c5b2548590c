"""Whether the process of a row is alive: decided from the row and from what the kernel shows, without asking either."""

from __future__ import annotations

from typing import Literal

from muniment.model.process import LiveProcess, Process, ProcessPlace

__all__ = ["LEASE_MS", "PID_REUSE_WINDOW_MS", "START_TIME_TOLERANCE_MS", "Verdict", "judge", "same_process"]

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
