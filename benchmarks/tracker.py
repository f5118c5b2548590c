"""The tracker by itself, on SQLite and on a PostgreSQL that this script starts.

admission   links a second, 95 % of them known, relations kept, 220 ignore patterns
claims      pages claimed and finished a second in batches of 100: by one caller on SQLite, on PostgreSQL by processes
            that share one job, each with a pipeline of its own
growth      milliseconds of a claim of 100 while ever more pages wait, how the database finds them, and the rate of new
            pages

Usage: python benchmarks/tracker.py [admission|claims|growth ...] [--on SQLite,PostgreSQL] [--pages N] [--callers 8]
                                    [--sizes 10000,10000000]
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
from functools import cache
from pathlib import Path
from typing import Any

from sqlalchemy import select, text
from tests.support.pages import finish_batch, finished
from tests.support.postgres import Postgres

from muniment.clock import now_ms
from muniment.model.link import FoundAs
from muniment.model.page import Claim
from muniment.model.pipeline import Greeting, Pipeline
from muniment.model.place import TrackerPlace
from muniment.model.url import url_key
from muniment.settings.option_table import Settings
from muniment.tracker.connect import opened
from muniment.tracker.db.database import Database
from muniment.tracker.fleet.dispatch import Dispatch
from muniment.tracker.fleet.pipelines import add_pipeline
from muniment.tracker.open import StartPages, load_frontier, open_job, submit_job
from muniment.tracker.queue import claims as claims_module
from muniment.tracker.queue.frontier import Frontier
from muniment.tracker.schema.tables import jobs
from muniment.tracker.schema.tables import pages as pages_table

BATCH, LINKS, KNOWN = 100, 70, 0.95
HOSTS = 40
"""Over which the pages are spread that several callers take."""
IGNORES = tuple(rf"/never-{number}/[0-9]+\.php\?" for number in range(220))
SETTINGS = Settings(ignore=IGNORES, robots=False, sitemaps=False)


def site(count: int, hosts: int = 1) -> list[str]:
    return [f"https://site{number % hosts}.example/{number}" for number in range(count)]


@contextmanager
def job(place: TrackerPlace, urls: Sequence[str]) -> Iterator[tuple[Database, Frontier]]:
    """A new job with its start pages."""
    with closing(opened(place)) as db:
        yield db, open_job(db, "benchmark", SETTINGS, StartPages(urls), 1).frontier


@cache
def hosts_of(frontier: Frontier) -> tuple[int, ...]:
    """The hosts of the start pages; links lead to no others."""
    return tuple(frontier.pending())


def claimed(frontier: Frontier) -> list[Claim]:
    return frontier.claim([(host, BATCH) for host in hosts_of(frontier)], 0).claims


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


class Clock:
    """Sums what it is held around, in seconds of the machine and of this process's CPU."""

    def __init__(self) -> None:
        self.seconds = self.cpu = 0.0

    def __enter__(self) -> None:
        self._began = time.perf_counter(), time.process_time()

    def __exit__(self, *_: object) -> None:
        self.seconds += time.perf_counter() - self._began[0]
        self.cpu += time.process_time() - self._began[1]

    def rate(self, count: int, what: str) -> str:
        """So many a second, and in a second of CPU, which other work on the machine changes less."""
        return f"{count / self.seconds:,.0f} {what} a second, {count / self.cpu:,.0f} a second of its CPU"


def admission(place: TrackerPlace, pages: int) -> str:
    """Rate of finishes with 70 links a page; the first batch, which compiles statements, is left out."""
    starts = site(2_000)
    web = Web(starts, KNOWN)
    spent = Clock()
    with job(place, starts) as (_, frontier):
        frontier.finish(web.batch(claimed(frontier)), 0, 1)
        for _ in range(pages // BATCH):
            message = web.batch(claimed(frontier))
            with spent:
                frontier.finish(message, 0, 1)
    return spent.rate(pages * LINKS, "links admitted")


def inserts(frontier: Frontier, batches: int) -> str:
    """Rate of new pages by finishes of which every link is new."""
    web, spent = Web(site(1), 0), Clock()
    for _ in range(batches):
        message = web.batch(claimed(frontier))
        with spent:
            frontier.finish(message, 0, 1)
    return spent.rate(batches * BATCH * LINKS, "new pages")


# -- claims


@dataclass(frozen=True)
class Took:
    """What one caller did, and when (seconds of the machine's clock)."""

    pages: int
    began: float
    ended: float
    cpu: float


def alone(place: TrackerPlace, pages: int) -> str:
    """Rate of pages that one caller claims and finishes; the first batch is left out."""
    spent = Clock()
    with job(place, site(pages)) as (_, frontier):
        frontier.finish(finish_batch([finished(claim) for claim in claimed(frontier)]), 0, 1)
        for _ in range(pages // BATCH - 1):
            with spent:
                batch = claimed(frontier)
            message = finish_batch([finished(claim) for claim in batch])
            with spent:
                frontier.finish(message, 0, 1)
    return spent.rate(pages - BATCH, "pages claimed and finished")


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
        submit_job(db, "benchmark", SETTINGS, StartPages(site(pages, HOSTS)), 1)
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

_FILL_KEYS = """
    INSERT INTO page_keys SELECT job_id, key, id FROM pages
    WHERE NOT EXISTS (SELECT 1 FROM page_keys k WHERE k.job_id = pages.job_id AND k.key = pages.key)
    ORDER BY job_id, key
"""


def fill(db: Database, pages: int) -> None:
    """Make so many pages wait, indexes last."""
    name = db.engine.dialect.name
    with db.transaction() as connection:
        for index in pages_table.indexes:
            index.drop(connection)
        connection.execute(text(_FILL.format(last=pages, key=_KEYS[name]).replace(":", r"\:")))
        connection.execute(text(_FILL_KEYS))
        for index in pages_table.indexes:
            index.create(connection)


def plan(db: Database) -> list[str]:
    """How the database finds the pages of a claim."""
    values = (1, 1, 0, 1, BATCH)
    found = claims_module._FOUND
    if db.engine.dialect.name == "sqlite":
        rows = db.connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {found.sql}", found.complete(values))
        return [str(row[3]) for row in rows]
    server = found.postgresql
    rows = db.connection.exec_driver_sql(
        f"EXPLAIN (COSTS OFF) {server.sql.replace('%b', '%s')}", server.complete(values)
    )
    return [str(row[0]) for row in rows]


def growth(place: TrackerPlace, pages: int) -> Iterator[str]:
    """What a claim and new pages cost while so many pages wait."""
    with job(place, site(1)) as (db, _):
        fill(db, pages)
        frontier = load_frontier(db, 1)
        claimed(frontier)
        times, cpu = [], []
        for _ in range(50):
            clock = Clock()
            with clock:
                batch = claimed(frontier)
            assert len(batch) == BATCH
            times.append(clock.seconds * 1000)
            cpu.append(clock.cpu * 1000)
        median = statistics.median(times)
        yield f"{median:.2f} ms (CPU {statistics.median(cpu):.2f}) for a claim of 100 of {pages:,}, by this plan:"
        yield from plan(db)
        yield f"{inserts(frontier, 10)}, beside {pages:,}"


def measured(name: str, place: TrackerPlace, given: argparse.Namespace) -> Iterator[str]:
    """Lines of what was asked for, on one kind of database; `place` says of each where its tracker lies."""
    if "admission" in given.what:
        yield admission(place(), given.pages // 20)
    if "claims" in given.what and name == "SQLite":
        yield f"{alone(place(), given.pages)}, one caller"
    if "claims" in given.what and name == "PostgreSQL":
        yield together(place(shared=True), given.pages, given.callers)
    for size in map(int, given.sizes.split(",")) if "growth" in given.what else ():
        yield from growth(place(), size)


def main() -> None:
    parser = argparse.ArgumentParser(description="the tracker by itself")
    parser.add_argument("what", nargs="*", default=["admission", "claims", "growth"])
    parser.add_argument("--on", default="SQLite,PostgreSQL")
    parser.add_argument("--pages", type=int, default=100_000)
    parser.add_argument("--callers", type=int, default=8)
    parser.add_argument("--sizes", default="10000,100000,1000000,5000000,10000000")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:

        def in_a_file(**_how: bool) -> TrackerPlace:
            return TrackerPlace(Path(tempfile.mkdtemp(dir=directory)))

        if "SQLite" in given.on:
            for line in measured("SQLite", in_a_file, given):
                print(f"SQLite: {line}", flush=True)
        if "PostgreSQL" in given.on:
            with Postgres(["shared_buffers=512MB"], safe=True) as server:

                def on_the_server(*, shared: bool = False) -> TrackerPlace:
                    database = server.create(f"bench{secrets.token_hex(4)}")
                    return TrackerPlace(Path(directory), database, "" if shared else secrets.token_hex(16))

                for line in measured("PostgreSQL", on_the_server, given):
                    print(f"PostgreSQL: {line}", flush=True)


if __name__ == "__main__":
    main()
