"""The programs that the fetch benchmark compares: how each is had, and how it fetches a list of URLs.

Each is installed in an environment of its own that is thrown away; one that cannot be had is left out, with a line that
says why.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

INSTALL_SECONDS = 300


@dataclass(frozen=True)
class Load:
    """How much is done at the same time, by the programs that can be told."""

    workers: int
    """Processes of Muniment's that fetch."""
    at_once: int
    """Requests, of all of a program's processes together."""


SCRAPY = """\
import pathlib, sys
import scrapy
from scrapy.crawler import CrawlerProcess

class Spider(scrapy.Spider):
    name = "peer"
    custom_settings = dict(
        CONCURRENT_REQUESTS=int(sys.argv[2]), CONCURRENT_REQUESTS_PER_DOMAIN=int(sys.argv[2]), DOWNLOAD_DELAY=0,
        ROBOTSTXT_OBEY=False, COOKIES_ENABLED=False, TELNETCONSOLE_ENABLED=False, RETRY_ENABLED=False,
        LOG_LEVEL="ERROR",
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
    unverified: tuple[str, ...] = ()
    """Its options that let it take the certificate of the benchmark's own server; without them it sits TLS out."""
    counts_itself: bool = False
    """It writes no WARC; its output is the number of pages it had."""


def muniment(_home: Path, load: Load) -> Peer:
    options = ("--workers", str(load.workers), "--per-host", str(load.at_once), "--quiet")
    program = [sys.executable, "-m", "muniment"]
    version = answer([*program, "--version"])
    return Peer(
        version,
        lambda urls, out: [*program, "fetch", str(urls), "--out", str(out / "muniment"), *options],
        ("--insecure",),
    )


def before(sources: Path, load: Load) -> Peer:
    """Muniment as the sources in that directory have it."""
    now = muniment(sources, load)
    version = ["env", f"PYTHONPATH={sources.absolute()}"]
    return Peer("Muniment before", lambda urls, out: [*version, *now.command(urls, out)], now.unverified)


def wget(_home: Path, _load: Load) -> Peer:
    version = answer(["wget", "--version"])

    def command(urls: Path, out: Path) -> list[str]:
        return [
            *("wget", "--quiet", "--delete-after", "--no-hsts", "--execute=robots=off", "--tries=1"),
            *(f"--input-file={urls}", f"--warc-file={out / 'wget'}"),
            *("--no-warc-keep-log", "--warc-tempdir=.", f"--directory-prefix={out / 'files'}"),
        ]

    return Peer(version, command, ("--no-check-certificate",))


def scrapy(home: Path, load: Load) -> Peer:
    python = environment(home, "scrapy>=2.13")
    script = home / "spider.py"
    script.write_text(SCRAPY)
    version = answer([str(python), "-c", "import scrapy; print('Scrapy', scrapy.__version__)"])
    command = [str(python), str(script)]
    return Peer(f"{version} (no WARC)", lambda urls, _out: [*command, str(urls), str(load.at_once)], counts_itself=True)


def warcio(home: Path, _load: Load) -> Peer:
    python = environment(home, "warcio>=1.8", "requests>=2.32")
    script = home / "record.py"
    script.write_text(WARCIO)
    version = answer([str(python), "-c", "import requests; print('requests', requests.__version__)"])
    return Peer(f"warcio with {version}", lambda urls, out: [*map(str, (python, script, urls, out / "w.warc.gz"))])


def bare(_home: Path, load: Load) -> Peer:
    """What is left of a fetch when nothing is kept but records and rows; memory as in Muniment's workers."""
    kept = ("MALLOC_TRIM_THRESHOLD_=33554432", "MALLOC_MMAP_THRESHOLD_=33554432")
    script = ["env", *kept, sys.executable, str(Path(__file__).with_name("bare.py"))]
    return Peer(
        "bare.py, one process", lambda urls, out: [*script, str(urls), str(out), "--at-once", str(load.at_once)]
    )


def zeno(home: Path, load: Load) -> Peer:
    """Zeno, which makes a digest of SHA-1 here as the others do, and pays no heed to how often it asks a host."""
    program = built(home, "github.com/internetarchive/Zeno/v2@latest", "Zeno")
    at_once = ("--workers", str(load.at_once), "--disable-rate-limit", "--warc-pool-size", str(load.workers))
    alike = ("--warc-digest-algorithm", "sha1", "--disable-assets-capture", "--disable-local-dedupe")
    quiet = ("--no-stdout-log", "--no-stderr-log", "--no-log-file", "--min-space-required", "0.1")

    def command(urls: Path, _out: Path) -> list[str]:
        return [str(program), "get", "list", str(urls), "--job", "peer", *at_once, *alike, *quiet]

    return Peer("Zeno", command)


def ami(home: Path, load: Load) -> Peer:
    program = built(home, "github.com/tamnd/ami/cmd/ami@latest", "ami")
    how = ("--format", "warc", "--per-host", str(load.at_once))
    return Peer("ami", lambda urls, out: [str(program), "crawl", str(urls), "-o", str(out / "ami"), *how])


PEERS: dict[str, Callable[[Path, Load], Peer]] = {
    "muniment": muniment,
    "bare": bare,
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
    """A program that is installed, or that the Go command builds from its module proxy."""
    if (found := shutil.which(name)) is not None:
        return Path(found)
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


def prepared(names: list[str], home: Path, load: Load, left_out: dict[str, str]) -> dict[str, Peer]:
    """The peers that can be had; why the others cannot goes to `left_out`."""
    peers = {}
    for name in names:
        place = home / name
        place.mkdir()
        try:
            peers[name] = PEERS[name](place, load)
        except UnavailableError as error:
            left_out[name] = str(error)
            print(f"{name} is left out: {error}", file=sys.stderr)
    return peers
