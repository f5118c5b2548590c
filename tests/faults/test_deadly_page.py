"""A page that ends its worker is set aside after a few tries; lost workers leave nothing behind in the orchestrator."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
from broken_machine import PACE, PATHS, a_site, events, is_whole, wait_for
from tests.support.gated_site import Answer

from processes import children


@pytest.fixture
def launch() -> type[subprocess.Popen[str]]:
    """As users start it: this is about what a process has."""
    return subprocess.Popen


def test_a_page_that_kills_its_worker_again_and_again_is_given_up(muniment: Callable[..., Any], tmp_path: Path) -> None:
    out = tmp_path / "out"
    with a_site() as site:
        process = None

        def deadly(_: object) -> Answer:
            # as the kernel does when memory runs out
            for worker in children(process.pid, "worker"):
                worker.kill()
            return Answer("too late")

        site.pages["/p7"] = deadly
        process = muniment.start("crawl", site.url, "-o", out, *PACE, "--quiet")
        _, stderr = process.communicate(timeout=120)
        assert (process.returncode, stderr) == (0, "")
        assert 3 <= site.counts()["/p7"] <= 4
        [failed] = events(out, "fail")
        assert failed["reason"] == "limit: 4 workers died of it (the last: killed by signal 9 (SIGKILL))"
        is_whole(muniment, out, site, [path for path in PATHS if path != "/p7"])
        assert "failed" in muniment("why", f"{site.url}p7", "-o", out).stdout


def test_lost_workers_leave_no_descriptor_and_no_memory_behind(muniment: Callable[..., Any], tmp_path: Path) -> None:
    out = tmp_path / "out"
    with a_site(after=0.4) as site:
        process = muniment.start("crawl", site.url, "-o", out, *PACE, "--quiet")
        orchestrator = psutil.Process(process.pid)
        sizes = []
        for lost in range(5):
            finished = len(events(out, "capture"))
            wait_for(lambda: len(events(out, "capture")) > finished + 1, "some pages")  # noqa: B023
            sizes.append((orchestrator.num_fds(), orchestrator.memory_info().rss))
            [worker] = children(process.pid, "worker")
            worker.kill()
            wait_for(lambda: len(events(out, "worker")) >= 2 * lost + 3, "another worker")  # noqa: B023
        _, stderr = process.communicate(timeout=60)
        assert (process.returncode, stderr) == (0, "")
        (first, small), (last, large) = sizes[0], sizes[-1]
        # a process that walks a file beside the crawl takes three; each of the four lost since would take one for good
        assert last <= first + 3, sizes
        assert large - small < 8 << 20, sizes
        # a page that was in flight at three of the kills was given up
        lost_pages = {event["url"]: event["reason"] for event in events(out, "fail")}
        assert all(" workers died of it (the last: killed" in reason for reason in lost_pages.values()), lost_pages
        is_whole(muniment, out, site, [path for path in PATHS if site.url.rstrip("/") + path not in lost_pages])


def test_workers_that_die_at_once_are_not_replaced_for_ever(muniment: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "broken").mkdir()
    dies = "import os, sys\nif sys.orig_argv[-1] == 'worker': os._exit(7)\n"
    (tmp_path / "broken" / "sitecustomize.py").write_text(dies)
    broken = f"{tmp_path / 'broken'}:{os.environ.get('PYTHONPATH', '')}"
    with a_site() as site:
        command = ("crawl", site.url, "-o", tmp_path / "out", *PACE, "--quiet")
        ended = muniment(*command, PYTHONPATH=broken)
        assert (ended.code, site.requests) == (1, [])
        [line] = ended.stderr.splitlines()
        assert "5 workers in a row died at once (the last: exit 7)" in line
        assert muniment(*command).code == 0
        is_whole(muniment, tmp_path / "out", site)
