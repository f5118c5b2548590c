"""The fault harness: many rounds of a small crawl that is killed, frozen, cut off, sent away and given no room.

    python tests/faults/harness.py --rounds 1000 --seed 1 --jobs 4
    python tests/faults/harness.py --round-seed 1000017

Each round has a seed of its own, from which all that happens in it is drawn; the second form replays one. The log is
JSON lines. Needs root, because each round mounts a small disk that it can fill, and nginx.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from places import PAGES, Site, make_site
from rounds import Launch, Round, Verdict
from strikes import draw, undisturbed

BESIDE_PAGES = 21
"""What the maze serves beside its pages: an image of every tenth, and a second name of the first."""


def main() -> int:
    """Run the rounds of the command line; 0 when nothing was lost in any."""
    given = _arguments()
    work = Path(tempfile.mkdtemp(prefix="muniment-harness-"))
    log = given.log or work / "log.jsonl"
    seeds = [given.round_seed] if given.round_seed is not None else list(round_seeds(given.seed, given.rounds))
    print(f"log: {log}", flush=True)
    began = time.monotonic()
    plain = run_round(0, work, log)
    if plain.complaints:
        _show(plain)
        return 1
    verdicts = list(_all(seeds, work, log, given.jobs))
    failed = [verdict for verdict in verdicts if verdict.complaints]
    _sum_up(given.seed, verdicts, len(failed), time.monotonic() - began)
    if not failed and given.log:
        shutil.rmtree(work)
    return 1 if failed else 0


def round_seeds(seed: int, rounds: int) -> range:
    """The seeds of the rounds of a harness's seed."""
    return range(seed * 1_000_000 + 1, seed * 1_000_000 + 1 + rounds)


def run_round(seed: int, work: Path, log: Path, launch: Launch = subprocess.Popen) -> Verdict:
    """One round in a directory of its own, which stays there when it failed; seed 0 disturbs nothing."""
    place = Path(tempfile.mkdtemp(prefix=f"round-{seed}-", dir=work))
    script = draw(seed, PAGES + BESIDE_PAGES) if seed else undisturbed()
    verdict = Round(script, _site(), place, _writer(log), launch=launch).run()
    if not verdict.complaints:
        shutil.rmtree(place)
    return verdict


@cache
def _site() -> Site:
    """One site for all rounds of a process; it goes with the process."""
    holder = tempfile.TemporaryDirectory(prefix="muniment-maze-")
    _KEPT.append(holder)
    return make_site(Path(holder.name) / "site")


_KEPT: list[tempfile.TemporaryDirectory[str]] = []


def _writer(log: Path) -> Any:
    def write(event: str, **fields: Any) -> None:
        line = {"ts": datetime.now(UTC).isoformat(timespec="milliseconds"), "event": event, **fields}
        with log.open("a") as file:  # a line at once, for others write too
            file.write(json.dumps(line) + "\n")

    return write


def _all(seeds: list[int], work: Path, log: Path, jobs: int) -> Iterator[Verdict]:
    # Not forked: rounds have threads.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, mp_context=context) as pool:
        rounds = [pool.submit(run_round, seed, work, log) for seed in seeds]
        for done, future in enumerate(as_completed(rounds), 1):
            verdict = future.result()
            if verdict.complaints:
                _show(verdict)
            elif done % 25 == 0:
                print(f"{done} rounds", flush=True)
            yield verdict


def _show(verdict: Verdict) -> None:
    print(f"round {verdict.seed} failed; again with: --round-seed {verdict.seed}", flush=True)
    for complaint in verdict.complaints:
        print(f"    {complaint}", flush=True)


def _sum_up(seed: int, verdicts: list[Verdict], failed: int, seconds: float) -> None:
    struck: Counter[str] = Counter()
    for verdict in verdicts:
        struck.update(verdict.struck)
    kinds = ", ".join(f"{kind} {count}" for kind, count in struck.most_common())
    runs = sum(verdict.runs for verdict in verdicts)
    requests = sum(verdict.requests for verdict in verdicts)
    print(
        f"seed {seed}: {len(verdicts)} rounds in {seconds:.0f} s, {sum(struck.values())} strikes ({kinds}), "
        f"{runs} runs, {requests} requests; {failed} rounds failed"
    )


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=30, help="how many (default 30)")
    parser.add_argument("--seed", type=int, default=1, help="what the rounds' own seeds are drawn from (default 1)")
    parser.add_argument("--jobs", type=int, default=2, help="rounds beside each other (default 2)")
    parser.add_argument("--round-seed", type=int, help="replay one round")
    parser.add_argument("--log", type=Path, help="where the log goes (default: in a directory of its own)")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
