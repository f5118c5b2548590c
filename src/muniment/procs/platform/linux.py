"""Processes by what the kernel shows of them (proc(5)), and by descriptors that never mean another one."""

from __future__ import annotations

import hashlib
import os
import platform
import signal
import time
from contextlib import suppress
from functools import cache
from pathlib import Path

from muniment.clock import now_ms
from muniment.model.process import LiveProcess, ProcessPlace

__all__ = [
    "RSS_UNIT",
    "Awaited",
    "booted_at",
    "everyone",
    "look",
    "mark_of",
    "place",
    "proportional_memory",
    "send",
    "started_at",
    "unnamed_file",
]

RSS_UNIT = 1024
"""Bytes that the kernel counts memory in."""
_PROC = Path("/proc")
_TICK_MS = 1000 / os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:  # noqa: PTH123  (one of hundreds at a time)
            return file.read().strip()
    except OSError:
        return ""


@cache
def place() -> ProcessPlace:
    """The place in which process numbers mean the same as in this process."""
    boot = _text("/proc/sys/kernel/random/boot_id")
    try:
        namespace = os.stat("/proc/self/ns/pid").st_ino  # noqa: PTH116
    except OSError:
        namespace = 0
    name = _text("/etc/machine-id") or f"{platform.node()} {boot}"
    return ProcessPlace(hashlib.sha256(f"muniment {name}".encode()).hexdigest()[:32], boot, namespace)


def booted_at() -> int:
    """When this machine was started, Unix ms by the clock as it is now."""
    return now_ms() - time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000


def started_at(seen: LiveProcess) -> int:
    """When a process began, Unix ms by the clock as it is now."""
    return booted_at() + int(seen.start_ticks * _TICK_MS)


def look(pid: int) -> LiveProcess | None:
    """The process of a number; None when there is none, or one that may not be seen."""
    text = _text(f"/proc/{pid}/stat")
    # the name in parentheses may hold anything, parentheses too
    fields = text.rpartition(")")[2].split()
    if len(fields) < 22:
        return None
    return LiveProcess(
        pid=pid,
        parent=int(fields[1]),
        session=int(fields[3]),
        state=fields[0],
        start_ticks=int(fields[19]),
        cpu_ms=int((int(fields[11]) + int(fields[12])) * _TICK_MS),
        rss=int(fields[21]) * _PAGE,
    )


def everyone() -> dict[int, LiveProcess]:
    """Every process that can be seen from here."""
    numbers = (int(name) for name in os.listdir(_PROC) if name.isdigit())  # noqa: PTH208
    return {pid: seen for pid in numbers if (seen := look(pid)) is not None}


def proportional_memory(pid: int) -> int:
    """Bytes that a process takes, its part of what it shares with others included; 0 for one that is gone."""
    for line in _text(f"/proc/{pid}/smaps_rollup").splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * RSS_UNIT
    return 0


def mark_of(pid: int, variable: str) -> str:
    """A variable that a process was begun with; empty without one, or where it may not be seen."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:  # noqa: PTH123
            block = b"\0" + file.read()
    except OSError:
        return ""
    return block.partition(f"\0{variable}=".encode())[2].partition(b"\0")[0].decode("ascii", "replace")


def send(pid: int, start_ticks: int | None, number: signal.Signals) -> bool:
    """Signal the process that began at these ticks, never another that got its number since; whether it was there."""
    try:
        descriptor = os.pidfd_open(pid)
    except OSError:
        return False
    try:
        # what is looked at now is what the descriptor holds, or that has ended and takes no signal any more
        seen = look(pid)
        if seen is None or seen.ended or (start_ticks is not None and seen.start_ticks != start_ticks):
            return False
        signal.pidfd_send_signal(descriptor, number)
    except OSError:
        return False
    else:
        return True
    finally:
        with suppress(OSError):
            os.close(descriptor)


class Awaited:
    """A child of this process whose end is waited for. `descriptor` is readable once it has ended."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        # it never means another process
        self.descriptor = os.pidfd_open(pid)

    def ending(self) -> tuple[int, float, int] | None:
        """Exit code, CPU seconds and most memory in bytes, once; None while it runs."""
        pid, status, usage = os.wait4(self._pid, os.WNOHANG)
        if not pid:
            return None
        os.close(self.descriptor)
        return os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime, usage.ru_maxrss * RSS_UNIT


def unnamed_file(name: str) -> int:
    """A descriptor of a file that nobody else sees, in memory: it needs no room on a disk."""
    return os.memfd_create(name)
