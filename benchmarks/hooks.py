"""Runs a hook that does nothing over pages, against a plain loop over the same script and URLs, by turns.

The crawl of the pages is no part of it: `muniment hooks run --again` runs over what was captured once. Prints the times
and how many times as long it took; progress goes to standard error.

Usage: python benchmarks/hooks.py [--pages N] [--jobs N] [--rounds N] [--work DIR]
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.support.gated_site import GatedSite

MUNIMENT = [sys.executable, "-m", "muniment"]


def capture(out: Path, pages: int) -> list[str]:
    """Crawl a site of so many pages; their URLs."""
    names = [f"/p{number}" for number in range(pages - 1)]
    links = "".join(f"<a href={name}>{name}</a>" for name in names)
    with GatedSite({"/": links, **{name: f"page {name}" for name in names}}) as site:
        alone = "--no-robots", "--no-sitemaps", "--quiet"
        subprocess.run([*MUNIMENT, "crawl", site.url, "-o", out, "--mode", "fast", *alone], check=True)
        return [site.url.rstrip("/") + name for name in ["/", *names]]


def plain_loop(script: Path, urls: list[str], jobs: int) -> float:
    """Seconds of a loop that starts the script for each URL, so many at a time."""
    begun = time.perf_counter()
    with ThreadPoolExecutor(jobs) as pool:
        for done in pool.map(lambda url: subprocess.run([script, f"--url={url}"], check=False), urls):
            assert done.returncode == 0
    return time.perf_counter() - begun


def hooks_run(out: Path, plugins: Path, jobs: int, pages: int) -> float:
    """Seconds of running the script as a hook of each page."""
    command = [*MUNIMENT, "hooks", "run", "-o", out, "--hooks", plugins, "--hook-jobs", str(jobs), "--again"]
    # a store of its own: that of the user grows, and others write to it
    environment = {**os.environ, "MUNIMENT_PROCESSES": str(out.parent / "kept")}
    begun = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    seconds = time.perf_counter() - begun
    assert f"{pages:,} noresults" in done.stdout, done.stdout
    return seconds


def main() -> int:
    """Take turns, and print the medians."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--pages", type=int, default=200)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--work", type=Path)
    given = parser.parse_args()
    work = Path(tempfile.mkdtemp(prefix="bench-hooks-", dir=given.work))
    try:
        script = work / "plugins" / "nothing" / "on_Snapshot__50_nothing.sh"
        script.parent.mkdir(parents=True)
        script.write_text("#!/bin/sh\nexit 0\n")
        script.chmod(0o755)
        urls = capture(work / "out", given.pages)
        loops, runs = [], []
        for number in range(given.rounds):
            loops.append(plain_loop(script, urls, given.jobs))
            runs.append(hooks_run(work / "out", work / "plugins", given.jobs, given.pages))
            print(f"round {number + 1}: loop {loops[-1]:.2f} s, hooks {runs[-1]:.2f} s", file=sys.stderr)
        loop, run = statistics.median(loops), statistics.median(runs)
        print(f"loop {loop:.2f} s, hooks {run:.2f} s: **{run / loop:.1f}** times as long")
    finally:
        shutil.rmtree(work)
    return 0


if __name__ == "__main__":
    sys.exit(main())
