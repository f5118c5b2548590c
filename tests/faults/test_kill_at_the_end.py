"""Ended at once when every page is done and the index is not joined: the next run joins it, and asks for nothing."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from tests.support.gated_site import GatedSite

ENDED_BEFORE_THE_JOIN = """
import os, signal
from muniment.clock import now_ms
from muniment.crawl.orchestrator.loop import Orchestrator
from muniment.crawl.orchestrator.workers import Workers
run = Orchestrator.run
def begun(self, **given):
    global orchestrator
    orchestrator = self
    return run(self, **given)
async def end(*_):
    await orchestrator._queue.settle(now_ms())
    {}
Orchestrator.run, Workers.end = begun, end
from muniment.cli import main
main()
"""
"""The last page is finished, the tick after it has settled the job, and then the end comes."""
KILL = "os.kill(os.getpid(), signal.SIGKILL)"
CTRL_C_TWICE = "orchestrator.kill('interrupted'); await orchestrator._workers._ended_within(10)"


@pytest.mark.parametrize(("end", "code"), [(KILL, -signal.SIGKILL), (CTRL_C_TWICE, 3)])
def test_a_run_that_ends_before_its_index_is_joined_is_not_over(
    muniment: Callable[..., Any], tmp_path: Path, end: str, code: int
) -> None:
    with GatedSite({"/": "<a href=/a>a</a>", "/a": "a"}) as site:
        crawl = ["crawl", site.url, "-o", str(tmp_path / "out"), "--quiet"]
        hastily = ENDED_BEFORE_THE_JOIN.format(end)
        assert subprocess.run([sys.executable, "-c", hastily, *crawl], timeout=60, check=False).returncode == code
        before = list(site.requests)
        assert muniment(*crawl).code == 0
        assert site.requests == before
        rows = pq.read_table(tmp_path / "out" / "captures.parquet").to_pylist()
        assert {row["url"] for row in rows} >= {site.url, site.url + "a"}
        assert not (tmp_path / "out" / "parts").exists()
        assert "nothing to do" in muniment(*crawl[:-1]).stderr
