"""Kills of renderers, browsers, workers and the orchestrator at random moments of a crawl that renders its pages.

`MUNIMENT_BROWSER_KILLS=50` makes fifty of them instead of eight.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pyarrow.parquet as pq
import pytest
from tests.support.script_site import ScriptSite, script_site

from forked import Forked

pytestmark = pytest.mark.long

KILLS = int(os.environ.get("MUNIMENT_BROWSER_KILLS", "8"))
SEED = int(os.environ.get("MUNIMENT_KILL_SEED", "1"))
PAGES = 12 + 3 * KILLS
KINDS = ("renderer", "browser", "worker", "orchestrator")
OPTIONS = ("--browser", "--tabs", "3", "--workers", "2", "--tries", "20", "--behaviors", "none")
WORDS = b"word " * 60


@pytest.fixture
def launch() -> type[subprocess.Popen[str]]:
    return Forked


@pytest.fixture
def site() -> Iterator[ScriptSite]:
    with script_site() as served:
        links = b"".join(b"<a href=/p%d.html>p</a>" % number for number in range(PAGES))
        served.files = {"/": ("text/html", links + WORDS), "/app.js": ("text/javascript", b"1")}
        served.files |= {"/own": ("text/plain", b"1"), "/late": ("text/plain", b"2")}
        for number in range(PAGES):
            asks = b"for (const [path, ms] of [['/own', 200], ['/late', 400]])"
            asks += b" setTimeout(() => fetch(path + '?%d'), ms)" % number
            served.files[f"/p{number}.html"] = ("text/html", b"<script src=/app.js></script><script>%b</script>" % asks)
        yield served


def urls_of(site: ScriptSite) -> set[str]:
    """All that an undisturbed crawl captures."""
    paths = ["/", "/app.js", *(f"{path}{n}" for path in ("/own?", "/late?") for n in range(PAGES))]
    return {site.base + path for path in (*paths, *(f"/p{n}.html" for n in range(PAGES)))}


def browsers(out: Path) -> list[psutil.Process]:
    """The browsers of this directory."""
    found = []
    for process in psutil.process_iter(["cmdline"]):
        words = process.info["cmdline"] or []
        mine = any(word.startswith(f"--user-data-dir={out}") for word in words)
        if mine and not any(word.startswith("--type=") for word in words):
            found.append(process)
    return found


def victims(kind: str, started: subprocess.Popen[str], out: Path) -> list[psutil.Process]:
    """The processes of a kind that live now."""
    try:
        me = psutil.Process(started.pid)
        if kind == "orchestrator":
            return [me]
        if kind == "worker":
            return [child for child in me.children() if child.cmdline()[3:4] == ["worker"]]
        if kind == "browser":
            return browsers(out)
        below = [child for browser in browsers(out) for child in browser.children(recursive=True)]
        return [child for child in below if "--type=renderer" in child.cmdline()]
    except psutil.Error:
        return []


def strike(kind: str, started: subprocess.Popen[str], out: Path, chance: random.Random) -> bool:
    """Kill one process of a kind; whether there was one."""
    found = victims(kind, started, out)
    if not found or started.poll() is not None:
        return False
    try:
        chance.choice(found).kill()
    except psutil.Error:
        return False
    return True


def left_of(place: Path) -> list[str]:
    """The processes whose command line names a place."""
    running = [(one, " ".join(one.info["cmdline"] or ())) for one in psutil.process_iter(["cmdline"])]
    return [f"{one.pid} {line[:200]}" for one, line in running if str(place) in line and one.pid != os.getpid()]


def test_a_crawl_outlives_the_deaths_of_all_that_renders(muniment: Any, site: ScriptSite, tmp_path: Path) -> None:
    muniment.patience = 300
    out, temporary, chance = tmp_path / "out", tmp_path / "temporary", random.Random(SEED)
    temporary.mkdir()
    command = ("crawl", f"{site.base}/", "-o", out, "--allow-private", "--no-sitemaps", *OPTIONS)
    environ = {"TMPDIR": str(temporary)}
    struck: Counter[str] = Counter()
    started = muniment.start(*command, **environ)
    end = time.monotonic() + 20 * KILLS + 120
    while struck.total() < KILLS and time.monotonic() < end:
        time.sleep(chance.uniform(0.3, 2.5))
        kind = KINDS[struck.total() % len(KINDS)]
        struck[kind] += strike(kind, started, out, chance)
        if started.poll() is not None:
            _, said = started.communicate()
            assert started.returncode in (0, -9), said
            if started.returncode == 0:
                break
            started = muniment.start(*command, **environ)
    _, said = started.communicate(timeout=300)
    if started.returncode == -9:  # by the last kill
        done = muniment(*command, **environ)
        assert done.code == 0, done.stderr
    else:
        assert started.returncode == 0, said
    assert struck.total() >= KILLS, f"the crawl was over after {struck}"
    assert min(struck[kind] for kind in KINDS) >= KILLS // 4, struck

    within = time.monotonic() + 5
    while left_of(out) and time.monotonic() < within:
        time.sleep(0.1)
    assert left_of(out) == []
    assert list(temporary.rglob("*")) == []
    assert not list(out.glob("parts/*"))
    captured = {row["url"] for row in pq.read_table(out / "captures.parquet").to_pylist() if row["status"] == 200}
    assert captured == urls_of(site)
    checked = muniment("check", out)
    assert checked.code == 0, checked.stdout
    events = [json.loads(line) for line in (out / "crawl.jsonl").read_text().splitlines()]
    gave_up = [one for one in events if one["event"] == "fail" and one.get("done")]
    assert gave_up == []
