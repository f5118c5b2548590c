"""Spreads time over targets, each in a process of its own, and ends with a line for each."""

from __future__ import annotations

import argparse
import hashlib
import math
import os
import re
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path

from fuzz import TARGETS

PLACE = Path(__file__).resolve().parents[1] / ".fuzz"
"""Corpus and crashes; git ignores it."""
LONGEST_S = 20
"""An input that takes longer hangs."""
MOST_BYTES = 4096


def main() -> int:
    """Fuzz the targets of the command line; 0 when none crashed."""
    given = _arguments()
    each = max(1, given.seconds * given.jobs // len(given.targets))
    with ThreadPoolExecutor(given.jobs) as pool:
        crashes = sum(pool.map(lambda target: _fuzz(target, each), given.targets))
    return 1 if crashes else 0


def _fuzz(target: str, seconds: int) -> int:
    """Fuzz one for so long; how many crashes there were. libFuzzer stops at the first."""
    corpus, crashes = PLACE / target, PLACE / f"{target}-crashes"
    for place in (corpus, crashes):
        place.mkdir(parents=True, exist_ok=True)
    for seed in import_module(f"fuzz.{target}").SEEDS:
        (corpus / hashlib.sha1(seed).hexdigest()).write_bytes(seed)
    before = set(crashes.iterdir())
    end, runs, cpu_seconds, slowest = time.monotonic() + seconds, 0, 0.0, 0
    while (left := math.ceil(end - time.monotonic())) > 0:
        errors, code, spent = _run(_command(target, corpus, crashes, left))
        stats = dict(re.findall(r"stat::(\w+):\s+(\d+)", errors))
        runs += int(stats.get("number_of_executed_units", 0))
        slowest = max(slowest, int(stats.get("slowest_unit_time_sec", 0)))
        cpu_seconds += spent
        fresh = set(crashes.iterdir()) - before
        found = sorted(path.name for path in fresh if not _was_only_slow(target, path))
        if found or not code or not fresh:
            break
        for path in fresh:  # the machine stood still for a while, which is no reason to end early
            path.unlink()
    failed = len(found) or int(code != 0 and not fresh)  # the latter did not even begin
    print(
        f"{target}: {runs} runs in {cpu_seconds:.0f} s of CPU, {failed} crashes, slowest input {slowest} s", flush=True
    )
    if failed:
        print(errors[-3000:], *(f"kept: {crashes / name}" for name in found), sep="\n", flush=True)
    return failed


def _command(target: str, corpus: Path, crashes: Path, seconds: int) -> list[str]:
    limits = [f"-max_total_time={seconds}", f"-timeout={LONGEST_S}", f"-max_len={MOST_BYTES}", "-rss_limit_mb=2048"]
    kept = [f"-artifact_prefix={crashes}/", "-print_final_stats=1"]
    return [sys.executable, "-m", "fuzz.one", target, str(corpus), *limits, *kept]


def _run(command: list[str]) -> tuple[str, int, float]:
    """Run a command: its standard error, its exit code, and the CPU seconds it took."""
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(command, cwd=PLACE.parent, stdout=subprocess.DEVNULL, stderr=errors)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        errors.seek(0)
        text = errors.read().decode(errors="replace")
    return text, process.returncode, usage.ru_utime + usage.ru_stime


def _was_only_slow(target: str, path: Path) -> bool:
    """Whether an input that took long by the clock takes little CPU time: the machine stood still, or was shared."""
    if path.name.startswith("slow-unit"):
        return True
    if not path.name.startswith("timeout"):
        return False
    _, code, cpu_seconds = _run([sys.executable, "-m", "fuzz.one", target, str(path), f"-timeout={30 * LONGEST_S}"])
    return code == 0 and cpu_seconds < LONGEST_S


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/fuzz", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=int, default=60, help="how long altogether (default 60)")
    parser.add_argument("--jobs", type=int, default=2, help="processes beside each other (default 2)")
    parser.add_argument("targets", nargs="*", help=f"which (default all): {' '.join(TARGETS)}")
    given = parser.parse_args()
    given.targets = given.targets or list(TARGETS)
    if unknown := set(given.targets) - set(TARGETS):
        parser.error(f"no target is called {', '.join(sorted(unknown))}; there are {' '.join(TARGETS)}")
    return given


if __name__ == "__main__":
    sys.exit(main())
