"""Crawls the benchmark's site by turns with wget and with Muniment, against nginx on the same cores.

A figure counts only when the archive holds every file of the site: both archives are read, response by response.
Prints a Markdown table; progress goes to standard error.

With `--before` the tool `before` is Muniment as the sources in that directory have it: what a change costs.

Usage: python benchmarks/crawl.py [--site DIR] [--pages N] [--rounds N] [--work DIR] [--tools wget,muniment]
       python benchmarks/crawl.py --rounds 10 --tools before,muniment --before OTHER_CHECKOUT/src
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from fastwarc.warc import ArchiveIterator, WarcRecordType
from make_site import Plan, make_site
from measure import Measured, measure
from tests.support.nginx import Nginx

PORT = 18480
# nginx keeps a file descriptor for each file it remembers: fewer than a usual limit, or it answers 500 beyond it.
SERVER = "open_file_cache max=500 inactive=600s; open_file_cache_valid 600s; open_file_cache_min_uses 4;"


@dataclass(frozen=True)
class Run:
    """One tool's crawl of the whole site."""

    tool: str
    files: int
    measured: Measured
    archive_bytes: int

    @property
    def rate(self) -> float:
        return self.files / self.measured.seconds

    @property
    def cpu_per_1000(self) -> float:
        return self.measured.cpu_seconds / self.files * 1000


def wget(url: str, out: Path) -> list[str]:
    # What was fetched is deleted at once, since Muniment keeps no second copy either; wget has no way to extract links
    # without writing the file. -q: no progress; robots.txt is left alone by both. The directory for temporary files is
    # named as the one it runs in: wget takes no more than 100 characters for it.
    return [
        *("wget", "--recursive", "--level=inf", "--page-requisites", "--quiet", "--execute=robots=off"),
        *("--delete-after", "--no-hsts", f"--warc-file={out / 'wget'}", "--no-warc-keep-log", "--warc-tempdir=."),
        f"--directory-prefix={out / 'files'}",
        url,
    ]


def muniment(url: str, out: Path) -> list[str]:
    return [
        *(sys.executable, "-m", "muniment", "crawl", url, "--out", str(out / "muniment"), "--quiet"),
        *("--per-host", "64", "--workers", "2", "--no-robots", "--no-sitemaps"),
    ]


def before(sources: Path) -> Callable[[str, Path], list[str]]:
    def command(url: str, out: Path) -> list[str]:
        # the site has no sitemap, and an old version may not know the option
        ours = [argument for argument in muniment(url, out) if argument != "--no-sitemaps"]
        return ["env", f"PYTHONPATH={sources.absolute()}", *ours]

    return command


TOOLS: dict[str, Callable[[str, Path], list[str]]] = {"wget": wget, "muniment": muniment}


def run_tool(tool: str, origin: str, wanted: set[str], work: Path, cores: set[int]) -> Run:
    """One run in a directory of its own, which is removed; stops the benchmark when a file is missing."""
    out = Path(tempfile.mkdtemp(prefix=f"bench-{tool}-", dir=work))
    try:
        measured = measure(TOOLS[tool](f"{origin}/index.html", out), out, cores)
        warcs = sorted(out.rglob("*.warc.gz"))
        captured = captured_urls(warcs)
        if missing := wanted - captured:
            said = (out / "stderr").read_text(errors="replace")[-2000:]
            sys.exit(f"{tool} (exit {measured.code}) lacks {len(missing)} files, such as {min(missing)}\n{said}")
        run = Run(tool, len(wanted), measured, sum(path.stat().st_size for path in warcs))
    finally:
        shutil.rmtree(out)
    print(f"{tool}: {run.rate:.0f} files/s, {run.cpu_per_1000:.3f} CPU s/1000", file=sys.stderr)
    return run


def captured_urls(warcs: list[Path]) -> set[str]:
    """The URLs of all 200 responses in the archive."""
    found = set()
    for path in warcs:
        for record in ArchiveIterator(str(path), record_types=WarcRecordType.response | WarcRecordType.revisit):
            if record.http_headers is None or record.http_headers.status_code == 200:
                found.add(record.headers["WARC-Target-URI"].strip("<>"))
    return found


def table(rounds: list[dict[str, Run]]) -> str:
    """The rounds as Markdown: one line a run, then the ratio of the rates in each round and its median."""
    lines = [
        "| round | tool | files/s | CPU s per 1000 files | largest process, MB | all processes, MB | archive, MB |",
        "|---|---|---|---|---|---|---|",
    ]
    for number, runs in enumerate(rounds, 1):
        for run in runs.values():
            largest, total = run.measured.largest_rss / 1e6, run.measured.total_rss / 1e6
            lines.append(
                f"| {number} | {run.tool} | {run.rate:.0f} | {run.cpu_per_1000:.3f} | {largest:.0f} | {total:.0f} "
                f"| {run.archive_bytes / 1e6:.0f} |"
            )
    if all({"wget", "muniment"} <= set(runs) for runs in rounds):
        ratios = [runs["muniment"].rate / runs["wget"].rate for runs in rounds]
        each = ", ".join(f"{ratio:.2f}" for ratio in ratios)
        lines += ["", f"Muniment's rate over wget's: {each}; median **{statistics.median(ratios):.2f}**"]
        spent = [runs["wget"].cpu_per_1000 / runs["muniment"].cpu_per_1000 for runs in rounds]
        lines += [f"wget's CPU time over Muniment's, median: **{statistics.median(spent):.2f}**"]
    if all({"before", "muniment"} <= set(runs) for runs in rounds):
        cost = [runs["muniment"].cpu_per_1000 / runs["before"].cpu_per_1000 for runs in rounds]
        lines += ["", f"CPU time over that of before, median of {len(cost)} pairs: **{statistics.median(cost):.3f}**"]
    return "\n".join(lines)


def headline(files: int) -> str:
    """What was measured, on what."""
    version = subprocess.run(["wget", "--version"], capture_output=True, text=True, check=True).stdout.split("\n")[0]
    return f"{files} files, Python {sys.version.split()[0]}, {version}, {os.cpu_count()} CPUs\n"


def main() -> None:
    parser = argparse.ArgumentParser(description="wget against Muniment")
    parser.add_argument("--site", type=Path, help="where the site is, or will be made and kept (default: temporary)")
    parser.add_argument("--pages", type=int, default=30_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--work", type=Path, default=Path(tempfile.gettempdir()), help="where archives are written")
    parser.add_argument("--tools", default="wget,muniment")
    parser.add_argument("--before", type=Path, help="sources of an earlier version, for the tool `before`")
    parser.add_argument("--port", type=int, default=PORT, help="of the server; the site's absolute links name it")
    parser.add_argument("--cores", default="0,1", help="the cores that nginx and the tools share")
    arguments = parser.parse_args()
    if arguments.before is not None:
        TOOLS["before"] = before(arguments.before)
    cores = set(map(int, arguments.cores.split(","))) & os.sched_getaffinity(0)
    with tempfile.TemporaryDirectory(prefix="bench-site-") as temporary:
        print(benchmark(arguments, arguments.site or Path(temporary), cores))


def benchmark(arguments: argparse.Namespace, site: Path, cores: set[int]) -> str:
    """All rounds; who goes first changes with every round, so that neither tool always finds the warmer cache."""
    origin = f"http://127.0.0.1:{arguments.port}"
    paths = make_site(site, Plan(arguments.pages, origin))
    wanted = {origin + path for path in paths}
    os.sched_setaffinity(0, cores)
    tools = arguments.tools.split(",")
    rounds = []
    with Nginx(site / "root", ports=[arguments.port], access_log=False, http=SERVER):
        for number in range(arguments.rounds):
            order = tools if number % 2 == 0 else tools[::-1]
            runs = {tool: run_tool(tool, origin, wanted, arguments.work, cores) for tool in order}
            rounds.append({tool: runs[tool] for tool in tools})
    return headline(len(paths)) + "\n" + table(rounds)


if __name__ == "__main__":
    main()
