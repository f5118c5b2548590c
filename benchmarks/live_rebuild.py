"""Empties a Redis that shows many jobs, and says how long it takes until it shows all of them again.

Of ten jobs seven are idle, one is worked at by a session, and two have ended. Prints when all that are worked at have
a heartbeat again, when all jobs are there, and the CPU time of the server and of Redis meanwhile.

Usage: python benchmarks/live_rebuild.py [--jobs N] [--lines N] [--tries N] [--state]
"""

from __future__ import annotations

import argparse
import asyncio
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import psutil
from fleet_scale import Client, cpu_of
from sqlalchemy import func, select, update
from tests.support.fleet import Fleet
from tests.support.postgres import Postgres
from tests.support.redis_server import RedisServer

from muniment.clock import now_ms
from muniment.live.entries import ServerEntries
from muniment.model.job import JobTerms
from muniment.model.network.live import LogEntry
from muniment.model.pipeline import Pipeline
from muniment.model.place import TrackerPlace
from muniment.settings.option_table import Settings
from muniment.tracker.connect import tracker_at
from muniment.tracker.db.database import Database
from muniment.tracker.fleet.pipelines import add_pipeline
from muniment.tracker.jobs import job_log
from muniment.tracker.jobs.terms import change_terms
from muniment.tracker.open import StartPages, submit_job
from muniment.tracker.schema.live import live_jobs
from muniment.tracker.schema.tables import jobs

PATIENCE_S = 300


def add_jobs(db: Database, count: int, lines: int) -> None:
    """Nine of ten ask for a tag that no pipeline has; each of the others takes one slot."""
    for number in range(count):
        url = f"http://j{number}.example/"
        job = submit_job(db, f"job {number}", Settings(out=""), StartPages([url]), now_ms()).job.job_id
        terms = JobTerms(tags=frozenset({"none"})) if number % 10 else JobTerms(concurrency=1)
        change_terms(db, job, "benchmark", terms, now_ms())
        entries = [LogEntry(now_ms(), f"{url}{n}/a-page-of-this-site", 200) for n in range(lines)]
        job_log.add_lines(db, job, entries, ServerEntries())


def end_some(db: Database) -> None:
    """Two of ten have ended."""
    ended = {"state": "FINISHED", "outcome": "completed", "finished_at": now_ms()}
    with db.transaction():
        db.connection.execute(update(jobs).where((jobs.c.id % 10).in_([5, 6])).values(ended))


def ends_shown(db: Database) -> int:
    return int(db.connection.execute(select(func.count()).where(live_jobs.c.ending == "SHOWN")).scalar_one())


async def until(holds: Callable[[], bool]) -> float:
    """Seconds until something is so."""
    began = time.monotonic()
    while not holds():
        assert time.monotonic() - began < PATIENCE_S, "it did not come"
        await asyncio.sleep(0.05)
    return time.monotonic() - began


async def work_at_some(port: int, token: str, slots: int) -> Client:
    """A session that has a page of each job that it may have."""
    client = Client(port, token, {})
    greeting = {"instance": "ab", "slots": slots, "version": "benchmark", "protocol": 1}
    client.epoch = (await client.ask("", "POST", "/v1/session", greeting))["epoch"]
    want = [{"slot": slot, "pages": 1} for slot in range(slots)]
    await client.ask("", "POST", f"/v1/session/{client.epoch}/claim", {"ask": 1, "want": want, "wait_s": 0})
    return client


async def beat(client: Client) -> None:
    while True:
        await client.ask("", "POST", f"/v1/session/{client.epoch}/heartbeat", {})
        await asyncio.sleep(5)


async def measured(
    given: argparse.Namespace, redis: RedisServer, db: Database, port: int, token: str, pid: int
) -> None:
    client = await work_at_some(port, token, given.jobs // 10)
    beating = asyncio.create_task(beat(client))
    shown = redis.client
    first = await until(lambda: shown.llen("working") == given.jobs)
    print(f"shown for the first time after {first:.1f} s", flush=True)
    end_some(db)
    ended = given.jobs // 10 * 2
    await until(lambda: ends_shown(db) == ended)
    idents = {
        int(job): str(ident) for job, ident in db.connection.execute(select(live_jobs.c.job_id, live_jobs.c.ident))
    }
    at_work = [ident for job, ident in idents.items() if job % 10 == 1]
    processes = {"server": [psutil.Process(pid)], "redis": [psutil.Process(redis.process.pid)]}
    for _ in range(given.tries):
        await asyncio.sleep(5)
        before = {name: cpu_of(some) for name, some in processes.items()}
        shown.flushall()
        beats = await until(lambda: all(shown.hmget(ident, "heartbeat")[0] for ident in at_work))
        rest = await until(lambda: shown.exists(*(f"{ident}_log" for ident in idents.values())) == given.jobs)
        spent = ", ".join(f"{name} {cpu_of(some) - before[name]:.1f} CPU-s" for name, some in processes.items())
        load = os.getloadavg()[0]
        print(f"heartbeats after {beats:.1f} s, all after {beats + rest:.1f} s; {spent}; load {load:.1f}", flush=True)
    beating.cancel()
    client.close()


def main() -> None:
    parser = argparse.ArgumentParser(description="shows jobs anew in a Redis that was emptied")
    parser.add_argument("--jobs", type=int, default=1000)
    parser.add_argument("--lines", type=int, default=300, help="of each log")
    parser.add_argument("--tries", type=int, default=3)
    parser.add_argument("--state", action="store_true", help="a tracker in a file")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-live-") as home, Postgres(on_disk=True) as postgres:
        work = Path(home)
        url = "" if given.state else postgres.create("live")
        state = work / "state"
        state.mkdir()
        os.environ["MUNIMENT_REDIS"] = (redis := RedisServer(work)).url
        try:
            with Fleet(work / "work", ("--database", url) if url else ("--state", str(state))) as fleet:
                run(given, redis, fleet, TrackerPlace(state, url))
        finally:
            redis.close()


def run(given: argparse.Namespace, redis: RedisServer, fleet: Fleet, place: TrackerPlace) -> None:
    with tracker_at(place) as db:
        token = add_pipeline(db, Pipeline("p"), now_ms())
        add_jobs(db, given.jobs, given.lines)
    fleet.serve()
    process = fleet.servers[0].process
    assert process is not None
    with tracker_at(place) as db:
        asyncio.run(measured(given, redis, db, fleet.relays[0].target[1], token, process.pid))


if __name__ == "__main__":
    main()
