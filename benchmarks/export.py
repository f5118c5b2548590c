"""`muniment export --wacz` against `wacz create` (py-wacz) on the same WARC files: alternating runs, medians.

Run `python benchmarks/export.py --wacz PROGRAM`, PROGRAM being `wacz` of an environment with py-wacz; without it only
Muniment is measured. `--pages N` for another archive, written as benchmarks/check.py writes it; `--short` for pages of
two hundred bytes, which ask for memory by their number. Every run begins as a new process, and the files are in the
page cache. Memory is the most that a run's process had; CPU seconds are those of all its threads.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from check import write_archive
from tests.support.exchanges import MemoryBody, exchange, page_context

from muniment.archive.index.parquet import join
from muniment.archive.segment import Segment
from muniment.archive.warc.warcinfo import WarcInfo


def write_short(out: Path, pages: int, files: int) -> int:
    """Write an archive of short pages and its index; the bytes of its WARC files."""
    out.mkdir()
    for file in range(files):
        segment = Segment.open(out, out / "parts", f"muniment-{file:05d}.warc.gz", WarcInfo(software="muniment/bench"))
        for number in range(file, pages, files):
            url = f"http://site.example/{number // 100}/{number}.html"
            body = MemoryBody(f"<title>Page {number}</title><p>{'word ' * 30}{number}</p>".encode())
            headers = (("Content-Type", "text/html"), ("Content-Length", str(body.length)))
            found = exchange(url, body, headers=headers, started_at=1_795_000_000_000_000 + number * 1000)
            segment.write(found, page_context((), via="http://site.example/", depth=1))
        segment.seal()
    join(out, out / "parts")
    return sum(path.stat().st_size for path in out.glob("*.warc.gz"))


def measured(command: list[str], cwd: Path) -> tuple[float, float, float]:
    """Seconds, CPU seconds and MB of one run."""
    begun = time.monotonic()
    process = subprocess.Popen(command, cwd=cwd, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    assert status == 0, (command, status)
    return time.monotonic() - begun, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--pages", type=int, default=20_000)
    parser.add_argument("--files", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--short", action="store_true", help="short pages")
    parser.add_argument("--wacz", help="the program of py-wacz")
    arguments = parser.parse_args()
    with TemporaryDirectory(prefix="muniment-bench-") as name:
        work = Path(name)
        write = write_short if arguments.short else write_archive
        size = write(work / "out", arguments.pages, arguments.files)
        print(f"{arguments.pages:,} pages, {size / 1e6:.0f} MB in {arguments.files} WARC files\n")
        print("| round | tool | s | MB/s | CPU s | memory, MB |\n|---|---|---|---|---|---|")
        warcs = sorted(map(str, (work / "out").glob("*.warc.gz")))
        ours = [sys.executable, "-m", "muniment", "export", "out", "--wacz", "ours.wacz", "--force", "--quiet"]
        theirs = [str(arguments.wacz), "create", "-o", "theirs.wacz", *warcs]
        tools = {"muniment": ours, **({"py-wacz": theirs} if arguments.wacz else {})}
        took: dict[str, list[float]] = {tool: [] for tool in tools}
        for number in range(arguments.rounds):
            for tool, command in tools.items():
                (work / "theirs.wacz").unlink(missing_ok=True)
                seconds, cpu, memory = measured(command, work)
                took[tool].append(seconds)
                rate = size / 1e6 / seconds
                print(f"| {number + 1} | {tool} | {seconds:.1f} | {rate:.0f} | {cpu:.1f} | {memory:.0f} |", flush=True)
        if arguments.wacz:
            ratios = [theirs / ours for ours, theirs in zip(took["muniment"], took["py-wacz"], strict=True)]
            print(f"\npy-wacz's time over Muniment's, median: **{statistics.median(ratios):.1f}**")


if __name__ == "__main__":
    main()
