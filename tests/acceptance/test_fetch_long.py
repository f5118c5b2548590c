"""A long list: fetched while it is read, in flat memory."""

from __future__ import annotations

import contextlib
import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
from crawled import wait_until
from tests.support.nginx import Nginx

pytestmark = pytest.mark.long

LINES = 200_000
ENOUGH = 8_000
"""Requests after which memory has had its time to grow; on a busy machine the time of the test ends before."""
MOST_RSS = 256 << 20
"""All processes together while it runs; a third of it is the interpreter with what it imports, thrice."""


@pytest.fixture
def launch() -> type[subprocess.Popen[str]]:
    """Each command by itself: a fork shares memory with others."""
    return subprocess.Popen


def test_two_hundred_thousand_lines(muniment: Any, nginx: Callable[..., Nginx], tmp_path: Path) -> None:
    root = tmp_path / "site"
    root.mkdir()
    (root / "x").write_text("x" * 200)
    server = nginx(root)
    (tmp_path / "list.txt").write_text("".join(f"{server.url}x?{number}\n" for number in range(LINES)))
    begun = time.monotonic()
    process = muniment.start("fetch", "list.txt", "-o", "out", "--workers", 2, "--quiet")
    wait_until(server.requests, "the first request", 20)
    first = time.monotonic() - begun
    everything = psutil.Process(process.pid)
    most = 0
    end = time.monotonic() + 25
    while process.poll() is None and time.monotonic() < end and len(server.requests()) < ENOUGH:
        with contextlib.suppress(psutil.Error):
            most = max(most, sum(one.memory_info().rss for one in [everything, *everything.children(recursive=True)]))
        time.sleep(0.3)
    process.terminate()
    assert process.wait(60) in (0, 3)
    asked = len(server.requests())
    print(f"first request after {first:.1f} s, {most >> 20} MiB, {asked} requests")
    assert most < MOST_RSS
    done = [json.loads(line) for line in (tmp_path / "out" / "crawl.jsonl").read_text().splitlines()]
    captured = {event["url"] for event in done if event["event"] == "capture"}
    assert len(captured) > 2000
    assert muniment("check", "out").code == 0
