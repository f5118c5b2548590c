"""`muniment live status` of a server, and a log whose readers stand still."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.support.archivebot import Bot
from tests.support.gated_site import Answer, GatedSite
from tests.support.live_site import linked_pages
from tests.support.nginx import Nginx, closed_port
from tests.support.redis_server import RedisServer, eventually
from tests.support.served import Served

from muniment.clock import now_ms
from muniment.live.entries import ServerEntries
from muniment.model.network.live import LogEntry
from muniment.model.place import TrackerPlace
from muniment.settings.option_table import Settings
from muniment.tracker.connect import tracker_at
from muniment.tracker.jobs import job_log
from muniment.tracker.open import StartPages, submit_job

MOST, PART, PARTS = 100_000, 4000, 27
IDLE = 150


@pytest.mark.long
@pytest.mark.points(3, 33, 36, 52)
def test_readers_that_stand_still_lose_the_oldest_entries(
    muniment: Any, redis_server: RedisServer, nginx: Callable[..., Nginx], tmp_path: Path, postgres: Any
) -> None:
    """Where analyzer and broadcaster are left to others, 100,000 entries stay; the status says what left."""
    site, database = nginx(linked_pages(tmp_path / "site", 5)), postgres.create("left_out")
    served = Served(muniment, redis_server, tmp_path, "--database", database)
    redis, token = redis_server.client, served.register("berlin-1")
    with served.serve("--redis-roles", "reaper,taker") as serve, served.pipeline(token):
        ident = Bot(redis).queue(site.url, delay_min="60000", delay_max="60000")
        assert redis_server.working() == ident
        eventually(lambda: redis.hget(ident, "log_score"))  # of a log that is there before, only the end is written
        with tracker_at(TrackerPlace(tmp_path, database)) as db:
            for part in range(PARTS):
                lines = [LogEntry(1, f"line {part * PART + number}") for number in range(PART)]
                job_log.add_lines(db, 1, lines, ServerEntries())
        eventually(lambda: int(redis.hget(ident, "log_score") or 0) > PART * PARTS, within_s=120)
        eventually(lambda: redis.zcard(f"{ident}_log") <= MOST)
        eventually(lambda: _status(muniment, redis_server)["jobs"][0]["left_out"] > PART * PARTS - MOST - 1000)
        told = _status(muniment, redis_server)
    ((plane,), (job,)) = told["planes"], told["jobs"]
    assert (plane["pid"], plane["roles"], plane["reaper"], plane["known_epoch"]) == (
        serve.pid, ["reaper", "taker"], True, True,
    )  # fmt: skip
    assert (job["ident"], job["ours"], job["foreign_roles"], job["broadcasted"]) == (ident, True, [], 0)
    assert job["left_out"] == job["trimmed"] == job["log_score"] - job["entries"]
    said = [json.loads(entry).get("message", "") for entry in redis.zrange(f"{ident}_log", 0, -1)]
    assert len([line for line in said if line.startswith("Entries leave Redis before all have read them")]) == 1
    assert _status(muniment, redis_server)["planes"] == []


@pytest.mark.long
@pytest.mark.points(20, 52, 57)
def test_many_idle_jobs_have_a_heartbeat_each_second(
    muniment: Any, redis_server: RedisServer, tmp_path: Path, postgres: Any
) -> None:
    """They are checked, read and shown anew in batches: none has a transaction of its own."""
    redis, database = redis_server.client, postgres.create("idle_jobs")
    with tracker_at(TrackerPlace(tmp_path, database)) as db:
        for number in range(IDLE):
            submit_job(db, f"job {number}", Settings(out=""), StartPages([f"http://j{number}.example/"]), now_ms())
    served = Served(muniment, redis_server, tmp_path, "--database", database)
    with served.serve():
        eventually(lambda: redis.llen("working") == IDLE, within_s=120)
        first, last = str(redis.lindex("working", 0)), str(redis.lindex("working", -1))
        eventually(lambda: int(redis.hget(last, "last_acknowledged_heartbeat") or 0) > 2)
        redis.config_resetstat()
        before = [int(redis.hget(ident, "heartbeat") or 0) for ident in (first, last)]
        time.sleep(10)
        beats = [int(redis.hget(ident, "heartbeat") or 0) for ident in (first, last)]
        watched = redis.info("commandstats").get("cmdstat_watch", {"calls": 0})["calls"]
        shown = sorted(redis.lrange("working", 0, -1))
        ages = [redis.hget(ident, "settings_age") for ident in shown]
        redis.flushall()
        eventually(lambda: redis.llen("working") == IDLE, within_s=60)
        assert sorted(redis.lrange("working", 0, -1)) == shown
        scores = [int(redis.hget(ident, "log_score") or 0) for ident in shown]
        assert [redis.zcard(f"{ident}_log") for ident in shown] == scores
        assert min(scores) > 0
        assert [redis.hget(ident, "settings_age") for ident in shown] == ages
        assert redis.zcard("tweets:queue") == IDLE
    assert all(7 <= after - one <= 12 for after, one in zip(beats, before, strict=True))
    assert watched < IDLE // 10
    assert {redis.hget(ident, "death_timer") for ident in (first, last)} <= {"0", None}


def test_hosts_that_are_given_up_and_workers_that_died_are_said_once(
    muniment: Any, redis_server: RedisServer, tmp_path: Path
) -> None:
    """The server is killed while it takes pages in, and then the pipeline, whose successor goes on."""
    redis, served = redis_server.client, Served(muniment, redis_server, tmp_path)
    token, closed = served.register("berlin-1"), f"127.0.9.1:{closed_port('127.0.9.1')}"
    images = "".join(f"<img src='http://{closed}/{number}.png'>" for number in range(40))
    gone: list[int] = []

    def deadly(_headers: Any) -> Answer:
        if not gone:
            gone.extend(_workers(pipeline.pid))
            os.kill(gone[0], signal.SIGKILL)
        return Answer("once more")

    with GatedSite({"/": f"{images}<a href=p>x</a>", "/p": deadly, "/robots.txt": Answer(status=404)}) as site:
        with served.serve() as serve, served.pipeline(token) as pipeline:
            ident = Bot(redis).queue(site.url)
            eventually(lambda: _said(redis, ident, "dead-host: ") and _said(redis, ident, " died"), within_s=60)
            serve.kill()
            pipeline.kill()
        with served.serve(), served.pipeline(token):
            eventually(lambda: redis.hget(ident, "finished_at"), within_s=60)
    (died,), (dead,) = _said(redis, ident, " died"), _said(redis, ident, "dead-host: ")
    assert died.startswith("A worker of berlin-1 died; pages that it gives back: ")
    assert dead.startswith(f"Pause of 127.0.9.1: http://{closed}: dead-host: given up after 3 failures")
    scores = [score for _, score in redis.zrange(f"{ident}_log", 0, -1, withscores=True)]
    assert scores == list(range(1, int(redis.hget(ident, "log_score") or 0) + 1))


def _workers(pipeline: int) -> list[int]:
    processes = psutil.Process(pipeline).children(recursive=True)
    return [process.pid for process in processes if "worker" in process.cmdline()]


def _said(redis: Any, ident: str, what: str) -> list[str]:
    entries = map(json.loads, redis.zrange(f"{ident}_log", 0, -1))
    return [entry["message"] for entry in entries if entry["type"] == "stdout" and what in entry["message"]]


def _status(muniment: Any, redis_server: RedisServer) -> dict[str, Any]:
    done = muniment("live", "status", "--redis", redis_server.url, "--json")
    assert done.code == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found
