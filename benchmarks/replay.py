"""How long `muniment replay` takes until it answers, and the memory it has then, by the number of captures.

Run `python benchmarks/replay.py`; `--captures N` for another index. The index is made of generated
rows, without WARC files. Each round begins as a new process; pywb, which is started beside it, counts in the time only.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from tempfile import TemporaryDirectory

from muniment.archive.index.parquet import index_rows, join
from muniment.model.capture import Capture

FILES = 20


def write_index(out: Path, captures: int) -> None:
    """An index of pages of 5,000 hosts, a third of them with a query."""
    out.mkdir()
    for file in range(FILES):
        name = f"muniment-{file:05d}.warc.gz"
        index_rows(out / "parts", name, [row(name, number) for number in range(file, captures, FILES)])
        (out / name).touch()
    join(out, out / "parts")


def row(name: str, number: int) -> Capture:
    host = f"site{number % 5000}.example"
    url = f"http://{host}/{number // 100}/{number}.html{'?b=2&a=1' if number % 3 else ''}"
    at = 1_795_000_000_000 + number
    return Capture(url, host, 200, at, "text/html", 9_000, f"{number:040x}", False, name, number * 3_000, 2_900, "", "",
                   "", "response", "192.0.2.1", at * 1000, 9, 5, "", "", 1, 1, "a", "", "", "")  # fmt: skip


def measured(out: Path) -> tuple[float, float, float]:
    """Seconds until it answers, seconds of a search, and the MB of memory that it had at most."""
    begun = time.monotonic()
    command = [sys.executable, "-m", "muniment", "replay", str(out), "--no-open", "--json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout
    front = json.loads(process.stdout.readline())["url"]
    ready = time.monotonic() - begun
    begun = time.monotonic()
    with urllib.request.urlopen(f"{front}search?q=42") as answer:
        assert b"search-result" in answer.read()
    search = time.monotonic() - begun
    status = Path(f"/proc/{process.pid}/status").read_text()
    most = next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1]
    process.terminate()
    process.communicate()
    return ready, search, int(most) / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--captures", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    with TemporaryDirectory(prefix="muniment-bench-") as name:
        out = Path(name) / "out"
        write_index(out, arguments.captures)
        print("| captures | ready, s | search, s | memory, MB |\n|---|---|---|---|")
        for _ in range(arguments.rounds):
            ready, search, memory = measured(out)
            print(f"| {arguments.captures:,} | {ready:.1f} | {search:.2f} | {memory:.0f} |", flush=True)


if __name__ == "__main__":
    main()
