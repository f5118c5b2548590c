"""A log of thousands of lines a second, watched in Chromium: how old its newest line is, memory and stalls of the page.

Run `python benchmarks/dashboard.py`; `--rate N` lines a second, `--seconds S`. The run that is watched is a small crawl
whose log is then written on as a crawl at full speed would. With `--pairs N`: the CPU seconds of a crawl that is
watched against one that nobody watches, in alternating pairs; `--pages N` each.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.support.chromium import BrowserPage, Chromium
from tests.support.dashboard import Dashboard
from tests.support.gated_site import GatedSite
from tests.support.nginx import Nginx

QUIET = ("--quiet", "--no-robots", "--no-sitemaps")
_BATCHES = 20
"""Writes a second, as a crawl's commits."""
WATCH = """
window.stalls = [];
new PerformanceObserver((list) => stalls.push(...list.getEntries().map((one) => one.duration)))
    .observe({ type: 'longtask' });
"""
NEWEST = "[...document.querySelectorAll('[data-testid=log-line] time')].at(-1)?.dateTime ?? ''"


def write_on(log: Path, rate: int, until: float) -> int:
    """Write lines until a moment; how many."""
    count, begun = 0, time.monotonic()
    with log.open("a") as file:
        while time.monotonic() < until:
            due = int((time.monotonic() - begun) * rate)
            ts = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
            file.write("".join(line(ts, number) for number in range(count, due)))
            file.flush()
            count = max(count, due)
            time.sleep(1 / _BATCHES)
    return count


def line(ts: str, number: int) -> str:
    """A line of a log; one of a hundred is a failure."""
    told = {"ts": ts, "event": "capture", "url": f"https://example.com/{number}", "status": 200, "bytes": 12_345}
    if number % 100 == 0:
        failed = {"ts": ts, "event": "fail", "url": told["url"], "reason": "timeout: slow", "attempt": 1, "final": True}
        return json.dumps(failed, separators=(",", ":")) + "\n"
    return json.dumps(told, separators=(",", ":")) + "\n"


def age(page: BrowserPage) -> float:
    """Seconds since the newest line on the page was written."""
    newest = datetime.fromisoformat(page.run(NEWEST))
    return (datetime.now(UTC) - newest).total_seconds()


def cpu_of_crawl(cwd: Path, url: str, out: str) -> float:
    """The CPU seconds of a crawl with one worker, of all its processes."""
    command = [sys.executable, "-m", "muniment", "crawl", url, "-o", out, "--workers", "1", *QUIET]
    process = subprocess.Popen(command, cwd=cwd)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, process.returncode
    return used.ru_utime + used.ru_stime


def cpu_of_watched_crawl(cwd: Path, url: str, out: str) -> float:
    """The same while a tab shows its page."""
    folder = out.partition("/")[0]
    with Dashboard(cwd, folder) as dashboard, Chromium() as browser, ThreadPoolExecutor(1) as pool:
        page = browser.page()
        page.goto(dashboard.opened["url"])
        crawling = pool.submit(cpu_of_crawl, cwd, url, out)
        page.wait("!!document.querySelector('tbody [data-testid=job-url]')")
        page.run("document.querySelector('tbody [data-testid=job-url]').click()")
        page.wait("document.querySelectorAll('[data-testid=log-line]').length > 10")
        return crawling.result()


def make_site(root: Path, pages: int) -> None:
    """Pages that link to each other."""
    (root / "p").mkdir(parents=True)
    links = [f"<a href=/p/{number}.html>{number}</a>" for number in range(pages)]
    (root / "index.html").write_text("".join(links))
    for number in range(pages):
        near = "".join(links[(number * 7 + step) % pages] for step in range(12))
        (root / "p" / f"{number}.html").write_text(f"<title>{number}</title>{'words of a page ' * 200}{near}")


def compare(pairs: int, pages: int) -> None:
    """CPU seconds for a thousand pages, with a viewer and without."""
    with TemporaryDirectory(prefix="muniment-bench-") as name:
        cwd, ratios = Path(name), []
        make_site(cwd / "site", pages)
        print("| pair | CPU s for 1,000 pages: watched | not watched | ratio |\n|---|---|---|---|", flush=True)
        with Nginx(cwd / "site", access_log=False) as server:
            for pair in range(pairs):
                ways = [cpu_of_watched_crawl, cpu_of_crawl]
                took = {}
                for way in ways if pair % 2 else ways[::-1]:
                    (cwd / f"{pair}-{way.__name__}").mkdir()
                    took[way] = way(cwd, server.url, f"{pair}-{way.__name__}/out") / pages * 1000
                watched, alone = (took[way] for way in ways)
                ratios.append(watched / alone)
                print(f"| {pair + 1} | {watched:.2f} | {alone:.2f} | {ratios[-1]:.3f} |", flush=True)
        print(f"\nmedian of the ratios: {statistics.median(ratios):.3f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rate", type=int, default=5_000)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--pairs", type=int, default=0)
    parser.add_argument("--pages", type=int, default=5_000)
    arguments = parser.parse_args()
    if arguments.pairs:
        compare(arguments.pairs, arguments.pages)
        return
    with TemporaryDirectory(prefix="muniment-bench-") as name, GatedSite({"/": "one page"}) as site:
        cwd = Path(name)
        subprocess.run(
            [sys.executable, "-m", "muniment", "crawl", site.url, "-o", "runs/one", *QUIET], cwd=cwd, check=True
        )
        with Dashboard(cwd, "runs") as dashboard, Chromium() as browser:
            page = browser.page()
            page.goto(dashboard.opened["url"])
            page.goto(f"{dashboard.origin}/jobs/1")
            page.wait("document.querySelector('[data-testid=connection]').dataset.state === 'live'")
            page.run(f"{WATCH}; true")
            until = time.monotonic() + arguments.seconds
            log = cwd / "runs/one/crawl.jsonl"
            writing = threading.Thread(target=write_on, args=(log, arguments.rate, until))
            writing.start()
            time.sleep(3)
            first, ages = page.run("performance.memory.usedJSHeapSize"), []
            while time.monotonic() < until - 1:
                ages.append(age(page))
                time.sleep(0.5)
            writing.join()
            last, stalls = page.run("performance.memory.usedJSHeapSize"), page.run("stalls")
            lines = page.run("document.querySelectorAll('[data-testid=log-line]').length")
            print("| lines/s | newest line, s: median, worst | lines | heap, MB: first, last | longest stall, ms |")
            print("|---|---|---|---|---|")
            print(
                f"| {arguments.rate:,} | {statistics.median(ages):.2f}, {max(ages):.2f} | {lines:,} "
                f"| {first / 1e6:.1f}, {last / 1e6:.1f} | {max(stalls, default=0):.0f} |"
            )


if __name__ == "__main__":
    main()
