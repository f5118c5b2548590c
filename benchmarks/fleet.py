"""Fetches one list by turns with two pipelines of a server and with one `fetch`, against nginx on the same cores.

The fleet is one server on a PostgreSQL that this script starts, and two pipelines with one worker each; `fetch` has two
workers. The time of a run goes from the first request that nginx saw to its last, so that starting and joining count
for neither. Prints both rates of each round, and the median of their ratios.

With `--delay MS` the same two pipelines take the place of `fetch`, and the way to the server takes so long more for
those of the fleet, there and back together.

Usage: python benchmarks/fleet.py [--files N] [--copies N] [--rounds N] [--hosts N] [--delay MS]
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

from make_corpus import make_corpus
from tests.support.fleet import Fleet
from tests.support.nginx import Nginx
from tests.support.postgres import Postgres

OPTIONS = ("--per-host", "8")
Rate = Callable[[Path, list[str], int, Path], float]


def main() -> None:
    parser = argparse.ArgumentParser(description="two pipelines against one fetch")
    parser.add_argument("--files", type=int, default=2_000)
    parser.add_argument("--copies", type=int, default=10, help="of each file, every one with other first bytes")
    parser.add_argument("--hosts", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--delay", type=float, default=0.0, metavar="MS")
    given = parser.parse_args()
    fleet = "fleet", fleet_rate
    delayed = "delayed", partial(fleet_rate, delay_s=given.delay / 2000)
    turns: list[tuple[str, Rate]] = [delayed, fleet] if given.delay else [fleet, ("fetch", fetch_rate)]
    measured, other = (name for name, _ in turns)
    with tempfile.TemporaryDirectory(prefix="bench-fleet-", dir="/dev/shm") as home:
        paths = make_corpus(Path(home) / "corpus", given.files, given.copies)
        ratios = []
        for number in range(given.rounds):
            rates = {}
            for name, rate in turns if number % 2 else reversed(turns):
                work = Path(home) / f"{name}-{number}"
                work.mkdir()
                rates[name] = rate(Path(home) / "corpus", paths, given.hosts, work)
            ratios.append(rates[measured] / rates[other])
            figures = f"{measured} {rates[measured]:.0f}, {other} {rates[other]:.0f}"
            print(f"round {number}: {figures} URLs/s, {ratios[-1]:.2f}")
    print(f"median {statistics.median(ratios):.2f}")


def site(corpus: Path, hosts: int) -> Nginx:
    """nginx on so many addresses."""
    return Nginx(corpus, addresses=[f"127.0.0.{number}" for number in range(1, hosts + 1)])


def write_list(server: Nginx, paths: list[str], work: Path) -> Path:
    """The list of all URLs, spread over the hosts."""
    urls = [server.urls[number % len(server.urls)] + path for number, path in enumerate(paths)]
    (work / "list.txt").write_text("".join(url + "\n" for url in urls))
    return work / "list.txt"


def rate_of(server: Nginx, expected: int) -> float:
    """URLs a second by nginx's log; raises RuntimeError when some are missing."""
    requests = server.wait_requests(expected)
    seen = {(request.host, request.uri) for request in requests}
    if len(seen) < expected:
        raise RuntimeError(f"{expected - len(seen)} URLs were never asked for")
    ends = [request.ended_at for request in requests]
    return expected / (max(ends) - min(ends))


def fetch_rate(corpus: Path, paths: list[str], hosts: int, work: Path) -> float:
    """`muniment fetch` of the list."""
    with site(corpus, hosts) as server:
        listed = write_list(server, paths, work)
        command = [sys.executable, "-m", "muniment", "fetch", str(listed), "-o", str(work / "out"), "--quiet"]
        subprocess.run([*command, "--workers", "2", "--min-free", "0", *OPTIONS], check=True)
        return rate_of(server, len(paths))


def fleet_rate(corpus: Path, paths: list[str], hosts: int, work: Path, delay_s: float = 0.0) -> float:
    """Two pipelines of a server."""
    with site(corpus, hosts) as server, Postgres(on_disk=True) as postgres:
        listed = write_list(server, paths, work)
        with Fleet(work / "fleet", ("--database", postgres.create("fleet")), delay_s=delay_s) as fleet:
            fleet.serve()
            for _ in range(2):
                fleet.pipeline("--workers", "1")
            job = fleet.ask("job", "add", "--fetch", str(listed), *OPTIONS)
            fleet.ask("job", "wait", job, "--timeout", "600")
            return rate_of(server, len(paths))


if __name__ == "__main__":
    main()
