"""Pipelines of a server under test: each with jobs of its own, started as users do, and what they left."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyarrow import parquet
from tests.support.api_server import ApiServer

__all__ = ["PipelineRun", "ended", "until"]

_PATIENCE_S = 60.0


def until(holds: Callable[[], Any], what: str, seconds: float = _PATIENCE_S) -> Any:
    """Wait until something holds, and return it; raises AssertionError."""
    end = time.monotonic() + seconds
    while not (found := holds()):
        assert time.monotonic() < end, what
        time.sleep(0.05)
    return found


class PipelineRun:
    """A pipeline of its own, by its name, and the directory that it works in."""

    def __init__(self, server: ApiServer, muniment: Any, out: Path, name: str) -> None:
        self.server, self._muniment, self.out, self.name = server, muniment, out, name
        added = server.call("POST", "/v1/pipelines", {"name": name, "tags": [name], "matchonly": True})
        self.token: str = added.value["token"]

    def add_job(self, *urls: str, **order: Any) -> int:
        """A job for this pipeline alone; its number."""
        added = self.server.call("POST", "/v1/jobs", {"urls": list(urls), "tags": [self.name], **order})
        assert added.status == 201, added
        return int(added.value["id"])

    def start(self, *arguments: object, url: str = "", out: Path | None = None) -> subprocess.Popen[str]:
        """Start it."""
        given = ("-o", out or self.out, "--allow-private", "--workers", 1, *arguments)
        started: subprocess.Popen[str] = self._muniment.start(
            "pipeline", url or self.server.url, *given, MUNIMENT_TOKEN=self.token
        )
        return started

    def job(self, job: int) -> dict[str, Any]:
        """How a job stands."""
        found: dict[str, Any] = self.server.call("GET", f"/v1/jobs/{job}").value
        return found

    def finished(self, job: int) -> dict[str, Any]:
        """Wait until a job is FINISHED; how it stands."""
        until(lambda: self.job(job)["state"] == "FINISHED", f"job {job} does not end: {self.job(job)}")
        return self.job(job)

    def session(self) -> dict[str, Any] | None:
        """Its session, as the server shows it."""
        listed = self.server.call("GET", "/v1/pipelines").value["pipelines"]
        found: dict[str, Any] | None = next(one["session"] for one in listed if one["name"] == self.name)
        return found

    def events(self) -> list[dict[str, Any]]:
        """What `pipeline.jsonl` says."""
        return [json.loads(line) for line in (self.out / "pipeline.jsonl").read_text().splitlines()]

    def captured(self, job: int) -> list[str]:
        """The URL of each row of a job's index, in order."""
        table = parquet.read_table(self.out / str(job) / "captures.parquet", columns=["url"])
        return sorted(str(url) for url in table.column("url").to_pylist())

    def check(self, job: int) -> None:
        """The directory of a job has no fault."""
        checked = self._muniment("check", self.out / str(job))
        assert checked.code == 0, checked.stdout + checked.stderr


def ended(process: subprocess.Popen[str], seconds: float = _PATIENCE_S) -> tuple[int, str]:
    """Wait until a pipeline has ended; its exit code and what it said."""
    _, complaints = process.communicate(timeout=seconds)
    return process.returncode, complaints
