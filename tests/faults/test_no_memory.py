"""A limit of memory: a worker that hits it is replaced, an orchestrator that does ends the run, and nothing is lost."""

from __future__ import annotations

import os
import resource
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
from broken_machine import PACE, a_site, events, is_whole
from tests.support.gated_site import Answer

from processes import children

HTML = (("Content-Type", "text/html"),)


@pytest.fixture
def launch() -> type[subprocess.Popen[str]]:
    """As users start it: this is about what a process has."""
    return subprocess.Popen


def no_more_memory_for(pid: int, but: int = 0) -> None:
    """The process keeps the addresses that it has, and gets no others but so many."""
    most = psutil.Process(pid).memory_info().vms + but
    _, hard = resource.prlimit(pid, resource.RLIMIT_AS)
    resource.prlimit(pid, resource.RLIMIT_AS, (most, hard))


@pytest.mark.parametrize("but", [0, 8 << 20], ids=["while it receives", "while it looks for links"])
def test_a_worker_that_gets_no_more_memory_is_replaced(muniment: Callable[..., Any], tmp_path: Path, but: int) -> None:
    out = tmp_path / "out"
    with a_site(after=0.1) as site:
        process = None

        def large(_: object) -> Answer:
            if site.counts()["/p7"] == 1:
                [worker] = children(process.pid, "worker")
                no_more_memory_for(worker.pid, but)
            return Answer(b"<p>" + b"x" * (24 << 20), headers=HTML)

        site.pages["/p7"] = large
        process = muniment.start("crawl", site.url, "-o", out, *PACE, "--tries", 1, "--quiet")
        _, stderr = process.communicate(timeout=60)
        assert process.returncode == 0, stderr
        assert stderr.splitlines() == [
            "WARNING muniment.crawl.orchestrator.workers: worker 0 got no more memory and is replaced"
        ]
        assert [event["reason"] for event in events(out, "worker") if event["state"] == "lost"] == ["out of memory"]
        assert site.counts()["/p7"] == 2
        is_whole(muniment, out, site)
    assert events(out, "fail") == []


NO_MEMORY_ONCE = """
import os
from muniment.fetch.connection import Connection
received = Connection.data_received
def data_received(connection, data):
    if b"too much" in data and not os.path.exists(os.environ["FAILED"]):
        open(os.environ["FAILED"], "w").close()
        raise MemoryError
    received(connection, data)
Connection.data_received = data_received
"""


def test_nor_is_memory_missed_in_silence_by_what_the_event_loop_calls(
    muniment: Callable[..., Any], tmp_path: Path
) -> None:
    """What it calls has nobody to raise to: the page would fail, as if the server had closed the connection."""
    (tmp_path / "little").mkdir()
    (tmp_path / "little" / "sitecustomize.py").write_text(NO_MEMORY_ONCE)
    little = {"PYTHONPATH": f"{tmp_path / 'little'}:{os.environ.get('PYTHONPATH', '')}", "FAILED": f"{tmp_path}/failed"}
    out = tmp_path / "out"
    with a_site() as site:
        site.pages["/p7"] = "too much"
        done = muniment("crawl", site.url, "-o", out, *PACE, "--tries", 1, "--quiet", **little)
        assert done.code == 0, done.stderr
        assert done.stderr.splitlines() == [
            "WARNING muniment.crawl.orchestrator.workers: worker 0 got no more memory and is replaced"
        ]
        assert site.counts()["/p7"] == 2
        is_whole(muniment, out, site)
    assert events(out, "fail") == []


def test_an_orchestrator_that_gets_no_more_memory_ends_the_run(muniment: Callable[..., Any], tmp_path: Path) -> None:
    out = tmp_path / "out"
    links = "".join(f"<a href='http://elsewhere.example/{number}/{'x' * 2000}'>x</a>" for number in range(3_000))
    with a_site(after=0.1) as site:
        process = None

        def many_links(_: object) -> Answer:
            if site.counts()["/p7"] == 1:
                no_more_memory_for(process.pid)
            return Answer(links)

        site.pages["/p7"] = many_links
        command = ("crawl", site.url, "-o", out, *PACE, "--no-offsite-links", "--quiet")
        process = muniment.start(*command)
        _, stderr = process.communicate(timeout=60)
        assert process.returncode == 1, stderr
        [line] = stderr.splitlines()
        assert line.startswith("muniment: no more memory; give the same command again")
        captured = {event["url"] for event in events(out, "capture")}
        done = muniment(*command)
        assert (done.code, done.stderr) == (0, "")
        is_whole(muniment, out, site)
        assert captured <= {event["url"] for event in events(out, "capture")}
