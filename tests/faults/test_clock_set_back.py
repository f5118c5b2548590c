"""The clock is set back by an hour while a crawl runs: nothing waits for that hour, in the run or in the next one."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from broken_machine import PACE, PATHS, a_site, events, is_whole, wait_for
from tests.support.gated_site import Answer

HOUR_NS = 3_600_000_000_000
PUT_BACK = f"""
import os, time
real = time.time_ns
def time_ns():
    return real() - ({HOUR_NS} if os.path.exists(os.environ["SET_BACK"]) else 0)
time.time_ns = time_ns
time.time = lambda: time_ns() / 1e9
"""


def test_a_clock_that_is_set_back_holds_nothing_up(muniment: Callable[..., Any], tmp_path: Path) -> None:
    """The clock of all processes is that of the system less an hour, once a file is there."""
    (tmp_path / "clock").mkdir()
    (tmp_path / "clock" / "sitecustomize.py").write_text(PUT_BACK)
    moved = tmp_path / "moved"
    changed = {"PYTHONPATH": f"{tmp_path / 'clock'}:{os.environ.get('PYTHONPATH', '')}", "SET_BACK": str(moved)}
    out = tmp_path / "out"
    with a_site(after=0.1) as site:
        site.pages["/p0"] = [Answer("not now", 500), Answer("a page")]
        site.pages["/p1"] = [Answer("not now", 429, (("Retry-After", "2"),)), Answer("a page")]
        process = muniment.start("crawl", site.url, "-o", out, *PACE, "--quiet", **changed)
        wait_for(lambda: events(out, "pause"), "the wait that the host asks for")
        moved.touch()
        _, stderr = process.communicate(timeout=60)
        assert (process.returncode, stderr) == (0, "")
        assert site.counts()["/p0"] == site.counts()["/p1"] == 2
        is_whole(muniment, out, site)
    stamps = [event["ts"] for event in events(out, "start", "finish")]
    assert stamps[1] < stamps[0], "dates go by the system's clock"


def test_a_run_that_was_stopped_before_the_clock_was_set_back_resumes_at_once(
    muniment: Callable[..., Any], tmp_path: Path
) -> None:
    """A page waits for its next try when the run is killed; an hour back, that try would be an hour away."""
    (tmp_path / "clock").mkdir()
    (tmp_path / "clock" / "sitecustomize.py").write_text(PUT_BACK)
    moved = tmp_path / "moved"
    changed = {"PYTHONPATH": f"{tmp_path / 'clock'}:{os.environ.get('PYTHONPATH', '')}", "SET_BACK": str(moved)}
    out = tmp_path / "out"
    with a_site(after=0.05) as site:
        site.pages["/p0"] = [Answer("not now", 500), Answer("a page")]
        command = ("crawl", site.url, "-o", out, *PACE, "--quiet")
        process = muniment.start(*command, **changed)
        wait_for(lambda: any(event["status"] == 500 for event in events(out, "capture")), "the try that fails")
        process.kill()
        process.wait()
        moved.touch()
        done = muniment(*command, **changed)
        assert (done.code, done.stderr) == (0, "")
        is_whole(muniment, out, site, PATHS)
