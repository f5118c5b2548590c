"""What a pipeline reports of its machine."""

from __future__ import annotations

import os
import shutil
import socket
import sys
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from itertools import islice
from pathlib import Path

from muniment.model.network.processes import MOST_ROWS_REPORTED, reported_row
from muniment.model.pipeline import HostReport
from muniment.model.process import Process

__all__ = ["host_report"]


def host_report(directory: Path, processes: int, rows: Iterable[Process] = (), browser: str = "") -> HostReport:
    """The facts about this machine now; `processes` are those of the pipeline, `browser` is the version of its own."""
    disk_free = disk_total = 0
    with suppress(OSError):
        disk = shutil.disk_usage(directory)
        disk_free, disk_total = disk.free, disk.total
    memory = _memory()
    load = (0.0, 0.0, 0.0)
    with suppress(OSError):
        load = os.getloadavg()
    return HostReport(
        fqdn=_full_name(),
        hostname=socket.gethostname(),
        pid=os.getpid(),
        python=sys.version,
        browser=browser,
        processes=processes,
        rows=tuple(map(reported_row, islice(rows, MOST_ROWS_REPORTED))),
        disk_free=disk_free,
        disk_total=disk_total,
        memory_free=memory.get("MemAvailable", 0),
        memory_total=memory.get("MemTotal", 0),
        load=load,
    )


@cache
def _full_name() -> str:
    # the name servers may be away, and this must not wait for them
    return socket.gethostname()


def _memory() -> dict[str, int]:
    """Bytes, by the names of the kernel."""
    found = {}
    with suppress(OSError, ValueError):
        for line in Path("/proc/meminfo").read_text().splitlines():
            name, _, rest = line.partition(":")
            if rest.endswith(" kB"):
                found[name] = int(rest[:-3]) * 1024
    return found
