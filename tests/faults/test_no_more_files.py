"""A process that may open no more files while a crawl runs: pages go back untried, and nothing is lost."""

from __future__ import annotations

import resource
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from broken_machine import PACE, PATHS, a_site, events, is_whole, wait_for
from tests.support.gated_site import Answer, GatedSite

from processes import children

ONE_EACH = (("Content-Type", "text/html"), ("Connection", "close"))
"""Every request needs a connection of its own, and so a descriptor."""


@pytest.fixture
def launch() -> type[subprocess.Popen[str]]:
    """As users start it: this is about what a process has."""
    return subprocess.Popen


def a_site_without_kept_connections() -> GatedSite:
    site = a_site()
    site.pages.update({path: Answer(path * 50, headers=ONE_EACH, after=0.1) for path in PATHS})
    site.pages["/"] = Answer(str(site.pages["/"]), headers=ONE_EACH)
    return site


@contextmanager
def no_descriptor_for(pid: int) -> Iterator[None]:
    """What is open stays open, and nothing more can be, while the block lasts."""
    soft, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (3, hard))
    yield
    with suppress(ProcessLookupError):  # it has ended over it
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (soft, hard))


def test_pages_that_a_worker_has_no_descriptor_for_go_back_untried(
    muniment: Callable[..., Any], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    with a_site_without_kept_connections() as site:
        large = Answer(bytes(3 << 20), headers=ONE_EACH)
        site.pages.update(dict.fromkeys(PATHS[-3:], large))  # these take a temporary file as well
        process = muniment.start("crawl", site.url, "-o", out, *PACE, "--tries", 1, "--quiet")
        wait_for(lambda: len(events(out, "capture")) > 5, "some pages")
        [worker] = children(process.pid, "worker")
        with no_descriptor_for(worker.pid):
            time.sleep(0.5)  # what was under way has landed
            before = len(site.requests)
            time.sleep(1.5)
            assert len(site.requests) == before < len(PATHS), "the limit is felt"
        _, stderr = process.communicate(timeout=60)
        assert (process.returncode, stderr) == (0, "")
        is_whole(muniment, out, site)
    assert events(out, "fail") == []
    assert [row["error"] for row in pq.read_table(out / "captures.parquet").to_pylist() if row["error"]] == []


def test_a_run_that_cannot_start_a_worker_for_want_of_descriptors_ends_resumable(
    muniment: Callable[..., Any], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    with a_site(after=0.1) as site:
        command = ("crawl", site.url, "-o", out, *PACE, "--quiet")
        process = muniment.start(*command)
        wait_for(lambda: len(events(out, "capture")) > 5, "some pages")
        [worker] = children(process.pid, "worker")
        with no_descriptor_for(process.pid):
            worker.kill()
            _, stderr = process.communicate(timeout=60)
        assert process.returncode == 1, stderr
        assert "Traceback" not in stderr, stderr
        [line] = [line for line in stderr.splitlines() if line.startswith("muniment: ")]
        assert "Too many open files" in line
        assert "raise the limit (ulimit -n), then give the same command again" in line
        captured = {event["url"] for event in events(out, "capture")}
        done = muniment(*command)
        assert (done.code, done.stderr) == (0, "")
        is_whole(muniment, out, site)
        assert captured <= {event["url"] for event in events(out, "capture")}
