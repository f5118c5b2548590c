"""A crawl with a million pages queued: how much memory the orchestrator takes, and how soon a resumed run asks again.

A start page leads to a thousand lists of a thousand links each. The first run stops when the lists are captured, so
that the million is queued; the second resumes and is stopped as soon as the server sees its first request.

Usage: python benchmarks/long_queue.py [--lists 1000] [--links 1000]
"""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil
from tests.support.nginx import Nginx

_RETURN = 'location /x/ { default_type text/html; return 200 "<p>a page"; }'


def write_site(root: Path, lists: int, links: int) -> None:
    """The start page and its lists."""
    (root / "index.html").write_text("".join(f'<a href="/l{n}.html">{n}</a>\n' for n in range(lists)))
    for number in range(lists):
        body = "".join(f'<a href="/x/{number}-{n}.html">{n}</a>\n' for n in range(links))
        (root / f"l{number}.html").write_text(f"<!doctype html><title>{number}</title>{body}")


class Watched:
    """A crawl whose orchestrator's and workers' peak resident memory is watched."""

    def __init__(self, url: str, out: Path, *options: str) -> None:
        alone = ("--no-robots", "--no-sitemaps", "--quiet")
        command = [sys.executable, "-m", "muniment", "crawl", url, "-o", str(out), *alone, *options]
        self.started = time.monotonic()
        self.process = subprocess.Popen(command)
        self.orchestrator = self.worker = 0

    def look(self) -> bool:
        """Take in the memory now; False when the crawl has ended."""
        try:
            me = psutil.Process(self.process.pid)
            self.orchestrator = max(self.orchestrator, me.memory_info().rss)
            workers = [p for p in me.children() if "worker" in p.cmdline()]
            self.worker = max([self.worker, *(p.memory_info().rss for p in workers)])
        except psutil.Error:
            pass
        return self.process.poll() is None


def main() -> None:
    parser = argparse.ArgumentParser(description="a million pages queued")
    parser.add_argument("--lists", type=int, default=1000)
    parser.add_argument("--links", type=int, default=1000)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        root, out = Path(directory) / "site", Path(directory) / "out"
        root.mkdir()
        write_site(root, arguments.lists, arguments.links)
        with Nginx(root, server=_RETURN) as server:
            run(server, out, arguments.lists + 1)


def run(server: Nginx, out: Path, lists: int) -> None:
    """Both runs, and what was measured."""
    first = Watched(server.url, out, "--max-pages", str(lists))
    while first.look():
        time.sleep(0.05)
    seconds = time.monotonic() - first.started
    asked = len(server.requests())
    second = Watched(server.url, out)
    while second.look() and len(server.requests()) == asked:
        time.sleep(0.02)
    resumed = time.monotonic() - second.started
    end = time.monotonic() + 5
    while second.look() and time.monotonic() < end:
        time.sleep(0.05)
    second.process.send_signal(signal.SIGINT)
    second.process.wait(60)
    print("| | value |\n|---|---|")
    print(f"| queueing | {seconds:.1f} s, exit {first.process.returncode} |")
    print(f"| orchestrator's peak while queueing | {first.orchestrator / 1e6:.0f} MB |")
    print(f"| worker's peak while queueing | {first.worker / 1e6:.0f} MB |")
    print(f"| resumed: first request after | {resumed:.2f} s |")
    print(f"| orchestrator's peak of the resumed run, 5 s on | {second.orchestrator / 1e6:.0f} MB |")
    print(f"| tracker | {(out / 'tracker.sqlite').stat().st_size / 1e6:.0f} MB |")


if __name__ == "__main__":
    main()
