"""A worker that stands still, here by SIGSTOP, is replaced, and its pages are taken by others.

It is not when its orchestrator was the one that stood still, and could not hear it.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.support.gated_site import Answer, GatedSite

from processes import children

SHORT = """
from functools import partial
from muniment.crawl.orchestrator import workers
from muniment.crawl.orchestrator import loop as orchestrator
orchestrator.Workers = partial(workers.Workers, silence_s=3.0)
from muniment.cli import main
main()
"""
PATHS = [f"/p{number}" for number in range(60)]


def _events(out: Path) -> list[dict[str, Any]]:
    path = out / "crawl.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def _wait_for(true: Callable[[], object], what: str) -> None:
    end = time.monotonic() + 30
    while not true():
        assert time.monotonic() < end, what
        time.sleep(0.02)


@pytest.mark.parametrize("stands_still", ["the worker", "the worker for a moment", "the orchestrator"])
def test_a_worker_that_stands_still_too_long_is_replaced(
    muniment: Callable[..., Any], tmp_path: Path, stands_still: str
) -> None:
    out = tmp_path / "out"
    links = "".join(f"<a href='{path}'>x</a>" for path in PATHS)
    with GatedSite({"/": links, **dict.fromkeys(PATHS, Answer("a page", after=0.1))}) as site:
        crawl = ["crawl", site.url, "-o", str(out), "--no-robots", "--no-sitemaps", "--workers", "1", "--quiet"]
        with subprocess.Popen([sys.executable, "-c", SHORT, *crawl], stderr=subprocess.PIPE, text=True) as process:
            try:
                _wait_for(lambda: len(site.times) > 10, "some pages")
                [worker] = children(process.pid, "worker")
                stopped = psutil.Process(process.pid) if stands_still == "the orchestrator" else worker
                stopped.suspend()
                if stands_still != "the worker":
                    time.sleep(1 if stopped is worker else 4)
                    stopped.resume()
                _, complaints = process.communicate(timeout=60)
            finally:
                process.kill()
        assert process.returncode == 0, complaints
        assert set(site.counts()) == {"/", *PATHS}
    workers = [(event["number"], event["state"]) for event in _events(out) if event["event"] == "worker"]
    if stands_still == "the worker":
        assert "worker 0 sent nothing for 3 s and is replaced" in complaints
        assert workers == [(0, "started"), (0, "lost"), (1, "started"), (1, "ended")]
    else:
        assert workers == [(0, "started"), (0, "ended")]
    assert {event["url"] for event in _events(out) if event["event"] == "capture"} == {
        site.url.rstrip("/") + path for path in ("/", *PATHS)
    }
    assert muniment("check", out).code == 0
