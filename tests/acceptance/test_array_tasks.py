"""`fetch --shard auto`, by the recipes of the documentation: an Indexed Job of Kubernetes and an array of Slurm."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from crawled import complaint
from tests.support.gated_site import GatedSite
from tests.support.nginx import Nginx
from tests.support.postgres import Postgres
from warc_reading import captures

DOCS = (Path(__file__).parents[2] / "docs" / "fetch.md").read_text()
TASKS = 3
KUBERNETES, SLURM = "JOB_COMPLETION_INDEX", "SLURM_ARRAY_TASK_ID"


def recipe(kind: str, mark: str) -> str:
    (found,) = [text for text in re.findall(rf"```{kind}\n(.*?)```", DOCS, re.DOTALL) if mark in text]
    return found.replace("--shards 8", f"--shards {TASKS}")


def in_kubernetes() -> str:
    manifest = recipe("yaml", "completionMode: Indexed")
    assert "completions: 8" in manifest
    assert "values: [2, 4]" in manifest
    (line,) = re.findall(r"^ +args:\n +- (.+)$", manifest, re.MULTILINE)
    assert "command: [/bin/sh, -c]" in manifest
    return line


def in_slurm() -> str:
    script = recipe("bash", "#SBATCH")
    assert "#SBATCH --array=0-7" in script
    return script


@pytest.fixture
def site(tmp_path: Path, nginx: Callable[..., Nginx]) -> Nginx:
    root = tmp_path / "site"
    root.mkdir()
    for number in range(30):
        (root / f"{number}.html").write_text(f"page {number}")
    found = nginx(root)
    (tmp_path / "urls.txt").write_text("".join(f"{found.url}{number}.html\n" for number in range(30)))
    return found


def run(script: str, tmp_path: Path, **variables: str) -> subprocess.Popen[str]:
    """A task: the shell of the recipe, in whose path `muniment` is the one that is tested."""
    programs = tmp_path / "bin"
    programs.mkdir(exist_ok=True)
    program = programs / "muniment"
    if not program.exists():  # a child that has it open for writing would make it busy
        program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m muniment "$@"\n')
        program.chmod(0o755)
    given = {"PATH": f"{programs}:{os.environ['PATH']}", "ARCHIVE": str(tmp_path), "LIST": str(tmp_path / "urls.txt")}
    return subprocess.Popen(
        ["/bin/sh", "-c", script],
        env={**os.environ, **given, **variables},
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
    )


def wanted(site: Nginx) -> list[str]:
    return sorted(f"{site.url}{number}.html" for number in range(30))


def found(tmp_path: Path) -> list[str]:
    return sorted(row["url"] for task in range(TASKS) for row in captures(tmp_path / str(task)))


def test_the_tasks_of_an_indexed_job_fetch_the_list_once(site: Nginx, tmp_path: Path, postgres: Postgres) -> None:
    tracker = postgres.create("indexed_job")
    tasks = [run(in_kubernetes(), tmp_path, TRACKER=tracker, **{KUBERNETES: str(n)}) for n in range(TASKS)]
    assert [(task.communicate()[1], task.returncode) for task in tasks] == [("", 0)] * TASKS
    assert found(tmp_path) == wanted(site)


def test_the_tasks_of_an_array_fetch_the_list_once(site: Nginx, tmp_path: Path) -> None:
    tasks = [run(in_slurm(), tmp_path, **{SLURM: str(n)}) for n in range(TASKS)]
    assert [(task.communicate()[1], task.returncode) for task in tasks] == [("", 0)] * TASKS
    assert found(tmp_path) == wanted(site)


def test_a_task_that_is_stopped_goes_on_as_one_of_a_smaller_array(tmp_path: Path) -> None:
    """Slurm ends it by SIGTERM; `sbatch --array=1` runs it again, with a count of 1."""
    pages = {f"/{number}.html": f"page {number}" for number in range(20)}
    with GatedSite(pages, held=pages) as site:
        (tmp_path / "urls.txt").write_text("".join(f"{site.url}{number}.html\n" for number in range(20)))
        task = run(in_slurm(), tmp_path, SLURM_ARRAY_TASK_ID="1", SLURM_ARRAY_TASK_COUNT="3")
        end = time.monotonic() + 60
        while not site.requests:
            assert time.monotonic() < end
            time.sleep(0.05)
        task.send_signal(signal.SIGTERM)
        assert task.wait(60) == 3
        task.communicate()
        site.release()
        again = {"SLURM_ARRAY_TASK_COUNT": "1", "SLURM_ARRAY_TASK_MIN": "1", "SLURM_ARRAY_TASK_MAX": "1"}
        task = run(in_slurm(), tmp_path, SLURM_ARRAY_TASK_ID="1", **again)
        assert task.communicate()[1] == ""
        assert task.returncode == 0
        assert 0 < len(captures(tmp_path / "1")) < 20


COUNTED: dict[str, Mapping[str, str]] = {
    "job": {KUBERNETES: "1", "JOB_COMPLETIONS": "3"},
    "array": {SLURM: "1", "SLURM_ARRAY_TASK_COUNT": "3", "SLURM_ARRAY_TASK_MIN": "0", "SLURM_ARRAY_TASK_MAX": "2"},
}
UNCOUNTED: dict[str, tuple[Mapping[str, str], str]] = {
    "nowhere": ({}, "neither JOB_COMPLETION_INDEX nor SLURM_ARRAY_TASK_ID is set"),
    "no count": ({KUBERNETES: "1"}, "give --shards N"),
    "a part of an array": (
        {SLURM: "5", "SLURM_ARRAY_TASK_COUNT": "1", "SLURM_ARRAY_TASK_MIN": "5", "SLURM_ARRAY_TASK_MAX": "5"},
        "give --shards N",
    ),
    "an array from 1": (
        {SLURM: "1", "SLURM_ARRAY_TASK_COUNT": "3", "SLURM_ARRAY_TASK_MIN": "1", "SLURM_ARRAY_TASK_MAX": "3"},
        "give --shards N",
    ),
    "an array with gaps": (
        {SLURM: "0", "SLURM_ARRAY_TASK_COUNT": "3", "SLURM_ARRAY_TASK_MIN": "0", "SLURM_ARRAY_TASK_MAX": "4"},
        "give --shards N",
    ),
    "no number": ({SLURM: "x"}, "SLURM_ARRAY_TASK_ID: 'x' is not a number"),
    "too high": ({KUBERNETES: "3", "JOB_COMPLETIONS": "3"}, "there is no --shard 3 of --shards 3"),
}


@pytest.mark.parametrize("name", COUNTED)
def test_the_count_is_that_of_the_environment(
    muniment: Any, site: Nginx, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    for variable, value in COUNTED[name].items():
        monkeypatch.setenv(variable, value)
    urls = str(tmp_path / "urls.txt")
    assert muniment("fetch", urls, "-o", "auto", "--shard", "auto", "--quiet").code == 0
    assert muniment("fetch", urls, "-o", "given", "--shard", 1, "--shards", 3, "--quiet").code == 0
    auto, given = ({row["url"] for row in captures(tmp_path / out)} for out in ("auto", "given"))
    assert auto == given
    assert 0 < len(auto) < 30


@pytest.mark.parametrize("name", UNCOUNTED)
def test_a_count_that_is_not_certain_is_asked_for(
    muniment: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    variables, text = UNCOUNTED[name]
    for variable, value in variables.items():
        monkeypatch.setenv(variable, value)
    (tmp_path / "urls.txt").write_text("http://127.0.0.1:9/\n")
    assert text in complaint(muniment("fetch", "urls.txt", "-o", "out", "--shard", "auto"))
    assert not (tmp_path / "out").exists()
