"""`kill -9` of any process at random moments: nothing is lost, nothing is wrong, and little is done twice."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path

import psutil
import pyarrow.parquet as pq
import pytest

from forked import Forked
from muniment.testing.maze import Maze

ROUNDS = int(os.environ.get("MUNIMENT_KILLS", "20"))
SEED = int(os.environ.get("MUNIMENT_KILL_SEED", "1"))
PER_KILL = 24
"""Pages that one kill may make the crawl repeat at `--per-host 8` (issue, design 2)."""
LINES = 4000
BESIDE = {"robots", "sitemap"}
"""What is asked for beside the maze's own pages."""


@pytest.fixture
def launch() -> type[subprocess.Popen[str]]:
    """What befalls a crawl here has nothing to do with how Python starts."""
    return Forked


def _victims(orchestrator: subprocess.Popen[str], who: str) -> list[psutil.Process]:
    me = psutil.Process(orchestrator.pid)
    workers = me.children()
    if who == "orchestrator":
        return [me]
    if who == "worker":
        return workers[:1]
    return [me, *workers]


def _kill(orchestrator: subprocess.Popen[str], who: str) -> int:
    killed = 0
    try:
        for victim in _victims(orchestrator, who):
            victim.send_signal(signal.SIGKILL)
            killed += 1
    except psutil.NoSuchProcess:
        pass
    return killed


def _work_with_kills(muniment, command: list[str], maze: Maze, out: Path, chance: random.Random, kills: int) -> int:
    """Give a command until it comes to its end through so many kills; returns how many happened."""
    done = 0
    for _ in range(200):
        process = muniment.start(*command, "-o", out, "--per-host", 8, "--workers", 2, "--quiet")
        while done < kills and _wait_for_progress(process, maze, chance.randrange(1, 80)):
            time.sleep(chance.uniform(0, 0.05))
            done += bool(_kill(process, chance.choice(["orchestrator", "worker", "all"])))
        _, stderr = process.communicate(timeout=60)
        if process.returncode == 0:
            return done
        assert process.returncode == -signal.SIGKILL, stderr
    pytest.fail("it did not come to an end")


def _wait_for_progress(process: subprocess.Popen[str], maze: Maze, pages: int) -> bool:
    """Wait until the server has answered so many more requests; False when the crawl ended before."""
    goal = len(maze.server.requests()) + pages
    while process.poll() is None:
        if len(maze.server.requests()) >= goal:
            return True
        time.sleep(0.005)
    return False


def _requests(maze: Maze) -> Counter[str]:
    return Counter(request.uri for request in maze.server.requests() if request.uri != "/robots.txt")


def _check_whole(muniment, out: Path, urls: frozenset[str]) -> None:
    """Every URL has a complete capture, the index equals the records, and nothing is left lying about."""
    rows = [row for row in pq.read_table(out / "captures.parquet").to_pylist() if row["found_as"] not in BESIDE]
    assert {row["url"] for row in rows} == urls
    assert {row["url"] for row in rows if not row["error"]} == urls
    checked = muniment("check", out)
    assert checked.code == 0, checked.stdout + checked.stderr
    assert not (out / "parts").exists()
    assert not list(out.glob("*.open"))
    assert sorted(p.name for p in out.glob("*.warc.gz")) == [
        f"muniment-{n:05d}.warc.gz" for n in range(len(list(out.glob("*.warc.gz"))))
    ]


@pytest.mark.parametrize("crawl", range(max(1, ROUNDS // 5)))
def test_kills_lose_nothing_and_repeat_little(muniment, maze: Maze, tmp_path: Path, crawl: int) -> None:
    chance = random.Random(SEED * 1000 + crawl)
    out = tmp_path / "out"
    kills = _work_with_kills(muniment, ["crawl", maze.start], maze, out, chance, 5)
    _check_whole(muniment, out, maze.urls)
    requests = _requests(maze)
    repeated = sum(requests.values()) - len(requests)
    print(f"{kills} kills, {repeated} requests repeated of {len(requests)}")
    assert kills == 5, "the crawl was over before it could be killed five times"
    assert repeated <= PER_KILL * kills, f"{repeated} requests repeated by {kills} kills (seed {SEED}, crawl {crawl})"


@pytest.mark.parametrize("fetch", range(max(1, ROUNDS // 10)))
def test_kills_of_a_fetch_lose_no_line(muniment, maze: Maze, tmp_path: Path, fetch: int) -> None:
    """The list is longer than what is read at once, so that some kills come while it is being read."""
    chance = random.Random(SEED * 1000 + 500 + fetch)
    out = tmp_path / "out"
    known = sorted(maze.urls)
    urls = [f"{url}?{number}" for number in range(1 + LINES // len(known)) for url in known][:LINES]
    lines = [json.dumps({"url": url, "n": number}) for number, url in enumerate(urls)]
    (tmp_path / "list.jsonl").write_text("\n".join([*lines, "bad", lines[7]]))
    kills = _work_with_kills(muniment, ["fetch", str(tmp_path / "list.jsonl")], maze, out, chance, 5)
    _check_whole(muniment, out, frozenset(urls))
    fields = {row["url"]: row["meta_json"] for row in pq.read_table(out / "captures.parquet").to_pylist()}
    assert fields == {url: f'{{"n":"{number}"}}' for number, url in enumerate(urls)}
    requests = _requests(maze)
    repeated = sum(requests.values()) - len(requests)
    print(f"{kills} kills, {repeated} requests repeated of {len(requests)}")
    assert kills == 5, "the fetch was over before it could be killed five times"
    assert repeated <= PER_KILL * kills, f"{repeated} requests repeated by {kills} kills (seed {SEED}, fetch {fetch})"
