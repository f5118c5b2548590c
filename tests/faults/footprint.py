"""The footprint of an orchestrator: its open descriptors and its memory, over the whole run."""

from __future__ import annotations

import contextlib
import os
import re
import threading
import time
from collections import Counter
from dataclasses import dataclass

import psutil

EVERY_S = 0.05


@dataclass(frozen=True)
class Sample:
    """One look."""

    at: float
    """`time.monotonic`."""
    workers: int
    helpers: int
    """Other children: processes that index."""
    descriptors: Counter[str]
    """How many of each kind: `socket`, `pipe`, `memfd`, files by name."""
    rss: int


class Footprint:
    """Looks at a process until it has ended."""

    def __init__(self, pid: int) -> None:
        self.samples: list[Sample] = []
        self._process = psutil.Process(pid)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look_on, daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Stop looking."""
        self._over.set()
        self._thread.join()

    def _look_on(self) -> None:
        while not self._over.wait(EVERY_S):
            with contextlib.suppress(psutil.Error, OSError):
                self.samples.append(self._look())

    def _look(self) -> Sample:
        children = [" ".join(child.cmdline()) for child in self._process.children()]
        workers = sum(line.endswith(" worker") for line in children)
        return Sample(
            time.monotonic(), workers, len(children) - workers, _descriptors(self._process.pid), self._process.memory_info().rss
        )


def _descriptors(pid: int) -> Counter[str]:
    kinds: Counter[str] = Counter()
    folder = f"/proc/{pid}/fd"
    for name in os.listdir(folder):
        with contextlib.suppress(OSError):
            target = os.readlink(f"{folder}/{name}")
            kinds[re.sub(r":\[.*|\s\(deleted\)|^/.*/|\d+", "", target) or target] += 1
    return kinds


def grown(samples: list[Sample], struck_at: list[float]) -> list[str]:
    """What a process that was struck around has more of at its end than before."""
    return []
