"""Fetches one list of URLs by turns with Muniment and with other programs, against nginx on the same cores.

Each peer is installed in an environment of its own that is thrown away; one that cannot be had is left out, with a line
that says why. A figure counts only when every file was fetched: of WARC files, response by response; Scrapy writes
none, and counts for itself. Prints a Markdown table; progress goes to standard error.

Usage: python benchmarks/peers.py [--site DIR] [--pages N] [--rounds N] [--work DIR] [--tools muniment,wget,…]
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import venv
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from crawl import SERVER, captured_urls
from make_site import Plan, make_site
from measure import Measured, measure

from muniment.testing.nginx import Nginx

PORT = 18481
INSTALL_SECONDS = 300
AT_ONCE = 64

SCRAPY = f"""\
import pathlib, sys
import scrapy
from scrapy.crawler import CrawlerProcess

class Spider(scrapy.Spider):
    name = "peer"
    custom_settings = dict(
        CONCURRENT_REQUESTS={AT_ONCE}, CONCURRENT_REQUESTS_PER_DOMAIN={AT_ONCE}, DOWNLOAD_DELAY=0, ROBOTSTXT_OBEY=False,
        COOKIES_ENABLED=False, TELNETCONSOLE_ENABLED=False, RETRY_ENABLED=False, LOG_LEVEL="ERROR",
    )
    start_urls = pathlib.Path(sys.argv[1]).read_text().split()
    got = 0

    def parse(self, response):
        self.got += response.status == 200

    def closed(self, reason):
        print(self.got)

process = CrawlerProcess()
process.crawl(Spider)
process.start()
"""
WARCIO = """\
import pathlib, sys
from warcio.capture_http import capture_http
import requests  # after warcio, which puts itself between requests and the sockets

session = requests.Session()
with capture_http(sys.argv[2], warc_version="1.1"):
    for url in pathlib.Path(sys.argv[1]).read_text().split():
        session.get(url)
"""


class UnavailableError(Exception):
    """A peer cannot be had on this machine; the text says why."""


@dataclass(frozen=True)
class Peer:
    """A program that fetches a list of URLs."""

    what: str
    """Its name and version."""
    command: Callable[[Path, Path], list[str]]
    """The command for a list of URLs and a directory to write to."""
    counts_itself: bool = False
    """It writes no WARC; its output is the number of pages it had."""


def muniment(_home: Path) -> Peer:
    options = ("--workers", "2", "--per-host", str(AT_ONCE), "--quiet")
    program = [sys.executable, "-m", "muniment"]
    version = answer([*program, "--version"])
    return Peer(version, lambda urls, out: [*program, "fetch", str(urls), "--out", str(out / "muniment"), *options])


def wget(_home: Path) -> Peer:
    version = answer(["wget", "--version"])

    def command(urls: Path, out: Path) -> list[str]:
        return [
            *("wget", "--quiet", "--delete-after", "--no-hsts", f"--input-file={urls}", f"--warc-file={out / 'wget'}"),
            *("--no-warc-keep-log", "--warc-tempdir=.", f"--directory-prefix={out / 'files'}"),
        ]

    return Peer(version, command)


def scrapy(home: Path) -> Peer:
    python = environment(home, "scrapy>=2.13")
    script = home / "spider.py"
    script.write_text(SCRAPY)
    version = answer([str(python), "-c", "import scrapy; print('Scrapy', scrapy.__version__)"])
    return Peer(f"{version} (no WARC)", lambda urls, _out: [str(python), str(script), str(urls)], counts_itself=True)


def warcio(home: Path) -> Peer:
    python = environment(home, "warcio>=1.8", "requests>=2.32")
    script = home / "record.py"
    script.write_text(WARCIO)
    version = answer([str(python), "-c", "import requests; print('requests', requests.__version__)"])
    return Peer(f"warcio with {version}", lambda urls, out: [*map(str, (python, script, urls, out / "w.warc.gz"))])


def zeno(home: Path) -> Peer:
    program = built(home, "github.com/internetarchive/Zeno/v2@latest", "Zeno")

    def command(urls: Path, out: Path) -> list[str]:
        return [str(program), "get", "list", str(urls), "--job", "peer", "--workers", str(AT_ONCE), "--no-tui"]

    return Peer("Zeno", command)


def ami(home: Path) -> Peer:
    program = built(home, "github.com/tamnd/ami/cmd/ami@latest", "ami")
    return Peer(
        "ami", lambda urls, out: [str(program), "crawl", str(urls), "-o", str(out / "ami"), "--per-host", str(AT_ONCE)]
    )


PEERS: dict[str, Callable[[Path], Peer]] = {
    "muniment": muniment,
    "wget": wget,
    "scrapy": scrapy,
    "warcio": warcio,
    "zeno": zeno,
    "ami": ami,
}


def answer(command: list[str]) -> str:
    """The first line that a command prints."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    except (OSError, subprocess.SubprocessError) as error:
        raise UnavailableError(str(error)) from None
    return done.stdout.partition("\n")[0]


def environment(home: Path, *packages: str) -> Path:
    """A Python environment with some packages; its interpreter."""
    venv.create(home / "venv", with_pip=True)
    python = home / "venv" / "bin" / "python"
    install([str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages], {})
    return python


def built(home: Path, package: str, name: str) -> Path:
    """A program that the Go command builds from its module proxy."""
    if shutil.which("go") is None:
        raise UnavailableError("there is no Go on this machine")
    install(["go", "install", "-modcacherw", package], {"GOPATH": str(home / "go"), "GOBIN": str(home)})
    return home / name


def install(command: list[str], environ: dict[str, str]) -> None:
    try:
        done = subprocess.run(
            command, env={**os.environ, **environ}, capture_output=True, text=True, check=False, timeout=INSTALL_SECONDS
        )
    except subprocess.TimeoutExpired:
        raise UnavailableError(f"not installed in {INSTALL_SECONDS} s") from None
    if done.returncode:
        said = done.stderr.strip().splitlines() or [f"exit {done.returncode}"]
        raise UnavailableError(said[-1].strip())


@dataclass(frozen=True)
class Run:
    """One peer's run over the whole list."""

    files: int
    measured: Measured

    @property
    def rate(self) -> float:
        return self.files / self.measured.seconds

    @property
    def cpu_per_1000(self) -> float:
        return self.measured.cpu_seconds / self.files * 1000


def run_peer(name: str, peer: Peer, urls: Path, work: Path, cores: set[int]) -> Run:
    """One run in a directory of its own, which is removed; raises UnavailableError when files are missing."""
    wanted = set(urls.read_text().split())
    out = Path(tempfile.mkdtemp(prefix=f"bench-{name}-", dir=work))
    try:
        measured = measure(peer.command(urls, out), out, cores)
        said = (out / "stdout").read_text(errors="replace")
        if peer.counts_itself:
            missing = len(wanted) - int(said.strip() or 0)
        else:
            missing = len(wanted - captured_urls(sorted(out.rglob("*.warc.gz"))))
        if missing:
            complaint = ((out / "stderr").read_text(errors="replace").strip() or "nothing").splitlines()[-1]
            raise UnavailableError(f"exit {measured.code}, {missing} files are missing; it said: {complaint}")
    finally:
        shutil.rmtree(out)
    run = Run(len(wanted), measured)
    print(f"{name}: {run.rate:.0f} pages/s, {run.cpu_per_1000:.3f} CPU s/1000", file=sys.stderr)
    return run


def table(peers: dict[str, Peer], rounds: list[dict[str, Run]]) -> str:
    """The medians of each peer as Markdown, and Muniment's ratio to it, round by round."""
    lines = [
        "| program | pages/s | CPU s per 1000 pages | all processes, MB | Muniment's rate over it, by round | median |",
        "|---|---|---|---|---|---|",
    ]
    for name, peer in peers.items():
        runs = [one[name] for one in rounds if name in one]
        if not runs:
            continue
        ratios = [
            one["muniment"].rate / one[name].rate
            for one in rounds
            if name != "muniment" and {"muniment", name} <= set(one)
        ]
        lines.append(
            f"| {peer.what} | {statistics.median(run.rate for run in runs):.0f} "
            f"| {statistics.median(run.cpu_per_1000 for run in runs):.3f} "
            f"| {statistics.median(run.measured.total_rss for run in runs) / 1e6:.0f} "
            f"| {', '.join(f'{ratio:.2f}' for ratio in ratios)} "
            f"| {f'**{statistics.median(ratios):.2f}**' if ratios else ''} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description="Muniment's fetch against other programs")
    parser.add_argument("--site", type=Path, help="where the site is, or will be made and kept (default: temporary)")
    parser.add_argument("--pages", type=int, default=1_900, help="of the site; images come on top")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--work", type=Path, default=Path(tempfile.gettempdir()), help="where archives are written")
    parser.add_argument("--tools", default=",".join(PEERS))
    parser.add_argument("--port", type=int, default=PORT, help="of the server; the site's absolute links name it")
    parser.add_argument("--cores", default="0,1", help="the cores that nginx and the programs share")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-peers-") as home:
        print(benchmark(arguments, Path(home)))


def benchmark(arguments: argparse.Namespace, home: Path) -> str:
    """All rounds; the order turns round with every round, so that no program always finds the warmer cache."""
    site = arguments.site or home / "site"
    origin = f"http://127.0.0.1:{arguments.port}"
    paths = make_site(site, Plan(arguments.pages, origin))
    urls = home / "urls.txt"
    urls.write_text("\n".join(origin + path for path in paths) + "\n")
    cores = set(map(int, arguments.cores.split(","))) & os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    left_out: dict[str, str] = {}
    peers = prepared(arguments.tools.split(","), home, left_out)
    rounds: list[dict[str, Run]] = []
    with Nginx(site / "root", ports=[arguments.port], access_log=False, http=SERVER):
        for number in range(arguments.rounds):
            rounds.append({})
            for name in list(peers)[:: 1 if number % 2 == 0 else -1]:
                if name in left_out:
                    continue
                try:
                    rounds[-1][name] = run_peer(name, peers[name], urls, arguments.work, cores)
                except UnavailableError as error:
                    left_out[name] = str(error)
    notes = "".join(f"\nleft out: {name}: {reason}" for name, reason in left_out.items())
    headline = f"{len(paths)} files, Python {sys.version.split()[0]}, {os.cpu_count()} CPUs\n\n"
    return headline + table(peers, rounds) + "\n" + notes


def prepared(names: list[str], home: Path, left_out: dict[str, str]) -> dict[str, Peer]:
    """The peers that can be had; why the others cannot goes to `left_out`."""
    peers = {}
    for name in names:
        place = home / name
        place.mkdir()
        try:
            peers[name] = PEERS[name](place)
        except UnavailableError as error:
            left_out[name] = str(error)
            print(f"{name} is left out: {error}", file=sys.stderr)
    return peers


if __name__ == "__main__":
    main()
