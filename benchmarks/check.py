"""`muniment check` against `fastwarc check`: alternating runs over the same WARC files, bytes per second.

Run `python benchmarks/check.py`; `--pages N` for a larger archive, `--files N` to spread it over more files, `--archive
DIR` for one that a crawl made. The archive is otherwise written by Muniment's own writer from generated pages
(benchmarks/make_corpus.py), with request and metadata records and a joined index. Muniment checks block and payload
digests, the grammar, links between records, the index and all else; FastWARC checks block digests, and with `-p`
payload digests too, which it takes with the framing of chunks: it then calls every chunked response broken, and its
exit code does not count. FastWARC takes one file at a time, so it is run once for each, one after the other. Every run
begins as a new process, and the files are in the page cache. CPU seconds are of all processes of a run.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from make_corpus import page
from tests.support.exchanges import MemoryBody, chunk, exchange, page_context

from muniment.archive.index.parquet import join
from muniment.archive.segment import Segment
from muniment.archive.warc.warcinfo import WarcInfo

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


class Program(NamedTuple):
    name: str
    commands: list[list[str]]
    may_complain: bool = False


def taken(program: Program) -> tuple[float, float]:
    """The seconds and the CPU seconds that its commands take, one after the other."""
    start, before = time.perf_counter(), os.times()
    for command in program.commands:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode and not (program.may_complain and done.returncode == 1):
            sys.exit(f"{' '.join(command)}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    after = os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return time.perf_counter() - start, cpu


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--pages", type=int, default=20_000)
    parser.add_argument("--files", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--work", type=Path, help="an archive that an earlier run wrote here is taken again")
    parser.add_argument("--archive", type=Path, help="an archive to measure with instead of a generated one")
    options = parser.parse_args()
    if options.archive:
        measure(options.archive, options.rounds)
        return
    with TemporaryDirectory() as aside:
        out = (options.work or Path(aside)) / f"check-{options.pages}-{options.files}"
        if not out.exists():
            write_archive(out, options.pages, options.files)
        measure(out, options.rounds)


def measure(out: Path, rounds: int) -> None:
    files = sorted(out.glob("*.warc.gz"))
    megabytes = sum(path.stat().st_size for path in files) / 1e6
    fastwarc = str(Path(sys.executable).parent / "fastwarc")
    programs = [
        Program("muniment check", [[sys.executable, "-m", "muniment", "check", str(out)]]),
        Program("fastwarc check", [[fastwarc, "check", "-q", str(path)] for path in files]),
        Program("fastwarc check -p", [[fastwarc, "check", "-q", "-p", str(path)] for path in files], may_complain=True),
    ]
    runs: dict[str, list[tuple[float, float]]] = {program.name: [] for program in programs}
    for number in range(rounds):
        for program in programs if number % 2 else programs[::-1]:
            runs[program.name].append(taken(program))
    print(f"{len(files)} files, {megabytes:.0f} MB, {rounds} rounds\n")
    print("| | MB/s, median | slowest | fastest | CPU s, median | Muniment's rate over it, median | least |")
    print("|---|---|---|---|---|---|---|")
    ours = [seconds for seconds, _ in runs["muniment check"]]
    for name, found in runs.items():
        rates = [megabytes / seconds for seconds, _ in found]
        ratios = [seconds / own for (seconds, _), own in zip(found, ours, strict=True)]
        cpu = statistics.median(cpu for _, cpu in found)
        print(f"| {name} | {statistics.median(rates):.1f} | {min(rates):.1f} | {max(rates):.1f} | {cpu:.2f}", end=" ")
        print(f"| {statistics.median(ratios):.2f} | {min(ratios):.2f} |")


if __name__ == "__main__":
    main()
