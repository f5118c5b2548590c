"""`muniment export --wacz` against `wacz create` (py-wacz) on the same WARC files: alternating runs, medians.

Run `python benchmarks/export.py --wacz PROGRAM`, PROGRAM being `wacz` of an environment with py-wacz; without it only
Muniment is measured. `--pages N` for another archive, written as benchmarks/check.py writes it. Every run begins as a
new process, and the files are in the page cache. Memory is the most that a run's process had.
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


def measured(command: list[str], cwd: Path) -> tuple[float, float]:
    """Seconds and MB of one run."""
    begun = time.monotonic()
    process = subprocess.Popen(command, cwd=cwd, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    assert status == 0, (command, status)
    return time.monotonic() - begun, used.ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--pages", type=int, default=20_000)
    parser.add_argument("--files", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--wacz", help="the program of py-wacz")
    arguments = parser.parse_args()
    with TemporaryDirectory(prefix="muniment-bench-") as name:
        work = Path(name)
        size = write_archive(work / "out", arguments.pages, arguments.files)
        print(f"{arguments.pages:,} pages, {size / 1e6:.0f} MB in {arguments.files} WARC files\n")
        print("| round | tool | s | MB/s | memory, MB |\n|---|---|---|---|---|")
        warcs = sorted(map(str, (work / "out").glob("*.warc.gz")))
        ours = [sys.executable, "-m", "muniment", "export", "out", "--wacz", "ours.wacz", "--force", "--quiet"]
        theirs = [str(arguments.wacz), "create", "-o", "theirs.wacz", *warcs]
        tools = {"muniment": ours, **({"py-wacz": theirs} if arguments.wacz else {})}
        took: dict[str, list[float]] = {tool: [] for tool in tools}
        for number in range(arguments.rounds):
            for tool, command in tools.items():
                (work / "theirs.wacz").unlink(missing_ok=True)
                seconds, memory = measured(command, work)
                took[tool].append(seconds)
                print(
                    f"| {number + 1} | {tool} | {seconds:.1f} | {size / 1e6 / seconds:.0f} | {memory:.0f} |", flush=True
                )
        if arguments.wacz:
            ratios = [theirs / ours for ours, theirs in zip(took["muniment"], took["py-wacz"], strict=True)]
            print(f"\npy-wacz's time over Muniment's, median: **{statistics.median(ratios):.1f}**")


if __name__ == "__main__":
    main()
