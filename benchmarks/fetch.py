"""Fetches a list of URLs by turns with wget and with Muniment, against nginx on the same cores.

A figure counts only when the archive holds every URL of the list. CPU time is that of all processes of a tool; beside
it stands what is left without the cost of starting and ending, which a list of one URL shows.

Usage: python benchmarks/fetch.py [--corpus DIR] [--files N] [--copies N] [--size BYTES] [--rounds N] [--tools A,B]
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from crawl import captured_urls
from make_corpus import make_corpus
from measure import Measured, measure

from muniment.testing.nginx import Nginx

SERVER = "open_file_cache max=500 inactive=600s; open_file_cache_valid 600s; open_file_cache_min_uses 4;"


@dataclass(frozen=True)
class Run:
    """One tool's fetch of the whole list."""

    tool: str
    urls: int
    measured: Measured
    archive_bytes: int
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
    def steady_cpu(self) -> float:
        return (self.measured.cpu_seconds - self.started.cpu_seconds) / self.urls * 1000

    @property
    def steady_rate(self) -> float:
        return self.urls / (self.measured.seconds - self.started.seconds)


def wget(seed: Path, out: Path) -> list[str]:
    return [
        *("wget", "--quiet", "--delete-after", "--no-hsts", "--execute=robots=off", "--tries=1"),
        *(f"--warc-file={out / 'wget'}", "--no-warc-keep-log", "--warc-tempdir=."),
        *(f"--directory-prefix={out / 'files'}", f"--input-file={seed}"),
    ]


def muniment(seed: Path, out: Path) -> list[str]:
    return [
        *(sys.executable, "-m", "muniment", "fetch", str(seed), "--out", str(out / "muniment"), "--quiet"),
        *("--per-host", "64", "--workers", "2"),
    ]


TOOLS: dict[str, Callable[[Path, Path], list[str]]] = {"wget": wget, "muniment": muniment}


def run_once(tool: str, urls: list[str], work: Path, cores: set[int]) -> tuple[Measured, int]:
    """One run in a directory of its own, which is removed; stops the benchmark when a URL is missing."""
    out = Path(tempfile.mkdtemp(prefix=f"bench-{tool}-", dir=work))
    try:
        seed = out / "seed.txt"
        seed.write_text("".join(url + "\n" for url in urls))
        measured = measure(TOOLS[tool](seed, out), out, cores)
        warcs = sorted(out.rglob("*.warc.gz"))
        if missing := set(urls) - captured_urls(warcs):
            said = (out / "stderr").read_text(errors="replace")[-2000:]
            sys.exit(f"{tool} (exit {measured.code}) lacks {len(missing)} URLs, such as {min(missing)}\n{said}")
        return measured, sum(path.stat().st_size for path in warcs)
    finally:
        shutil.rmtree(out)


def table(rounds: list[dict[str, Run]]) -> str:
    """The rounds as Markdown: one line a run, then ratios and medians."""
    lines = [
        "| round | tool | URLs/s | CPU s per 1000 | steady URLs/s | steady CPU s per 1000 | archive, MB | RSS, MB |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for number, runs in enumerate(rounds, 1):
        lines += [
            f"| {number} | {run.tool} | {run.rate:.0f} | {run.cpu:.3f} | {run.steady_rate:.0f} | {run.steady_cpu:.3f} "
            f"| {run.archive_bytes / 1e6:.0f} | {run.measured.total_rss / 1e6:.0f} |"
            for run in runs.values()
        ]
    if all({"wget", "muniment"} <= set(runs) for runs in rounds):
        ratios = [runs["muniment"].rate / runs["wget"].rate for runs in rounds]
        steady = [runs["muniment"].steady_rate / runs["wget"].steady_rate for runs in rounds]
        lines += ["", f"Muniment's rate over wget's, median: **{statistics.median(ratios):.2f}**"]
        lines += [f"Without start and end: **{statistics.median(steady):.2f}**"]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description="a list of URLs, wget against Muniment")
    parser.add_argument("--corpus", type=Path, help="where the files are, or will be kept (default: temporary)")
    parser.add_argument("--files", type=int, default=2_000)
    parser.add_argument("--copies", type=int, default=10, help="of each file, every one with other first bytes")
    parser.add_argument("--size", type=int, default=0, help="bytes of every file, instead of those of web pages")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--work", type=Path, default=Path(tempfile.gettempdir()), help="where archives are written")
    parser.add_argument("--tools", default="wget,muniment")
    parser.add_argument("--cores", default="0,1", help="the cores that nginx and the tools share")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-corpus-") as temporary:
        print(benchmark(arguments, arguments.corpus or Path(temporary)))


def benchmark(arguments: argparse.Namespace, corpus: Path) -> str:
    """All rounds; who goes first changes with every round."""
    cores = set(map(int, arguments.cores.split(","))) & os.sched_getaffinity(0)
    paths = make_corpus(corpus, arguments.files, arguments.copies, arguments.size)
    mean = sum((corpus / path).stat().st_size for path in paths) / len(paths)
    os.sched_setaffinity(0, cores)
    tools = arguments.tools.split(",")
    rounds = []
    with Nginx(corpus, access_log=False, http=SERVER) as server:
        urls = [server.url + path for path in paths]
        started = {tool: run_once(tool, urls[:1], arguments.work, cores)[0] for tool in tools}
        for number in range(arguments.rounds):
            runs = {}
            for tool in tools if number % 2 == 0 else tools[::-1]:
                run = Run(tool, len(urls), *run_once(tool, urls, arguments.work, cores), started[tool])
                print(f"{tool}: {run.rate:.0f} URLs/s, {run.cpu:.3f} CPU s/1000", file=sys.stderr)
                runs[tool] = run
            rounds.append({tool: runs[tool] for tool in tools})
    return f"{len(paths)} URLs, {mean / 1000:.1f} kB on average, {os.cpu_count()} CPUs\n\n" + table(rounds)


if __name__ == "__main__":
    main()
