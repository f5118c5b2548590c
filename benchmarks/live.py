"""Fetches pages with `--redis`, and says what the live plane costs: CPU time, commands and bytes to Redis, and delay.

The CPU time of the plane is that of all threads of the orchestrator but its main one, which are read a few times a
second, and what writing the log costs in the main one, which is measured alone over as many entries. Commands and bytes
are counted by the server. The delay is from the end of a response to its line at `muniment firehose --redis`. Prints a
Markdown table.

Usage: python benchmarks/live.py [--corpus DIR] [--files N] [--copies N] [--cores LIST] [--work DIR]
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from crawl import SERVER
from make_corpus import make_corpus
from msgspec import structs
from own_memory import own_memory
from tests.support.nginx import Nginx
from tests.support.redis_server import RedisServer

from muniment.live.log_file import JobLog
from muniment.model.network.live import LogPosition
from muniment.model.page import PageResult
from muniment.model.queue import Totals

MUNIMENT = [sys.executable, "-m", "muniment"]
OVERHEAD = {"info", "config|resetstat", "config", "ping", "client|setinfo"}
"""Commands of this program, or of a connection's beginning."""
TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = PageResult(1, 1, 1, 200, "", True, 0, 0, 1500, 3, b"", b"", b"", True)


class ThreadWatch(threading.Thread):
    """Reads what the threads of a process beside its main one have used, as long as it lives."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self._tasks, self._main = Path(f"/proc/{pid}/task"), str(pid)
        self.used: dict[str, float] = {}

    @property
    def seconds(self) -> float:
        return sum(self.used.values())

    def run(self) -> None:
        with suppress(OSError):
            while True:
                for task in self._tasks.iterdir():
                    if task.name != self._main:
                        self.used[task.name] = used_by(task)
                time.sleep(0.05)


def used_by(task: Path) -> float:
    fields = (task / "stat").read_text().rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def log_seconds(pages: int) -> float:
    """What it takes to write the entries of so many pages, of which a batch has ten."""
    with tempfile.TemporaryDirectory() as home:
        log = JobLog(Path(home) / "log.jsonl", LogPosition(), reports=False)
        urls = [(f"http://127.0.0.2:8080/some/path/of/a/page/{n}.html", 200, "", 56_000, 1500) for n in range(10)]
        batch = [structs.replace(_PAGE, exchanges=(url,)) for url in urls]
        begun = time.process_time()
        for _ in range(pages // 10):
            log.write(batch)
            log.commit(Totals())
        taken = time.process_time() - begun
        log.close()
    return taken


def fetch(urls: list[str], work: Path, redis: str, cores: set[int]) -> tuple[float, float, float]:
    """Seconds, CPU seconds, and those of the live plane's thread."""
    with tempfile.TemporaryDirectory(prefix="bench-live-", dir=work) as home:
        seed = Path(home) / "seed.txt"
        seed.write_text("".join(f"{url}\n" for url in urls))
        options = ["--workers", "2", "--per-host", "64", "--quiet", "--redis", redis]
        command = [*MUNIMENT, "fetch", str(seed), "--out", f"{home}/out", *options]
        begun = time.perf_counter()
        process = subprocess.Popen(["taskset", "-c", ",".join(map(str, sorted(cores))), *command])
        watch = ThreadWatch(process.pid)
        watch.start()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        assert process.returncode == 0, f"exit {process.returncode}"
        return time.perf_counter() - begun, usage.ru_utime + usage.ru_stime, watch.seconds


def delays(urls: list[str], work: Path, server: RedisServer, cores: set[int]) -> list[float]:
    """Milliseconds from the end of each response to its line at a subscriber."""
    command = ["taskset", "-c", ",".join(map(str, sorted(cores))), *MUNIMENT, "firehose", "--redis", server.url]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as reader:
        while not server.client.pubsub_numsub("updates")[0][1]:
            time.sleep(0.05)
        found: list[float] = []
        hearing = threading.Thread(target=hear, args=(reader, found))
        hearing.start()
        fetch(urls, work, server.url, cores)
        time.sleep(1)
        reader.terminate()
        hearing.join()
    return found


def hear(reader: subprocess.Popen[bytes], found: list[float]) -> None:
    assert reader.stdout is not None
    for line in reader.stdout:
        at = time.time()
        entry: dict[str, Any] = json.loads(line)
        if entry["type"] == "download":
            found.append((at - entry["ts"]) * 1000)


def measured(urls: list[str], work: Path, server: RedisServer, cores: set[int]) -> str:
    """The table of a run, and of one more with a subscriber."""
    redis = server.client
    redis.config_resetstat()
    seconds, cpu, thread = fetch(urls, work, server.url, cores)
    counts = {name.removeprefix("cmdstat_"): int(said["calls"]) for name, said in redis.info("commandstats").items()}
    received = int(redis.info("stats")["total_net_input_bytes"])
    writing, thousands = log_seconds(len(urls)), len(urls) / 1000
    calls = sum(count for name, count in counts.items() if name not in OVERHEAD)
    most = sorted(counts.items(), key=lambda one: -one[1])[:8]
    heard = sorted(delays(urls, work, server, cores))
    assert len(heard) >= len(urls), f"{len(heard)} of {len(urls)} entries were heard"
    rows = {
        "pages a second": f"{len(urls) / seconds:.0f}",
        "CPU of Muniment, s": f"{cpu:.2f}",
        "of that the live plane": f"{100 * (thread + writing) / cpu:.2f} % (goal: 3)",
        "its thread and others, s; writing the log, s": f"{thread:.3f}; {writing:.3f}",
        "commands per 1000 pages": f"{calls / thousands:.0f} (goal: 100)",
        "of these": ", ".join(f"{name} {count}" for name, count in most),
        "kB to Redis per 1000 pages": f"{received / thousands / 1000:.0f} (goal: 400)",
        "response's end to a line of the firehose, ms": f"median {statistics.median(heard):.0f} (goal: 250), "
        f"p99 {heard[len(heard) * 99 // 100]:.0f}",
    }  # fmt: skip
    return "\n".join(["| | |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows.items())])


def main() -> None:
    parser = argparse.ArgumentParser(description="what the live plane costs")
    parser.add_argument("--corpus", type=Path, help="where the files are, or will be kept (default: temporary)")
    parser.add_argument("--files", type=int, default=1000)
    parser.add_argument("--copies", type=int, default=10, help="of each file, every one with other first bytes")
    parser.add_argument("--work", type=Path, default=Path(tempfile.gettempdir()), help="where archives are written")
    parser.add_argument("--cores", default="0,1", help="the cores that nginx and Muniment share")
    given = parser.parse_args()
    cores = set(map(int, given.cores.split(","))) & os.sched_getaffinity(0)
    with tempfile.TemporaryDirectory(prefix="bench-live-") as home:
        corpus = given.corpus or Path(home) / "corpus"
        paths = make_corpus(corpus, given.files, given.copies)
        size = sum((corpus / path).stat().st_size for path in paths)
        server = RedisServer(Path(home))
        try:
            with Nginx(corpus, addresses=["127.0.0.2"], access_log=False, http=SERVER) as site, own_memory(size):
                print(f"{len(paths)} URLs, {size / len(paths) / 1000:.1f} kB on average, {len(cores)} CPUs\n")
                print(measured([site.url + path for path in paths], given.work, server, cores))
        finally:
            server.close()


if __name__ == "__main__":
    main()
