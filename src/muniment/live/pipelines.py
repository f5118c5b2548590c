"""The record of a pipeline in Redis: the machine that it runs on, as ArchiveBot's programs show it."""

from __future__ import annotations

import os
import secrets
import socket
import sys
from pathlib import Path
from typing import Any

from muniment import __version__
from muniment.clock import now_ms
from muniment.live import layout
from muniment.live.link import Client

__all__ = ["PipelineRecord"]

_KEPT_S = 60


class PipelineRecord:
    """The record of this process, under a key of its own."""

    def __init__(self, directory: Path, nickname: str = "") -> None:
        self.key = f"pipeline:{secrets.token_hex(16)}"
        self._directory = directory
        host = socket.gethostname()
        self._fixed = {
            "id": self.key,
            "fqdn": host,
            "hostname": host.partition(".")[0],
            "nickname": nickname or host.partition(".")[0],
            "pid": str(os.getpid()),
            "python": sys.version,
            "version": __version__,
        }

    def report(self, client: Client, *, stopping: bool = False) -> None:
        """Write how the machine is; a record that is not written any more goes after a minute."""
        kind = client.type(layout.PIPELINES)
        with client.pipeline() as pipe:
            status = "Stopping" if stopping else "Running"
            pipe.hset(self.key, mapping={**self._fixed, **_measured(self._directory), "status": status})
            pipe.expire(self.key, _KEPT_S)
            if kind == b"set":
                pipe.sadd(layout.PIPELINES, self.key)
            elif kind in {b"list", b"none"}:
                pipe.lrem(layout.PIPELINES, 0, self.key)
                pipe.rpush(layout.PIPELINES, self.key)
            pipe.publish(layout.PIPELINE_UPDATES, self.key)
            pipe.execute(raise_on_error=False)

    def leave(self, client: Client) -> None:
        """Take it out again."""
        with client.pipeline() as pipe:
            pipe.delete(self.key)
            pipe.lrem(layout.PIPELINES, 0, self.key)
            pipe.srem(layout.PIPELINES, self.key)
            pipe.publish(layout.PIPELINE_UPDATES, self.key)
            pipe.execute(raise_on_error=False)


def _measured(directory: Path) -> dict[str, str]:
    disk: Any = os.statvfs(directory)
    whole, free = disk.f_blocks * disk.f_frsize, disk.f_bavail * disk.f_frsize
    total, available = _memory()
    loads = os.getloadavg()
    return {
        "disk_usage": f"{100 * (1 - free / whole) if whole else 0:.2f}",
        "disk_available": str(free),
        "mem_usage": f"{100 * (1 - available / total) if total else 0:.2f}",
        "mem_available": str(available),
        "load_average_1m": f"{loads[0]:.2f}",
        "load_average_5m": f"{loads[1]:.2f}",
        "load_average_15m": f"{loads[2]:.2f}",
        "ts": str(now_ms() // 1000),
    }


def _memory() -> tuple[int, int]:
    """Bytes of memory in all, and those that programs can still have."""
    found = {}
    for line in Path("/proc/meminfo").read_text().splitlines():
        name, _, rest = line.partition(":")
        found[name] = rest
    return tuple(int(found[name].split()[0]) * 1024 for name in ("MemTotal", "MemAvailable"))  # type: ignore[return-value]
