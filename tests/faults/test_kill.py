"""`kill -9` of any process at random moments: nothing is lost, nothing is wrong, and little is done twice."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import time
from bisect import bisect_left
from dataclasses import dataclass
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import psutil
import pyarrow.parquet as pq
import pytest
from tests.support.maze import Maze

ROUNDS = int(os.environ.get("MUNIMENT_KILLS", "20"))
SEED = int(os.environ.get("MUNIMENT_KILL_SEED", "1"))
PER_KILL = 24
"""Requests that one kill may make the crawl repeat at `--per-host 8`: three for each permit."""
LINES = 4000
PROBE = "gone"
"""What the test itself asks the server for."""
KINDS = ("orchestrator", "worker", "all")
"""Who is killed."""
BESIDE = {"robots", "sitemap"}
"""What is asked for beside the maze's own pages."""


@dataclass(frozen=True)
class Kill:
    """One interruption."""

    who: str
    over: float
    """Unix seconds at which the killed were gone and all that they had asked for was in the server's log."""


def _kill(orchestrator: subprocess.Popen[str], who: str, maze: Maze, chance: random.Random) -> list[Kill]:
    me = psutil.Process(orchestrator.pid)
    killed = []
    try:
        children = me.children()
        workers = [child for child in children if child.cmdline()[3:4] == ["worker"]]
        lone = [chance.choice(workers)] if who == "worker" and workers else []
        for victim in lone if who == "worker" else [me] if who == "orchestrator" else [me, *workers]:
            victim.send_signal(signal.SIGKILL)
            killed.append(victim)
    except psutil.NoSuchProcess:
        pass
    if not killed:
        return []
    _wait_until_gone(killed if who == "worker" else [me, *children])
    # the server takes up what came first before this, and so it has noted that
    with contextlib.suppress(HTTPError):
        urlopen(f"{maze.server.url}{PROBE}", timeout=30).close()
    return [Kill(who, time.time())]


def _wait_until_gone(processes: list[psutil.Process]) -> None:
    end = time.monotonic() + 30
    while any(map(_lives, processes)):
        assert time.monotonic() < end, "what was killed lives on"
        time.sleep(0.001)


def _lives(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _work_with_kills(
    muniment, command: list[str], maze: Maze, out: Path, chance: random.Random, kills: int
) -> list[Kill]:
    """Give a command until it comes to its end through so many kills, of every kind; returns those that happened."""
    kinds = [KINDS[number % len(KINDS)] for number in range(kills)]
    chance.shuffle(kinds)
    done: list[Kill] = []
    for _ in range(200):
        process = muniment.start(*command, "-o", out, "--per-host", 8, "--workers", 2, "--quiet")
        while len(done) < kills and _wait_for_progress(process, maze, chance.randrange(1, 50)):
            time.sleep(chance.uniform(0, 0.03))
            done += _kill(process, kinds[len(done)], maze, chance)
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


def _repeats(maze: Maze, kills: list[Kill]) -> list[int]:
    """How many requests each kill made the crawl repeat: what is asked for twice was lost by the first in between."""
    moments = [kill.over for kill in kills]
    repeats = [0] * len(kills)
    asked: dict[str, float] = {}
    for request in maze.server.requests():
        if request.uri in {"/robots.txt", f"/{PROBE}"}:
            continue
        if (before := asked.get(request.uri)) is not None:
            by = bisect_left(moments, before)
            assert by < bisect_left(moments, request.ended_at), f"{request.uri} was asked for twice without a kill"
            repeats[by] += 1
        asked[request.uri] = request.ended_at
    return repeats


def _check_repeats(maze: Maze, kills: list[Kill], which: str) -> None:
    repeats = _repeats(maze, kills)
    told = ", ".join(f"{kill.who} {repeated}" for kill, repeated in zip(kills, repeats, strict=True))
    print(f"requests repeated by each kill: {told}")
    assert len(kills) == 5, "it was over before it could be killed five times"
    assert {kill.who for kill in kills} == set(KINDS)
    assert max(repeats) <= PER_KILL, f"requests repeated by each kill: {told} (seed {SEED}, {which})"


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
    _check_repeats(maze, kills, f"crawl {crawl}")


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
    _check_repeats(maze, kills, f"fetch {fetch}")
