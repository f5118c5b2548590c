"""The tracker by itself, on SQLite and on a PostgreSQL that this script starts.

admission   links a second, 95 % of them known, relations kept, 220 ignore patterns
claims      pages claimed and finished a second in batches of 100: by one caller on SQLite, on PostgreSQL by processes
            that share one job, each with a pipeline of its own
latency     milliseconds of a claim of 100 while ever more pages wait, and how the database finds them
inserts     new pages a second while a tracker on SQLite grows

Usage: python benchmarks/tracker.py [admission|claims|latency|inserts ...] [--on SQLite,PostgreSQL] [--pages N]
                                    [--callers 8] [--sizes 10000,10000000] [--rows 5000000]
"""

from __future__ import annotations

import argparse
import multiprocessing
import secrets
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import select, text

from muniment.clock import now_ms
from muniment.model.link import FoundAs
from muniment.model.page import Claim
from muniment.model.pipeline import Greeting, Pipeline
from muniment.model.place import TrackerPlace
from muniment.model.url import url_key
from muniment.settings import Settings
from muniment.testing.pages import finish_batch, finished
from muniment.testing.postgres import Postgres
from muniment.tracker import claims as claims_module
from muniment.tracker.connect import opened
from muniment.tracker.dispatch import Dispatch
from muniment.tracker.engine import Database
from muniment.tracker.frontier import Frontier
from muniment.tracker.opening import Starts, load_frontier, open_job, submit_job
from muniment.tracker.pipelines import add_pipeline
from muniment.tracker.tables import jobs
from muniment.tracker.tables import pages as pages_table

BATCH, LINKS, KNOWN = 100, 70, 0.95
HOSTS = 40
"""Over which the pages are spread that several callers take."""
EACH = 500_000
"""Rows after which `inserts` tells a rate."""
IGNORES = tuple(rf"/never-{number}/[0-9]+\.php\?" for number in range(220))
SETTINGS = Settings(ignore=IGNORES, robots=False, sitemaps=False)


def site(count: int, hosts: int = 1) -> list[str]:
    return [f"https://site{number % hosts}.example/{number}" for number in range(count)]


@contextmanager
def job(place: TrackerPlace, urls: Sequence[str]) -> Iterator[tuple[Database, Frontier]]:
    """A new job with its start pages."""
    with closing(opened(place)) as db:
        yield db, open_job(db, "benchmark", SETTINGS, Starts(urls), 1).frontier


def claimed(frontier: Frontier) -> list[Claim]:
    return frontier.claim([(host, BATCH) for host in frontier.hosts.names()], 0)


# -- admission


class Web:
    """Pages with 70 links each, most of which lead to the first pages."""

    def __init__(self, known: Sequence[str], share: float) -> None:
        self._known = [(url, url_key(url)) for url in known]
        self._links = round(LINKS * share)
        self._made = 0

    def batch(self, claims: Sequence[Claim]) -> Any:
        """What a worker says of these pages: like a worker, it tells the text of a URL once."""
        told, done = [], []
        for number, claim in enumerate(claims):
            at = [(number * 31 + step * 17 + self._made) % len(self._known) for step in range(self._links)]
            new = [f"https://site0.example/new/{self._made + step}" for step in range(LINKS - self._links)]
            self._made += len(new)
            told += new
            done.append(finished(claim, [(url, FoundAs.A) for url in (*(self._known[i][0] for i in at), *new)]))
        return finish_batch(done, [(url, FoundAs.A) for url in told])


def admission(place: TrackerPlace, pages: int) -> float:
    """Links a second of finishes with 70 links a page; the first batch, which compiles statements, is left out."""
    starts = site(2_000)
    web = Web(starts, KNOWN)
    spent = 0.0
    with job(place, starts) as (_, frontier):
        frontier.finish(web.batch(claimed(frontier)), 0, 1)
        for _ in range(pages // BATCH):
            message = web.batch(claimed(frontier))
            began = time.perf_counter()
            frontier.finish(message, 0, 1)
            spent += time.perf_counter() - began
    return pages * LINKS / spent


def inserts(place: TrackerPlace, rows: int) -> None:
    """Prints new pages a second, as the tracker grows by finishes of which every link is new."""
    starts = site(2_000)
    web = Web(starts, 0)
    with job(place, starts) as (_, frontier):
        inserted, mark, spent = 0, 100_000, 0.0
        since = 0
        while inserted < rows:
            message = web.batch(claimed(frontier))
            began = time.perf_counter()
            frontier.finish(message, 0, 1)
            spent += time.perf_counter() - began
            inserted += BATCH * LINKS
            if inserted >= mark:
                print(f"SQLite: {(inserted - since) / spent:,.0f} new pages/s up to {inserted:,}", flush=True)
                since, spent, mark = inserted, 0.0, (inserted // EACH + 1) * EACH


# -- claims


@dataclass(frozen=True)
class Took:
    """What one caller did, and when (seconds of the machine's clock)."""

    pages: int
    began: float
    ended: float
    cpu: float


def alone(place: TrackerPlace, pages: int) -> float:
    """Pages a second that one caller claims and finishes."""
    spent = 0.0
    with job(place, site(pages)) as (_, frontier):
        frontier.finish(finish_batch([finished(claim) for claim in claimed(frontier)]), 0, 1)
        while True:
            began = time.perf_counter()
            batch = claimed(frontier)
            spent += time.perf_counter() - began
            if not batch:
                return (pages - BATCH) / spent
            message = finish_batch([finished(claim) for claim in batch])
            began = time.perf_counter()
            frontier.finish(message, 0, 1)
            spent += time.perf_counter() - began


_ready: Any = None


def _let_in(ready: Any) -> None:
    global _ready  # noqa: PLW0603  (how a pool hands its processes a barrier)
    _ready = ready


def over(db: Database) -> bool:
    """Whether every job is finished."""
    return set(db.connection.execute(select(jobs.c.state)).scalars()) == {"FINISHED"}


def _caller(arguments: tuple[TrackerPlace, str]) -> Took:
    place, name = arguments
    with closing(opened(place)) as db:
        dispatch = Dispatch(db)
        epoch = dispatch.greet(name, Greeting(secrets.token_hex(8), 1, "1"), now_ms()).epoch
        dispatch.sweep(now_ms())
        _ready.wait()
        began, cpu = time.time(), time.process_time()
        done, ended = 0, began
        while (handed := dispatch.claim(epoch, BATCH, now_ms())) or not over(db):
            if not handed:
                time.sleep(0.01)
            for one in handed or ():
                message = finish_batch([finished(claim) for claim in one.claims])
                dispatch.finish(one.job_id, message, 0, now_ms())
                done, ended = done + len(one.claims), time.time()
        return Took(done, began, ended, time.process_time() - cpu)


def together(place: TrackerPlace, pages: int, callers: int) -> str:
    """Pages a second that processes claim and finish which share one job."""
    names = [f"p{number}" for number in range(callers)]
    with closing(opened(place)) as db:
        submit_job(db, "benchmark", SETTINGS, Starts(site(pages, HOSTS)), 1)
        for name in names:
            add_pipeline(db, Pipeline(name), 1)
    ready = multiprocessing.Barrier(callers)
    with multiprocessing.Pool(callers, _let_in, (ready,)) as pool:
        took = pool.map(_caller, [(place, name) for name in names], chunksize=1)
    done = sum(one.pages for one in took)
    spent = max(one.ended for one in took) - min(one.began for one in took)
    cpu = sum(one.cpu for one in took) / done * 1e6
    lost = f"; {pages - done} were not theirs" if done != pages else ""
    return f"{done / spent:,.0f} pages/s claimed and finished, {callers} callers, {cpu:.0f} µs CPU a page in them{lost}"


# -- latency

_KEYS = {"sqlite": "randomblob(16)", "postgresql": "decode(md5(n::text), 'hex')"}
_FILL = """
    INSERT INTO pages (job_id, id, key, url, host_id, state, attempts_remaining, link_hops, requisite_hops,
                       found_as, via_id, on_site, included, in_scope, ruleset)
    WITH RECURSIVE numbers(n) AS (SELECT 2 UNION ALL SELECT n + 1 FROM numbers WHERE n < {last})
    SELECT 1, n, {key}, 'https://site0.example/' || n, 1, 'READY', 3, 1, 65535, 1, 1, true, true, true, 1 FROM numbers
"""


def fill(db: Database, pages: int) -> None:
    """Make so many pages wait, indexes last."""
    name = db.engine.dialect.name
    with db.transaction() as connection:
        for index in pages_table.indexes:
            index.drop(connection)
        connection.execute(text(_FILL.format(last=pages, key=_KEYS[name]).replace(":", r"\:")))
        for index in pages_table.indexes:
            index.create(connection)


def plan(db: Database) -> list[str]:
    """How the database finds the pages of a claim."""
    values = (1, 1, 0, 1, BATCH)
    if db.engine.dialect.name == "sqlite":
        found = db.connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {claims_module._FOUND.sql}", values)
        return [str(row[3]) for row in found]
    sql = claims_module._FOUND.postgresql.sql.replace("%b", "%s")
    return [str(row[0]) for row in db.connection.exec_driver_sql(f"EXPLAIN (COSTS OFF) {sql}", values)]


def latency(place: TrackerPlace, pages: int) -> tuple[float, float, list[str]]:
    """Milliseconds of a claim of 100 while so many pages wait, median and most of 50, and the plan of it."""
    times = []
    with job(place, site(1)) as (db, _):
        fill(db, pages)
        frontier = load_frontier(db, 1)
        claimed(frontier)
        for _ in range(50):
            began = time.perf_counter()
            batch = claimed(frontier)
            times.append((time.perf_counter() - began) * 1000)
            assert len(batch) == BATCH
        return statistics.median(times), max(times), plan(db)


def measured(name: str, place: TrackerPlace, given: argparse.Namespace) -> Iterator[str]:
    """Lines of what was asked for, on one kind of database; `place` says of each where its tracker lies."""
    if "admission" in given.what:
        yield f"{admission(place(), given.pages // 20):,.0f} links/s admitted"
    if "claims" in given.what and name == "SQLite":
        yield f"{alone(place(), given.pages):,.0f} pages/s claimed and finished, one caller"
    if "claims" in given.what and name == "PostgreSQL":
        yield together(place(shared=True), given.pages, given.callers)
    for size in map(int, given.sizes.split(",")) if "latency" in given.what else ():
        median, most, steps = latency(place(), size)
        yield "\n".join([f"{median:.2f} ms (at most {most:.2f}) for a claim of 100 of {size:,}", *steps])


def main() -> None:
    parser = argparse.ArgumentParser(description="the tracker by itself")
    parser.add_argument("what", nargs="*", default=["admission", "claims", "latency", "inserts"])
    parser.add_argument("--on", default="SQLite,PostgreSQL")
    parser.add_argument("--pages", type=int, default=100_000)
    parser.add_argument("--callers", type=int, default=8)
    parser.add_argument("--sizes", default="10000,100000,1000000,10000000")
    parser.add_argument("--rows", type=int, default=5_000_000)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:

        def in_a_file(**_how: bool) -> TrackerPlace:
            return TrackerPlace(Path(tempfile.mkdtemp(dir=directory)))

        if "SQLite" in given.on:
            for line in measured("SQLite", in_a_file, given):
                print(f"SQLite: {line}", flush=True)
            if "inserts" in given.what:
                inserts(in_a_file(), given.rows)
        if "PostgreSQL" in given.on:
            with Postgres(["shared_buffers=512MB"], safe=True) as server:

                def on_the_server(*, shared: bool = False) -> TrackerPlace:
                    database = server.create(f"bench{secrets.token_hex(4)}")
                    return TrackerPlace(Path(directory), database, "" if shared else secrets.token_hex(16))

                for line in measured("PostgreSQL", on_the_server, given):
                    print(f"PostgreSQL: {line}", flush=True)


if __name__ == "__main__":
    main()
