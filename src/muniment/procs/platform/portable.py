"""Processes by means that every Unix has: what psutil shows of them, and a thread that waits for each child.

For systems without Linux's own (`linux`), macOS first of all. What cannot be had there is in docs/processes.md.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import signal
import sys
import tempfile
import threading
from contextlib import suppress
from functools import cache

from muniment.errors import UsageError
from muniment.model.process import LiveProcess, ProcessPlace

try:
    import psutil
except ModuleNotFoundError:
    raise UsageError(
        "this Python has no way to tell processes apart: install psutil, or take one that was built with pidfd_open"
    ) from None

__all__ = [
    "RSS_UNIT",
    "Awaited",
    "booted_at",
    "everyone",
    "look",
    "mark_of",
    "place",
    "send",
    "started_at",
    "unnamed_file",
]

# no call tells it: macOS counts in bytes, all others in KiB
RSS_UNIT = 1 if sys.platform == "darwin" else 1024
_NOT_THERE = (psutil.Error, OSError, OverflowError, ValueError)
_LETTERS = {psutil.STATUS_ZOMBIE: "Z", psutil.STATUS_DEAD: "X", psutil.STATUS_STOPPED: "T"}


@cache
def place() -> ProcessPlace:
    """Where the numbers of processes mean what they mean to this one.

    No start of the machine is named: the moments at which processes began are dates, and never come again.
    """
    return ProcessPlace(hashlib.sha256(f"muniment {_machine()}".encode()).hexdigest()[:32], "", 0)


def _machine() -> str:
    """The system's own id for this machine; without one its name."""
    ask = getattr(ctypes.CDLL(None), "gethostuuid", None)
    number, patience = (ctypes.c_ubyte * 16)(), (ctypes.c_long * 2)(1, 0)
    if ask is not None and ask(number, ctypes.byref(patience)) == 0:
        return bytes(number).hex()
    return platform.node()


def booted_at() -> int:
    """When this machine was started, Unix ms by the clock as it is now."""
    return int(psutil.boot_time() * 1000)


def started_at(seen: LiveProcess) -> int:
    """When a process began, Unix ms by the clock as it is now; 0 when it has gone."""
    try:
        return int(psutil.Process(seen.pid).create_time() * 1000)
    except _NOT_THERE:
        return 0


def look(pid: int) -> LiveProcess | None:
    """The process of a number; None when there is none, or one that may not be seen."""
    try:
        process = psutil.Process(pid)
        with process.oneshot():
            cpu_ms, rss = _use(process)
            return LiveProcess(
                pid=pid,
                parent=process.ppid(),
                session=_session(pid),
                state=_LETTERS.get(process.status(), "S"),
                # the public one follows the clock when that is set, from the moment when psutil was loaded
                start_ticks=round((process._ident[1] or 0) * 1_000_000),
                cpu_ms=cpu_ms,
                rss=rss,
            )
    except _NOT_THERE:
        return None


def _use(process: psutil.Process) -> tuple[int, int]:
    """CPU time in ms and memory in bytes; nothing of one that has ended, or is another user's."""
    try:
        times = process.cpu_times()
        return int((times.user + times.system) * 1000), process.memory_info().rss
    except psutil.Error:
        return 0, 0


def _session(pid: int) -> int:
    try:
        return os.getsid(pid)
    except OSError:
        return 0


def everyone() -> dict[int, LiveProcess]:
    """Every process that can be seen from here."""
    return {pid: seen for pid in psutil.pids() if (seen := look(pid)) is not None}


def mark_of(pid: int, variable: str) -> str:
    """A variable that a process was begun with; empty without one, or where it may not be seen."""
    try:
        return str(psutil.Process(pid).environ().get(variable, ""))
    except _NOT_THERE:
        return ""


def send(pid: int, start_ticks: int | None, number: signal.Signals) -> bool:
    """Signal the process that began at this moment; whether it was there.

    It may end, and its number be given away, between the look and the signal: nothing here holds it.
    """
    seen = look(pid)
    if seen is None or seen.ended or (start_ticks is not None and seen.start_ticks != start_ticks):
        return False
    try:
        os.kill(pid, number)
    except OSError:
        return False
    return True


class Awaited:
    """A child of this process whose end is waited for. `descriptor` is readable once it has ended."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._ending: tuple[int, float, int] | None = None
        # nobody inherits it: whoever did would keep it open when the child has ended
        self.descriptor, self._writer = os.pipe()
        threading.Thread(target=self._wait, name=f"waits for {pid}", daemon=True).start()

    def _wait(self) -> None:
        # `subprocess` takes in those that nobody here wants any more
        with suppress(ChildProcessError):
            _, status, usage = os.wait4(self._pid, 0)
            used = usage.ru_utime + usage.ru_stime
            self._ending = os.waitstatus_to_exitcode(status), used, usage.ru_maxrss * RSS_UNIT
        os.close(self._writer)

    def ending(self) -> tuple[int, float, int] | None:
        """Exit code, CPU seconds and most memory in bytes, once; None while it runs."""
        if self._ending is not None:
            os.close(self.descriptor)
        return self._ending


def unnamed_file(name: str) -> int:
    """A descriptor of a file that nobody else sees; where there is no room for one, what is written is lost."""
    with suppress(OSError), tempfile.TemporaryFile(prefix=name) as file:
        return os.dup(file.fileno())
    return os.open(os.devnull, os.O_RDWR)
