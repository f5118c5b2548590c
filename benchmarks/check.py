"""`muniment check` against `fastwarc check`: alternating runs over the same WARC files, bytes per second.

Run `python benchmarks/check.py`; `--pages N` for a larger archive, `--files N` to spread it over more files. The
archive is written by Muniment's own writer from generated pages (benchmarks/make_corpus.py), with request and metadata
records and a joined index. Muniment checks the index, the payload digests and all else too; FastWARC checks block
digests, and with `-p` payload digests. FastWARC takes one file at a time, so it is run once for each, one after the
other. Every run begins as a new process, and the files are in the page cache.
"""

from __future__ import annotations

import argparse
import random
import statistics
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from make_corpus import page

from muniment.archive.index import join
from muniment.archive.records import WarcInfo
from muniment.archive.segment import Segment
from muniment.testing.exchanges import MemoryBody, chunk, exchange, page_context

LINKS = 70
WORDS = 3_000


def write_archive(out: Path, pages: int, files: int) -> int:
    """Write an archive of generated pages and its index; the bytes of its WARC files."""
    out.mkdir()
    chance = random.Random(11)
    words = ["".join(chance.choices("etaoinshrdlucmfwypvbgkjqxz", k=chance.randint(2, 11))) for _ in range(WORDS)]
    for file in range(files):
        segment = Segment.open(out, out / "parts", f"muniment-{file:05d}.warc.gz", WarcInfo(software="muniment/bench"))
        for number in range(file, pages, files):
            write_page(segment, chance, words, number)
        segment.seal()
    join(out, out / "parts")
    return sum(path.stat().st_size for path in out.glob("*.warc.gz"))


def write_page(segment: Segment, chance: random.Random, words: list[str], number: int) -> None:
    """One page as crawls meet them: every fourth chunked, every twentieth an image that does not deflate."""
    url = f"http://site.example/{number // 100}/{number}.html"
    if number % 20 == 7:
        body, kind = chance.randbytes(chance.randint(50_000, 500_000)), "image/png"
    else:
        body, kind = page(chance, words, number, 0), "text/html"
    links = tuple((f"http://site.example/{chance.randrange(99)}/{n}.html", "a") for n in range(LINKS))
    context = page_context(() if kind == "image/png" else links, via="http://site.example/", depth=1)
    content = MemoryBody(chunk(body, 16_000), body) if number % 4 == 0 else MemoryBody(body)
    coding = ("Transfer-Encoding", "chunked") if number % 4 == 0 else ("Content-Length", str(len(body)))
    headers = (("Server", "nginx/1.24.0"), ("Date", "Wed, 18 Nov 2026 11:06:40 GMT"), ("Content-Type", kind), coding)
    segment.write(exchange(url, content, headers=headers, started_at=1_795_000_000_000_000 + number), context)


def seconds(*commands: list[str]) -> float:
    """How long some commands take, one after the other; all of them must find the archive whole."""
    start = time.perf_counter()
    for command in commands:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(f"{' '.join(command)}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--pages", type=int, default=20_000)
    parser.add_argument("--files", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--work", type=Path, help="an archive that an earlier run wrote here is taken again")
    options = parser.parse_args()
    with TemporaryDirectory() as aside:
        out = (options.work or Path(aside)) / f"check-{options.pages}-{options.files}"
        if not out.exists():
            write_archive(out, options.pages, options.files)
        measure(out, options.rounds)


def measure(out: Path, rounds: int) -> None:
    files = sorted(out.glob("*.warc.gz"))
    size = sum(path.stat().st_size for path in files)
    programs = Path(sys.executable).parent
    ours = [[sys.executable, "-m", "muniment", "check", str(out)]]
    theirs = [[str(programs / "fastwarc"), "check", "-q", str(path)] for path in files]
    taken: dict[str, list[float]] = {"muniment check": [], "fastwarc check": []}
    for number in range(rounds):
        turns = [("muniment check", ours), ("fastwarc check", theirs)]
        for name, commands in turns if number % 2 else turns[::-1]:
            taken[name].append(seconds(*commands))
    print(f"{len(files)} files, {size / 1e6:.0f} MB, {rounds} rounds\n")
    print("| | MB/s, median | slowest | fastest |\n|---|---|---|---|")
    for name, times in taken.items():
        rates = [size / 1e6 / one for one in times]
        print(f"| {name} | {statistics.median(rates):.1f} | {min(rates):.1f} | {max(rates):.1f} |")
    ratios = [theirs / ours for ours, theirs in zip(*taken.values(), strict=True)]
    print(f"\nMuniment / FastWARC, round by round: median {statistics.median(ratios):.2f}, least {min(ratios):.2f}")


if __name__ == "__main__":
    main()
