"""The benchmark's own promises, on a small site."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.nginx import free_port

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.mark.parametrize("tool", ["wget", "muniment"])
def test_benchmark_captures_every_file_of_a_small_site(tool: str, tmp_path: Path) -> None:
    command = [sys.executable, BENCHMARKS / "crawl.py", "--pages", "60", "--rounds", "1", "--tools", tool]
    command += ["--work", tmp_path, "--site", tmp_path / "site", "--port", str(free_port())]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert f"| 1 | {tool} |" in done.stdout
    assert sorted(path.name for path in tmp_path.iterdir()) == ["site"]


def test_what_a_change_costs_is_told_for_a_pair(tmp_path: Path) -> None:
    sources = BENCHMARKS.parent / "src"
    command = [sys.executable, BENCHMARKS / "crawl.py", "--pages", "60", "--rounds", "1", "--tools", "before,muniment"]
    command += ["--before", sources, "--work", tmp_path, "--port", str(free_port())]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert "CPU time over that of before, median of 1 pairs: **" in done.stdout


def test_a_list_is_fetched_whole_by_each_program_that_can_be_had(tmp_path: Path) -> None:
    command = [sys.executable, BENCHMARKS / "fetch.py", "--files", "25", "--copies", "2", "--rounds", "1"]
    command += ["--tools", "muniment,bare,wget,ami", "--work", tmp_path, "--corpus", tmp_path / "corpus"]
    # Without Go one of them cannot be had: it is named, and the others are measured.
    path = {"PATH": str(folder_without_go(tmp_path))}
    done = subprocess.run(command, env=os.environ | path, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert "50 URLs, " in done.stdout
    assert "| muniment " in done.stdout
    assert "| bare.py, one process " in done.stdout
    assert "| GNU Wget " in done.stdout
    assert done.stdout.rstrip().endswith("left out: ami: there is no Go on this machine")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["corpus", "programs"]


def folder_without_go(tmp_path: Path) -> Path:
    """The few programs that the benchmark needs."""
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ("env", "wget", "taskset", "nginx", "setpriv"):
        found = shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin")
        assert found is not None
        (programs / name).symlink_to(found)
    return programs


def test_site_is_the_same_every_time(tmp_path: Path) -> None:
    for name in ("a", "b"):
        command = [sys.executable, BENCHMARKS / "make_site.py", tmp_path / name, "--pages", "40"]
        subprocess.run(command, check=True, capture_output=True, timeout=60)
    files = sorted(path for path in (tmp_path / "a").rglob("*") if path.is_file())
    assert len(files) == 40 + 2 + 2 + 2
    assert all(path.read_bytes() == (tmp_path / "b" / path.relative_to(tmp_path / "a")).read_bytes() for path in files)


def test_hooks_are_compared_with_a_plain_loop(tmp_path: Path) -> None:
    command = [sys.executable, BENCHMARKS / "hooks.py", "--pages", "5", "--rounds", "1", "--work", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert "times as long" in done.stdout
    assert list(tmp_path.iterdir()) == []
