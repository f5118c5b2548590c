"""The tracker by itself, on SQLite and on a PostgreSQL that this script starts: admission, claims and finishes.

admission   links a second, 95 % of them known, relations kept, 220 ignore patterns
claims      pages claimed and finished a second in batches of 100; on PostgreSQL by several processes, each with its job
latency     milliseconds of a claim of 100 at growing numbers of pages that wait

Usage: python benchmarks/tracker.py [admission|claims|latency ...] [--pages N] [--callers 8] [--sizes 10000,100000]
"""

from __future__ import annotations

import argparse
import multiprocessing
import secrets
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from muniment.model.link import FoundAs
from muniment.model.page import Claim
from muniment.model.place import TrackerPlace
from muniment.settings import Settings
from muniment.testing.pages import Links, finish_batch, finished
from muniment.testing.postgres import Postgres
from muniment.tracker.connect import opened
from muniment.tracker.frontier import Frontier
from muniment.tracker.opening import Starts, open_job

BATCH, LINKS, NEW = 100, 70, 0.05
HOST = "https://site.example"
IGNORES = tuple(rf"/never-{number}/[0-9]+\.php\?" for number in range(220))


@contextmanager
def job(place: TrackerPlace, urls: list[str]) -> Iterator[Frontier]:
    """A new job with its start pages."""
    settings = Settings(ignore=IGNORES, robots=False, sitemaps=False)
    with closing(opened(place)) as db:
        yield open_job(db, "benchmark", settings, Starts(urls), 1).frontier


def claimed(frontier: Frontier, most: int = BATCH) -> list[Claim]:
    return frontier.claim([(host, most) for host in frontier.hosts.names()], 0)


def admission(place: TrackerPlace, pages: int) -> float:
    """Links a second of finishes with 70 links a page."""
    told = 0
    seen = [f"{HOST}/{number}" for number in range(2_000)]
    with job(place, seen) as frontier:
        batches = []
        fresh = len(seen)
        for _ in range(pages // BATCH):
            batch: list[Links] = []
            for page in range(BATCH):
                known = [seen[(page * 31 + step * 17) % len(seen)] for step in range(int(LINKS * (1 - NEW)))]
                new = [f"{HOST}/{fresh + step}" for step in range(LINKS - len(known))]
                fresh += len(new)
                batch.append([(url, FoundAs.A) for url in (*known, *new)])
            batches.append(batch)
        spent = 0.0
        for batch in batches:
            claims = claimed(frontier)
            done = [finished(claim, links) for claim, links in zip(claims, batch, strict=True)]
            message = finish_batch(done, [link for links in batch for link in links])
            began = time.perf_counter()
            frontier.finish(message, 0, 1)
            spent += time.perf_counter() - began
            told += sum(map(len, batch))
    return told / spent


def claims(place: TrackerPlace, pages: int) -> tuple[int, float, float]:
    """Pages, and the times at which claiming and finishing them began and ended."""
    with job(place, [f"{HOST}/{number}" for number in range(pages)]) as frontier:
        began = time.time()
        done = 0
        while batch := claimed(frontier):
            frontier.finish(finish_batch([finished(claim) for claim in batch], []), 0, 1)
            done += len(batch)
        return done, began, time.time()


def _caller(arguments: tuple[TrackerPlace, int]) -> tuple[int, float, float]:
    return claims(*arguments)


def latency(place: TrackerPlace, pages: int) -> float:
    """Median milliseconds of a claim of 100 while many pages wait."""
    times = []
    with job(place, [f"{HOST}/{number}" for number in range(pages)]) as frontier:
        for _ in range(30):
            began = time.perf_counter()
            batch = claimed(frontier)
            times.append(time.perf_counter() - began)
            assert len(batch) == BATCH
    return statistics.median(times) * 1000


def main() -> None:
    parser = argparse.ArgumentParser(description="the tracker by itself")
    parser.add_argument("what", nargs="*", default=["admission", "claims", "latency"])
    parser.add_argument("--pages", type=int, default=20_000)
    parser.add_argument("--callers", type=int, default=8)
    parser.add_argument("--sizes", default="10000,100000,1000000")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory, Postgres(["shared_buffers=512MB"], safe=True) as server:

        def in_a_file() -> TrackerPlace:
            return TrackerPlace(Path(tempfile.mkdtemp(dir=directory)))

        def on_the_server() -> TrackerPlace:
            return TrackerPlace(Path(directory), server.url(), secrets.token_hex(16))

        kinds = {"SQLite": in_a_file, "PostgreSQL": on_the_server}
        for name, place in kinds.items():
            if "admission" in given.what:
                print(f"{name}: {admission(place(), given.pages // 10):,.0f} links/s admitted", flush=True)
            for size in map(int, given.sizes.split(",")) if "latency" in given.what else ():
                print(f"{name}: {latency(place(), size):.2f} ms for a claim of 100 of {size:,}", flush=True)
        if "claims" in given.what:
            done, began, ended = claims(in_a_file(), given.pages)
            print(f"SQLite: {done / (ended - began):,.0f} pages/s claimed and finished, one caller", flush=True)
            each = [(on_the_server(), given.pages) for _ in range(given.callers)]
            with multiprocessing.Pool(given.callers) as pool:
                runs = pool.map(_caller, each, chunksize=1)
            spent = max(end for _, _, end in runs) - min(begin for _, begin, _ in runs)
            total = sum(done for done, _, _ in runs)
            print(f"PostgreSQL: {total / spent:,.0f} pages/s claimed and finished, {given.callers} callers", flush=True)


if __name__ == "__main__":
    main()
