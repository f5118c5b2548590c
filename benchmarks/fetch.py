"""Fetches one list of URLs by turns with Muniment and with other programs, against nginx on the same cores.

A figure counts only when every URL was fetched: of WARC files, response by response; Scrapy writes none, and counts for
itself. CPU time is that of all processes of a program; beside it stands what is left without the cost of starting and
ending, which a list of one URL shows. With `--before` the tool `before` is Muniment as the sources in that directory
have it: what a change costs. ami and Zeno are taken from the PATH, or built from Go's module proxy. Prints a Markdown
table; progress goes to standard error.

Usage: python benchmarks/fetch.py [--corpus DIR] [--files N] [--copies N] [--size BYTES] [--rounds N] [--tls]
       python benchmarks/fetch.py --tools muniment,bare,wget,scrapy,warcio,zeno,ami
       python benchmarks/fetch.py --rounds 10 --tools before,muniment --before OTHER_CHECKOUT/src
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from crawl import SERVER, captured_urls
from make_corpus import make_corpus
from measure import Measured, measure
from own_memory import own_memory
from peers import PEERS, Load, Peer, UnavailableError, before, prepared
from tests.support.nginx import Nginx


@dataclass(frozen=True)
class Run:
    """One program's fetch of the whole list."""

    urls: int
    measured: Measured
    started: Measured
    """What a list of one URL took."""

    @property
    def rate(self) -> float:
        return self.urls / self.measured.seconds

    @property
    def cpu(self) -> float:
        """CPU seconds per 1000 URLs."""
        return self.measured.cpu_seconds / self.urls * 1000

    @property
    def steady_rate(self) -> float:
        return self.urls / (self.measured.seconds - self.started.seconds)

    @property
    def steady_cpu(self) -> float:
        return (self.measured.cpu_seconds - self.started.cpu_seconds) / self.urls * 1000


Round = dict[str, Run]


def run_once(name: str, peer: Peer, urls: list[str], work: Path, cores: set[int]) -> Measured:
    """One run in a directory of its own, which is removed; raises UnavailableError when a URL is missing."""
    out = Path(tempfile.mkdtemp(prefix=f"bench-{name}-", dir=work))
    try:
        seed = out / "seed.txt"
        seed.write_text("".join(url + "\n" for url in urls))
        over_tls = peer.unverified if urls[0].startswith("https:") else ()
        measured = measure([*peer.command(seed, out), *over_tls], out, cores)
        if peer.counts_itself:
            missing = len(urls) - int((out / "stdout").read_text(errors="replace").strip() or 0)
        else:
            missing = len(set(urls) - captured_urls(sorted(out.rglob("*.warc.gz"))))
        if missing:
            said = ((out / "stderr").read_text(errors="replace").strip() or "nothing").splitlines()[-1]
            raise UnavailableError(f"exit {measured.code}, {missing} URLs are missing; it said: {said}")
        return measured
    finally:
        shutil.rmtree(out)


def table(peers: dict[str, Peer], rounds: list[Round]) -> str:
    """The medians of each program as Markdown, and Muniment's ratio to it, round by round."""
    lines = [
        "| program | URLs/s | CPU s per 1000 | without start and end: URLs/s | CPU s per 1000 | all processes, MB "
        "| Muniment's rate over it, by round | median |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, peer in peers.items():
        runs = [one[name] for one in rounds if name in one]
        if not runs:
            continue
        both = [one for one in rounds if name != "muniment" and {"muniment", name} <= set(one)]
        ratios = [one["muniment"].rate / one[name].rate for one in both]
        lines.append(
            f"| {peer.what} | {statistics.median(run.rate for run in runs):.0f} "
            f"| {statistics.median(run.cpu for run in runs):.3f} "
            f"| {statistics.median(run.steady_rate for run in runs):.0f} "
            f"| {statistics.median(run.steady_cpu for run in runs):.3f} "
            f"| {statistics.median(run.measured.total_rss for run in runs) / 1e6:.0f} "
            f"| {', '.join(f'{ratio:.2f}' for ratio in ratios)} "
            f"| {f'**{statistics.median(ratios):.2f}**' if ratios else ''} |"
        )
    pairs = [one for one in rounds if {"before", "muniment"} <= set(one)]
    if pairs:
        cost = [one["muniment"].cpu / one["before"].cpu for one in pairs]
        each = ", ".join(f"{ratio:.3f}" for ratio in cost)
        lines += ["", f"CPU time over that of before: {each}; median **{statistics.median(cost):.3f}**"]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description="a list of URLs, Muniment against other programs")
    parser.add_argument("--corpus", type=Path, help="where the files are, or will be kept (default: temporary)")
    parser.add_argument("--files", type=int, default=2_000)
    parser.add_argument("--copies", type=int, default=10, help="of each file, every one with other first bytes")
    parser.add_argument("--size", type=int, default=0, help="bytes of every file, instead of those of web pages")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--workers", type=int, default=2, help="of Muniment")
    parser.add_argument("--at-once", type=int, default=64, help="requests, of the programs that can be told")
    parser.add_argument("--tls", action="store_true", help="fetch by https; only by programs that can be told to trust")
    parser.add_argument("--before", type=Path, help="sources of an earlier version, for the tool `before`")
    parser.add_argument("--work", type=Path, default=Path(tempfile.gettempdir()), help="where archives are written")
    parser.add_argument("--tools", default="muniment,wget", help=f"of {', '.join(PEERS)}")
    parser.add_argument("--cores", default="0,1", help="the cores that nginx and the programs share")
    arguments = parser.parse_args()
    if arguments.before is not None:
        PEERS["before"] = lambda _home, load: before(arguments.before, load)
    with tempfile.TemporaryDirectory(prefix="bench-fetch-") as home:
        print(benchmark(arguments, Path(home)))


def benchmark(arguments: argparse.Namespace, home: Path) -> str:
    """All rounds; the order turns round with every round, so that no program always finds the warmer cache."""
    corpus = arguments.corpus or home / "corpus"
    paths = make_corpus(corpus, arguments.files, arguments.copies, arguments.size)
    size = sum((corpus / path).stat().st_size for path in paths)
    cores = set(map(int, arguments.cores.split(","))) & os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    left_out: dict[str, str] = {}
    peers = prepared(arguments.tools.split(","), home, Load(arguments.workers, arguments.at_once), left_out)
    if arguments.tls:
        left_out |= {name: "not told to trust the certificate" for name, peer in peers.items() if not peer.unverified}
    started: dict[str, Measured] = {}
    rounds: list[Round] = []
    # Zeno fetches nothing from 127.0.0.1
    with (
        Nginx(corpus, addresses=["127.0.0.2"], access_log=False, http=SERVER, tls=arguments.tls) as server,
        own_memory(size),
    ):
        urls = [server.url + path for path in paths]
        for number in range(arguments.rounds):
            rounds.append({})
            for name in [name for name in peers if name not in left_out][:: 1 if number % 2 == 0 else -1]:
                try:
                    if name not in started:
                        started[name] = run_once(name, peers[name], urls[:1], arguments.work, cores)
                    measured = run_once(name, peers[name], urls, arguments.work, cores)
                except UnavailableError as error:
                    left_out[name] = str(error)
                    continue
                run = rounds[-1][name] = Run(len(urls), measured, started[name])
                print(f"{name}: {run.rate:.0f} URLs/s, {run.cpu:.3f} CPU s/1000", file=sys.stderr)
    notes = "".join(f"\nleft out: {name}: {reason}" for name, reason in left_out.items())
    each = size / len(paths) / 1000
    headline = f"{len(paths)} URLs, {each:.1f} kB on average, Python {sys.version.split()[0]}, {len(cores)} CPUs"
    return f"{headline}\n\n{table(peers, rounds)}\n{notes}"


if __name__ == "__main__":
    main()
