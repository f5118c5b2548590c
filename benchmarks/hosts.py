"""Ten thousand hosts on loopback addresses: what the dead and the stalling ones cost the others, and the list's order.

Runs of the same pages by turns: a list of live hosts alone, clustered by host and shuffled; the clustered list with 5 %
dead and 5 % stalling hosts among them. Prints a Markdown table and three figures; stops when a live page is missing, a
live host was given up, or a dead one is not reported.

Usage: python benchmarks/hosts.py [--hosts 10000] [--rounds 3] [--timeout 20] [--work DIR] [--as-crawl]
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import duckdb
from measure import measure
from tests.support.many_hosts import DEAD, LIVE, ManyHosts

OPTIONS = ("--quiet", "--per-host", "8", "--inflight", "2000", "--connect-timeout", "5", "--workers", "2")
AS_CRAWL = ("--page-only", "--no-robots", "--no-sitemaps")
"""The list as start URLs of a crawl, as it was measured until 79f86ce."""


@dataclass(frozen=True)
class Run:
    """What one list took, in seconds from the launch."""

    name: str
    live_99: float
    live_last: float
    whole: float
    cpu: float
    """CPU seconds of all processes: what counts on a machine that others use."""
    given_up: frozenset[str]


def take(name: str, urls: list[str], timeout: int, work: Path, *, as_crawl: bool) -> Run:
    """Fetch a list in a directory of its own, which is removed; stops the benchmark when a live page is missing."""
    out = Path(tempfile.mkdtemp(prefix="bench-hosts-", dir=work))
    try:
        (out / "urls.txt").write_text("\n".join(urls))
        how = ["crawl", *AS_CRAWL, "-i"] if as_crawl else ["fetch"]
        command = [sys.executable, "-m", "muniment", *how, str(out / "urls.txt"), "-o", str(out / "out")]
        began = time.time()
        measured = measure([*command, *OPTIONS, "--timeout", str(timeout)], out, os.sched_getaffinity(0))
        if measured.code:
            sys.exit(f"{name}: exit {measured.code}\n{(out / 'stderr').read_text()[-2000:]}")
        index = duckdb.read_parquet(str(out / "out" / "captures.parquet"))  # noqa: F841 (named in the query)
        query = "SELECT url, max(fetched_at) FROM index WHERE status = 200 AND error = '' GROUP BY url"
        times = {url: at / 1000 - began for url, at in duckdb.sql(query).fetchall()}
        live = [url for url in urls if f"//{LIVE}" in url]
        if missing := set(live) - set(times):
            sys.exit(f"{name}: {len(missing)} live pages are missing, such as {min(missing)}")
        ended = sorted(times[url] for url in live)
        dead = given_up(out / "out" / "crawl.jsonl")
        run = Run(name, ended[len(ended) * 99 // 100], ended[-1], measured.seconds, measured.cpu_seconds, dead)
    finally:
        shutil.rmtree(out)
    print(f"{name}: p99 {run.live_99:.1f} s, whole {run.whole:.1f} s, CPU {run.cpu:.1f} s", file=sys.stderr)
    return run


def given_up(log: Path) -> frozenset[str]:
    """The hosts that the event log reports as dead."""
    events = map(json.loads, log.read_text().splitlines())
    return frozenset(e["host"] for e in events if e["event"] == "pause" and "dead-host" in e.get("reason", ""))


def check(run: Run, dead: set[str]) -> None:
    """No live host given up, every dead one reported."""
    if run.given_up != dead:
        wrong, missed = run.given_up - dead, dead - run.given_up
        sys.exit(f"{run.name}: {len(wrong)} hosts given up that live {sorted(wrong)[:3]}, {len(missed)} not reported")


def main() -> None:
    parser = argparse.ArgumentParser(description="many hosts, some of them dead")
    parser.add_argument("--hosts", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--timeout", type=int, default=20, help="as --timeout of the runs with stalling hosts")
    parser.add_argument("--as-crawl", action="store_true", help="as start URLs of a crawl that follows nothing")
    parser.add_argument("--work", type=Path, default=Path(tempfile.gettempdir()))
    arguments = parser.parse_args()
    bad = arguments.hosts // 20
    with tempfile.TemporaryDirectory() as home, ManyHosts(Path(home)) as hosts:
        alone = hosts.mixed(arguments.hosts - 2 * bad, 0, 0)
        lists = {
            "clustered": alone,
            "shuffled": random.Random(2).sample(alone, len(alone)),
            "clustered, with dead and stalling hosts": hosts.mixed(arguments.hosts - 2 * bad, bad, bad),
        }
        dead = {url.split("/")[2].partition(":")[0] for host in hosts.urls(DEAD, bad) for url in host}
        rounds = []
        for number in range(arguments.rounds):
            order = list(lists) if number % 2 == 0 else list(lists)[::-1]
            runs = {
                name: take(name, lists[name], arguments.timeout, arguments.work, as_crawl=arguments.as_crawl)
                for name in order
            }
            for name, run in runs.items():
                check(run, dead if "dead" in name else set())
            rounds.append([runs[name] for name in lists])
    tell(rounds, len(alone))


def tell(rounds: list[list[Run]], pages: int) -> None:
    """The table, and the medians of the ratios within each round."""
    print(f"{pages} live pages\n\n| round | list | p99 of live pages, s | last live page, s | whole run, s | CPU, s |")
    print("|---|---|---|---|---|---|")
    for number, runs in enumerate(rounds, 1):
        for run in runs:
            print(
                f"| {number} | {run.name} | {run.live_99:.1f} | {run.live_last:.1f} | {run.whole:.1f} | {run.cpu:.1f} |"
            )
    slower = statistics.median(mixed.live_99 / clustered.live_99 for clustered, _, mixed in rounds)
    order = statistics.median(shuffled.whole / clustered.whole for clustered, shuffled, _ in rounds)
    print(f"\np99 of the live pages, with dead and stalling hosts over without: median **{slower:.2f}** (at most 1.15)")
    print(f"speed of the clustered list over the shuffled one: median **{order:.2f}** (at least 0.85)")
    spent = statistics.median(shuffled.cpu / clustered.cpu for clustered, shuffled, _ in rounds)
    print(f"CPU time of the shuffled list over the clustered one: median **{spent:.2f}**")
    print("no live page is missing, no live host was given up, every dead one is in crawl.jsonl")


if __name__ == "__main__":
    main()
