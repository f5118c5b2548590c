"""Muniment without what Linux alone has: an imitation of macOS, made of Python itself (tests/without_linux).

Tests of processes, and some of whole runs and of kills, hold there as they are; they are run once more in it.
"""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.support.gated_site import GatedSite

from processes import children

pytestmark = pytest.mark.linux
ROOT = Path(__file__).resolve().parents[2]
WORLD = {"PYTHONPATH": str(ROOT / "tests" / "without_linux")}

AGAIN = {
    "processes": ["edges/procs"],
    "crawls, fetches and their trees": [
        "acceptance/test_process.py::test_a_crawl_is_one_unbroken_tree_and_can_be_ended",
        "acceptance/test_process.py::test_a_fetch_is_one_unbroken_tree",
        "acceptance/test_process.py::test_after_a_killed_crawl_nothing_is_left_and_its_rows_are_true",
        "acceptance/test_process.py::test_a_killed_worker_is_recorded_as_killed",
        "acceptance/test_process.py::test_what_is_told_of_a_finished_crawl",
    ],
    "changes": [
        "acceptance/test_changes.py::test_patterns_are_added_and_removed_while_the_crawl_runs",
        "acceptance/test_changes.py::test_a_change_is_not_lost_by_a_kill",
        "acceptance/test_changes.py::test_a_deep_directory_is_no_hindrance",
    ],
    "ends": [
        "acceptance/test_ending.py::test_a_signal_ends_a_crawl_cleanly_and_the_same_command_resumes",
        "acceptance/test_ending.py::test_a_second_ctrl_c_ends_at_once_and_the_same_command_resumes",
        "acceptance/test_ending.py::test_a_second_run_on_the_directory_is_refused_and_the_first_is_not_disturbed",
    ],
    "checks": [
        "acceptance/test_check.py::test_examples_of_the_document",
        "acceptance/test_check.py::test_lines_json_and_exit_code",
        "acceptance/test_check.py::test_done_pages_without_row_are_fetched_again",
        "acceptance/test_check.py::test_a_directory_that_a_run_holds_is_not_mended",
        "acceptance/test_check.py::test_ctrl_c_is_one_quiet_line",
    ],
    "kills": ["faults/test_kill.py", "faults/test_kill_at_the_end.py"],
}


def said(program: str, **environ: str) -> str:
    command = [sys.executable, "-c", program]
    return subprocess.run(command, env={**os.environ, **environ}, capture_output=True, text=True, check=True).stdout


def test_the_imitation_takes_effect() -> None:
    told = (
        "import muniment.procs.platform.system as means, muniment.lifetime as l; print(means.look.__module__, l._prctl)"
    )
    assert said(told, **WORLD) == "muniment.procs.platform.portable None\n"


@pytest.mark.parametrize("tests", AGAIN)
def test_what_holds_on_linux_holds_without_it(tests: str, tmp_path: Path) -> None:
    paths = [f"tests/{path}" for path in AGAIN[tests]]
    options = ["-m", "not linux", "-o", f"cache_dir={tmp_path}/cache", "--basetemp", f"{tmp_path}/t"]
    command = [sys.executable, "-m", "pytest", *options, *paths]
    environ = {**os.environ, **WORLD, "MUNIMENT_KILLS": "6"}
    done = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr[-2_000:]


def test_what_was_fetched_is_looked_at_and_mended(muniment: Callable[..., Any], kept: Path, tmp_path: Path) -> None:
    out, pages = tmp_path / "out", {f"/{number}": f"page {number}" for number in range(30)}
    with GatedSite(pages) as site:
        urls = [f"{site.url}{number}" for number in range(30)]
        (tmp_path / "list").write_text("\n".join(urls))
        assert muniment("fetch", tmp_path / "list", "-o", out, "--quiet", **WORLD).code == 0
    assert json.loads(muniment("inspect", out, "--json", **WORLD).stdout)["statuses"] == [[200, 30]]
    assert muniment("why", urls[7], "-o", out, **WORLD).code == 0
    assert muniment("check", out, **WORLD).code == 0
    (warc,) = out.glob("*.warc.gz")
    with warc.open("ab") as file:
        file.write(b"half a record")
    assert muniment("check", out, **WORLD).code == 1
    mended = muniment("check", out, "--repair", **WORLD)
    assert (mended.code, "cut off 13 bytes" in mended.stdout) == (0, True), mended
    listed = json.loads(muniment("process", "list", "--json", **WORLD).stdout)
    assert {(row["label"], row["exit_code"]) for row in listed} == {
        ("orchestrator", 0), ("fetcher", 0), ("index", 0), ("inspect", 0), ("why", 0), ("check", 0), ("check", 1)
    }  # fmt: skip
    assert all(row["max_rss"] > 10_000_000 and row["cpu_ms"] > 0 for row in listed)


def test_on_linux_nothing_of_psutil_is_loaded() -> None:
    loaded = "import sys, muniment.cli.crawl, muniment.app.run, muniment.cli.process, muniment.app.worker; "
    others = {"psutil", "muniment.procs.platform.portable", "muniment.procs.children.seeker"}
    told = loaded + f"print(sorted({others} & set(sys.modules)))"
    assert said(told) == "[]\n"


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MUNIMENT_PROCESSES", str(tmp_path / "kept"))
    return tmp_path / "kept"


def gone(processes: list[psutil.Process], seconds: float = 30) -> bool:
    end = time.monotonic() + seconds
    while any(one.is_running() and one.status() != psutil.STATUS_ZOMBIE for one in processes):
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


@pytest.mark.parametrize("stopped", [False, True], ids=["running", "stopped"])
def test_no_worker_outlives_a_killed_crawl(
    muniment: Callable[..., Any], kept: Path, tmp_path: Path, stopped: bool
) -> None:
    """A stopped one cannot see that its crawl has gone; it is killed by the sweep that a shell begins then."""
    with GatedSite({"/": "<a href=held>held</a>", "/held": "held"}, held=["/held"]) as site:
        crawl = muniment.start("crawl", site.url, "-o", tmp_path / "out", "--no-sitemaps", "--no-robots", **WORLD)
        site.wait_for("/held")
        workers = children(crawl.pid, "worker")
        assert workers
        if stopped:
            workers[0].send_signal(signal.SIGSTOP)
        crawl.kill()
        crawl.wait(10)
        assert gone(workers)
        site.release("/held")


def test_no_process_of_a_check_outlives_it(muniment: Callable[..., Any], tmp_path: Path) -> None:
    out = tmp_path / "plain"
    out.mkdir()
    member = gzip.compress(b"WARC/1.1\r\nContent-Length: 6000000\r\n\r\n" + bytes(6_000_000) + b"\r\n\r\n", 1)
    (out / "a.warc.gz").write_bytes(member * (20_000_000 // len(member)) * 8)
    check = muniment.start("check", out, **WORLD)
    end = time.monotonic() + 30
    while len(below := children(check.pid, "--multiprocessing-fork")) < 2 and time.monotonic() < end:
        time.sleep(0.02)
    assert len(below) >= 2, "several processes, and none of them a fork"
    check.kill()
    check.wait(10)
    assert gone(below)
