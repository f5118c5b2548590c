"""Records of pipelines in Redis: the machines that they run on, as ArchiveBot's programs show them."""

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
from muniment.model.network.live import ConnectedPipeline

__all__ = ["PipelineRecord", "drop_record", "machine_fields", "write_record"]

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
        status = "Stopping" if stopping else "Running"
        write_record(client, self.key, {**self._fixed, **_measured(self._directory), "status": status})

    def leave(self, client: Client) -> None:
        """Take it out again."""
        drop_record(client, self.key)


def write_record(client: Client, key: str, fields: dict[str, str], kept_s: int = _KEPT_S) -> None:
    """Write the record of a pipeline, and name it among the others."""
    kind = client.type(layout.PIPELINES)
    with client.pipeline() as pipe:
        pipe.hset(key, mapping=fields)
        pipe.expire(key, kept_s)
        if kind == b"set":
            pipe.sadd(layout.PIPELINES, key)
        elif kind in {b"list", b"none"}:
            pipe.lrem(layout.PIPELINES, 0, key)
            pipe.rpush(layout.PIPELINES, key)
        pipe.publish(layout.PIPELINE_UPDATES, key)
        pipe.execute(raise_on_error=False)


def drop_record(client: Client, key: str) -> None:
    """Take the record of a pipeline out again."""
    with client.pipeline() as pipe:
        pipe.delete(key)
        pipe.lrem(layout.PIPELINES, 0, key)
        pipe.srem(layout.PIPELINES, key)
        pipe.publish(layout.PIPELINE_UPDATES, key)
        pipe.execute(raise_on_error=False)


def machine_fields(machine: ConnectedPipeline) -> dict[str, str]:
    """The record of a pipeline of a server, by what it reported."""
    report = machine.report
    loads = zip(("1m", "5m", "15m"), report.load, strict=True)
    return {
        "id": layout.pipeline_key(machine.instance),
        "fqdn": report.fqdn,
        "hostname": report.hostname,
        "nickname": machine.pipeline.name,
        "pid": str(report.pid),
        "python": report.python,
        "version": machine.version,
        **_shares(report.disk_free, report.disk_total, report.memory_free, report.memory_total),
        **{f"load_average_{span}": f"{load:.2f}" for span, load in loads},
        "ts": str(machine.reported_at // 1000),
        "status": "Stopping" if machine.stopping else "Running",
    }


def _measured(directory: Path) -> dict[str, str]:
    disk: Any = os.statvfs(directory)
    total, available = _memory()
    loads = os.getloadavg()
    return {
        **_shares(disk.f_bavail * disk.f_frsize, disk.f_blocks * disk.f_frsize, available, total),
        "load_average_1m": f"{loads[0]:.2f}",
        "load_average_5m": f"{loads[1]:.2f}",
        "load_average_15m": f"{loads[2]:.2f}",
        "ts": str(now_ms() // 1000),
    }


def _shares(disk_free: int, disk: int, memory_free: int, memory: int) -> dict[str, str]:
    return {
        "disk_usage": f"{100 * (1 - disk_free / disk) if disk else 0:.2f}",
        "disk_available": str(disk_free),
        "mem_usage": f"{100 * (1 - memory_free / memory) if memory else 0:.2f}",
        "mem_available": str(memory_free),
    }


def _memory() -> tuple[int, int]:
    """Bytes of memory in all, and those that programs can still have."""
    found = {}
    for line in Path("/proc/meminfo").read_text().splitlines():
        name, _, rest = line.partition(":")
        found[name] = rest
    return tuple(int(found[name].split()[0]) * 1024 for name in ("MemTotal", "MemAvailable"))  # type: ignore[return-value]
