"""The footprint of an orchestrator: its open descriptors and its memory, over the whole run."""

from __future__ import annotations

import contextlib
import re
import threading
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import psutil

EVERY_S = 0.05
SETTLED_S = 0.2
"""After a strike: one more look at what is being replaced."""
FEWEST = 4
"""Looks that a comparison takes: a single one may fall into the moment in which a process is being launched."""
STARTING = 10
"""Looks at a process with its first worker, in which it may still be opening what it needs."""
MOST_MORE = 16 << 20
"""Bytes by which the memory of a small crawl may grow: its caches fill."""


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
        children = _children(self._process.pid)
        workers = sum(line.endswith(b"\0worker\0") for line in children)
        rss = self._process.memory_info().rss
        descriptors = _descriptors(self._process.pid)
        return Sample(time.monotonic(), workers, len(children) - workers, descriptors, rss)


def _children(pid: int) -> list[bytes]:
    """Their command lines. psutil would look at every process of the machine."""
    pids = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [Path(f"/proc/{child}/cmdline").read_bytes() for child in pids]


def _descriptors(pid: int) -> Counter[str]:
    kinds: Counter[str] = Counter()
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            target = str(entry.readlink())
            kinds[re.sub(r":\[.*|\s\(deleted\)|^/.*/|\d+", "", target) or target] += 1
    return kinds


def grown(samples: list[Sample], struck_at: list[float]) -> list[str]:
    """What a process has more of after it was struck around than before, at moments when its children are as many.

    A process that was not seen before, and a few times after, says nothing.
    """
    moments = [at for at in struck_at if samples and samples[0].at < at < samples[-1].at]
    if not moments:
        return []
    before = [sample for sample in samples if sample.at < moments[0] and _is_working(sample)]
    after = [sample for sample in samples if sample.at > moments[-1] + SETTLED_S and _is_working(sample)]
    before = before[STARTING:]
    if not before or len(after) < FEWEST:
        return []
    kinds = {kind for sample in after for kind in sample.descriptors}
    least = {kind: min(sample.descriptors[kind] for sample in after) for kind in kinds}
    most = {kind: max(sample.descriptors[kind] for sample in before) for kind in kinds}
    found = [
        f"descriptors: {least[kind]} {kind}, {most[kind]} before" for kind in sorted(kinds) if least[kind] > most[kind]
    ]
    more = min(sample.rss for sample in after) - max(sample.rss for sample in before)
    return [*found, f"memory: {more} bytes more than before"] if more > MOST_MORE else found


def _is_working(sample: Sample) -> bool:
    return sample.workers == 1 and not sample.helpers
