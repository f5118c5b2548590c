"""`muniment live status` and `rebuild`, on a crawl that runs."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.live_site import linked_pages
from tests.support.nginx import Nginx
from tests.support.redis_server import RedisServer, eventually


@pytest.fixture
def site(tmp_path: Path, nginx: Callable[..., Nginx]) -> Nginx:
    return nginx(linked_pages(tmp_path / "site", 90))


def test_status_tells_who_writes_what(muniment: Any, redis_server: RedisServer, site: Nginx, tmp_path: Path) -> None:
    out, redis = tmp_path / "out", redis_server.client
    redis.hset("foreign", mapping={"url": "http://a.example/", "pipeline_id": "pipeline:theirs", "log_score": "5"})
    redis.rpush("working", "foreign", "without-hash")
    roles = "--redis-roles", "analyzer,broadcaster,reaper"
    with muniment.start("crawl", site.url, "-o", out, "--redis", redis_server.url, "--delay", "400", *roles) as crawl:
        eventually(lambda: redis.llen("working") == 3)
        ident = str(redis.lindex("working", -1))
        redis_server.kill()
        time.sleep(1.5)
        redis_server.start()
        assert redis_server.working() == ident
        redis.hset("foreign", mapping={"url": "http://a.example/", "pipeline_id": "pipeline:theirs", "log_score": "5"})
        redis.rpush("working", "foreign")
        eventually(lambda: (redis.hset(ident, "last_broadcasted_log_entry", "1"), _foreign(redis_server, ident))[1])
        told = _told(muniment, "--redis", redis_server.url)
        (plane,) = told["planes"]
        assert (plane["pid"], plane["known_epoch"], plane["reaper"]) == (crawl.pid, True, True)
        assert plane["roles"] == ["analyzer", "broadcaster", "reaper"]
        assert "127.0.0.1" in plane["fault"]
        assert abs(plane["since"] / 1000 - time.time()) < 60
        assert (told["epoch"], told["run_id"]) == (redis.get("muniment:epoch"), redis.info("server")["run_id"])
        ours, theirs = sorted(told["jobs"], key=lambda job: not job["ours"])
        assert (ours["ident"], ours["foreign_roles"], ours["left_out"]) == (ident, ["broadcaster"], 0)
        assert ours["entries"] == ours["log_score"] - ours["trimmed"] > 0
        assert ours["batch_age_ms"] < 10_000
        assert (theirs["ident"], theirs["waiting"], theirs["log_score"]) == ("foreign", None, 5)
        assert told["foreign_pipelines"] == ["pipeline:theirs"]
        (mine,) = _told(muniment, "-o", out)["jobs"]
        assert mine["ident"] == ident
        text = muniment("live", "status", "--redis", redis_server.url).stdout
        assert f"process {crawl.pid} at" in text
        assert "reaper (it reaps)" in text
        assert "another program's pipeline: pipeline:theirs" in text
        assert "another program is broadcaster, too" in text
        redis.hset(ident, "abort_requested", "true")
        assert crawl.wait(30) == 3
    assert _told(muniment, "--redis", redis_server.url)["planes"] == []


def _foreign(redis_server: RedisServer, ident: str) -> str | None:
    return redis_server.client.hget(f"muniment:{ident}", "foreign") or None


def _told(muniment: Any, *options: object) -> dict[str, Any]:
    done = muniment("live", "status", *options, "--json")
    assert done.code == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_rebuild_writes_all_of_a_job_anew(
    muniment: Any, redis_server: RedisServer, site: Nginx, tmp_path: Path
) -> None:
    out, redis = tmp_path / "out", redis_server.client
    with muniment.start("crawl", site.url, "-o", out, "--redis", redis_server.url, "--delay", "200") as crawl:
        ident = redis_server.working()
        eventually(lambda: int(redis.hget(ident, "log_score") or 0) > 6)
        redis.zremrangebyscore(f"{ident}_log", 2, 4)
        redis.hset(ident, mapping={"slug": "another", "queued_at": "1"})
        redis.lrem("working", 0, ident)
        assert muniment("live", "rebuild", "-o", out).stdout == f"{ident} is written anew\n"
        assert redis.lrange("working", 0, -1) == [ident]
        assert redis.hget(ident, "slug") != "another"
        assert [score for _, score in redis.zrange(f"{ident}_log", 0, 5, withscores=True)] == [1, 2, 3, 4, 5, 6]
        assert muniment("set", "delay=0", "-o", out).code == 0
        assert crawl.wait(60) == 0
    entries = [json.loads(line) for line in (out / "log.jsonl").read_bytes().splitlines()]
    assert [json.loads(entry) for entry in redis.zrange(f"{ident}_log", 0, -1)] == entries
    late = muniment("live", "rebuild", "-o", out)
    assert (late.code, "no process shows" in late.stderr) == (2, True)


def test_wrong_use_is_refused(muniment: Any, site: Nginx, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert muniment("crawl", site.url, "-o", out, "--max-pages", "1").code == 3
    for command, words, code in (
        (("status",), "give --redis URL", 2),
        (("status", "--redis", "redis://127.0.0.1:1"), "cannot be read", 3),
        (("status", "-o", out), "Redis never had this job", 2),
        (("rebuild", "-o", out), "Redis never had this job", 2),
    ):
        refused = muniment("live", *command)
        assert (refused.code, len(refused.stderr.splitlines())) == (code, 1)
        assert words in refused.stderr


def test_a_server_that_lets_nobody_in_is_wrong_use(muniment: Any, redis_server: RedisServer) -> None:
    """One that is away may be asked again; a password that is missing, or wrong, stays so."""
    redis_server.client.config_set("requirepass", "hunter2")
    for given in ({}, {"MUNIMENT_REDIS_PASSWORD": "wrong"}):
        refused = muniment("live", "status", "--redis", redis_server.url, **given)
        assert (refused.code, len(refused.stderr.splitlines())) == (2, 1)
