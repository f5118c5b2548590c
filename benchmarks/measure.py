"""Runs a command on chosen cores and measures it with all its processes."""

from __future__ import annotations

import contextlib
import os
import subprocess
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

POLL_SECONDS = 0.5
"""Each poll reads all of /proc: ten a second took a fortieth of two cores from whoever uses both."""


@dataclass(frozen=True)
class Measured:
    """What one run cost."""

    seconds: float
    cpu_seconds: float
    """User and system time of the command and of every descendant that was waited for."""
    peak_rss: dict[int, int]
    """Most resident bytes seen of each process."""
    code: int

    @property
    def largest_rss(self) -> int:
        return max(self.peak_rss.values(), default=0)

    @property
    def total_rss(self) -> int:
        """The sum of the peaks: at least what all processes held at once."""
        return sum(self.peak_rss.values())


def measure(command: Sequence[str], directory: Path, cores: set[int]) -> Measured:
    """Run the command in the directory; its output goes to files there.

    Muniment keeps its rows of processes there, too: an older one could not open those of a newer one.
    """
    before = time.perf_counter()
    with (directory / "stdout").open("wb") as out, (directory / "stderr").open("wb") as err:
        process = subprocess.Popen(
            ["taskset", "-c", ",".join(map(str, sorted(cores))), *command],
            cwd=directory,
            env={**os.environ, "MUNIMENT_PROCESSES": str(directory.absolute() / "processes")},
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
        )
    watch = Watch(process.pid)
    with watch:
        # wait4 counts this child and its descendants only, not what ran before it.
        _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - before
    process.returncode = os.waitstatus_to_exitcode(status)
    return Measured(seconds, usage.ru_utime + usage.ru_stime, watch.peaks, process.returncode)


class Watch:
    """Polls the memory of a process and of its descendants while its `with` block lasts."""

    def __init__(self, pid: int) -> None:
        self.peaks: dict[int, int] = {}
        self._pid = pid
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._poll, daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _poll(self) -> None:
        while not self._ended.wait(POLL_SECONDS):
            with contextlib.suppress(psutil.Error):
                top = psutil.Process(self._pid)
                for process in [top, *top.children(recursive=True)]:
                    with contextlib.suppress(psutil.Error):
                        self.peaks[process.pid] = max(self.peaks.get(process.pid, 0), process.memory_info().rss)
