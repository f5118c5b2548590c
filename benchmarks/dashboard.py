"""A log of thousands of lines a second, watched in Chromium: how old its newest line is, memory and stalls of the page.

Run `python benchmarks/dashboard.py`; `--rate N` lines a second, `--seconds S`. The run that is watched is a small crawl
whose log is then written on as a crawl at full speed would.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import threading
import time
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.support.chromium import BrowserPage, Chromium
from tests.support.dashboard import Dashboard
from tests.support.gated_site import GatedSite

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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rate", type=int, default=5_000)
    parser.add_argument("--seconds", type=float, default=60.0)
    arguments = parser.parse_args()
    with TemporaryDirectory(prefix="muniment-bench-") as name, GatedSite({"/": "one page"}) as site:
        cwd = Path(name)
        quiet = ("--quiet", "--no-robots", "--no-sitemaps")
        subprocess.run(
            [sys.executable, "-m", "muniment", "crawl", site.url, "-o", "runs/one", *quiet], cwd=cwd, check=True
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
