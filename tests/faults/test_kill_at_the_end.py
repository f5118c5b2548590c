"""`kill -9` when every page is done and the index is not joined yet: the next run joins it, and asks for nothing."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from muniment.testing.gated_site import GatedSite

KILLED_BEFORE_THE_JOIN = """
import os, signal
from muniment.clock import now_ms
from muniment.crawl.orchestrator import Orchestrator
async def stop_workers(orchestrator):
    orchestrator._frontier.settle(now_ms())
    os.kill(os.getpid(), signal.SIGKILL)
Orchestrator._stop_workers = stop_workers
from muniment.cli import main
main()
"""
"""The last page is finished, the tick after it has settled the job, and then the kill comes."""


def test_a_run_that_is_killed_before_its_index_is_joined_is_not_over(
    muniment: Callable[..., Any], tmp_path: Path
) -> None:
    with GatedSite({"/": "<a href=/a>a</a>", "/a": "a"}) as site:
        crawl = ["crawl", site.url, "-o", str(tmp_path / "out"), "--quiet"]
        killed = subprocess.run([sys.executable, "-c", KILLED_BEFORE_THE_JOIN, *crawl], timeout=60, check=False)
        assert killed.returncode == -signal.SIGKILL
        before = list(site.requests)
        assert muniment(*crawl).code == 0
        assert site.requests == before
        rows = pq.read_table(tmp_path / "out" / "captures.parquet").to_pylist()
        assert {row["url"] for row in rows} >= {site.url, site.url + "a"}
        assert not (tmp_path / "out" / "parts").exists()
        assert "nothing to do" in muniment(*crawl[:-1]).stdout
