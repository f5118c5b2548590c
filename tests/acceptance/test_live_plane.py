"""The live plane against a real Redis: what ArchiveBot's programs would see and do, by a small client of our own."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.live_site import linked_pages, logged_entries
from tests.support.nginx import Nginx
from tests.support.redis_server import RedisServer, eventually

PAGES = 60
SITE = PAGES + 4
"""With the start page, a missing one, robots.txt and sitemap.xml."""


@pytest.fixture
def site(tmp_path: Path, nginx: Callable[..., Nginx]) -> Nginx:
    return nginx(linked_pages(tmp_path / "site", PAGES, "<a href='gone'>x</a>"))


def _change(redis_server: RedisServer, ident: str, **fields: str) -> None:
    """As ArchiveBot changes settings: the fields, then the age, which is published."""
    redis_server.client.hset(ident, mapping=fields)
    age = redis_server.client.hincrby(ident, "settings_age", 1)
    redis_server.client.publish(f"archivebot:job:{ident}", str(age))


@pytest.mark.points(9, 13, 17, 18, 22, 23, 24, 25, 26, 27, 30, 33, 36, 40, 41, 44, 50)
def test_a_finished_crawl_is_in_redis(muniment: Any, redis_server: RedisServer, site: Nginx, tmp_path: Path) -> None:
    out, redis = tmp_path / "out", redis_server.client
    assert muniment("crawl", site.url, "-o", out, "--redis", redis_server.url, "--explanation", "for a test").code == 0
    (ident,) = (key for key in redis.scan_iter(_type="hash") if not key.startswith(("muniment:", "pipeline:")))
    job, statuses = redis.hgetall(ident), Counter(request.status // 100 for request in site.requests())
    assert job["url"] in {site.url, f"{site.url}#2", f"{site.url}#3"}
    assert (job["note"], job["fetch_depth"], job["counted"]) == ("for a test", "inf", "completed")
    assert [int(job[f"r{n}xx"]) for n in range(1, 6)] == [statuses[n] for n in range(1, 6)]
    assert int(job["error_count"]) == statuses[4]
    assert int(job["items_downloaded"]) == statuses[2]
    log, end = redis.zrange(job["log_key"], 0, -1, withscores=True), int(job["log_score"])
    assert [score for _, score in log] == list(range(1, end + 1))
    assert [json.loads(entry)["seq"] for entry, _ in log] == list(range(1, end + 1))
    assert [json.loads(entry) for entry, _ in log] == logged_entries(out)
    downloads = [json.loads(entry)["url"] for entry, _ in log if '"type":"download"' in entry]
    assert sorted(downloads) == sorted(f"{site.url.rstrip('/')}{request.uri}" for request in site.requests())
    cursors = [int(job[f"last_{name}_log_entry"]) for name in ("trimmed", "analyzed", "broadcasted")]
    assert cursors == [0, end, end]
    assert redis.smembers(job["ignore_patterns_set_key"])
    assert (redis.llen("working"), redis.get("jobs_completed"), redis.llen("pipelines")) == (0, "1", 0)
    assert redis.zrange("tweets:queue", 0, -1) == [f"Archiving {site.url}"]
    asked = {f"{site.url.rstrip('/')}{request.uri}" for request in site.requests()}
    assert (int(job["items_queued"]), job["next_watermark"]) == (len(asked), "100000")
    assert all(0 < redis.ttl(key) <= 172_800 for key in (ident, job["log_key"], job["ignore_patterns_set_key"]))


@pytest.mark.points(10, 12, 14, 16, 20, 29, 32, 35, 38, 42, 54, 55, 56, 57, 58, 59, 60)
def test_settings_are_taken_over_and_nonsense_is_put_back(
    muniment: Any, redis_server: RedisServer, site: Nginx, tmp_path: Path
) -> None:
    out, redis = tmp_path / "out", redis_server.client
    with muniment.start("crawl", site.url, "-o", out, "--redis", redis_server.url, "--delay", "500") as crawl:
        ident = redis_server.working()
        ignores, kept = f"{ident}_ignores", redis.scard(f"{ident}_ignores")
        redis.hset(ident, "recorded_at", "kept as it came")
        eventually(lambda: (redis.hget(ident, "heartbeat") or "0") >= "1")
        redis.sadd(ignores, "p1[0-9]", "(", b"\xff")
        _change(redis_server, ident, delay_min="100", delay_max="150", concurrency="banana", note="because")
        eventually(lambda: redis.scard(ignores) == kept + 1)
        eventually(lambda: redis.hget(ident, "concurrency") == "6")
        assert redis.hmget(ident, "delay_min", "delay_max", "note", "recorded_at") == [
            "100", "150", "because", "kept as it came",
        ]  # fmt: skip
        heard = redis.pubsub(ignore_subscribe_messages=True)
        heard.subscribe(f"archivebot:job:{ident}")
        assert muniment("set", "delay=200", "explanation=so that", "-o", out).code == 0
        eventually(lambda: redis.hmget(ident, "delay_min", "note") == ["200", "so that"])
        assert int(eventually(lambda: heard.get_message(timeout=1))["data"]) >= 4  # type: ignore[index]
        heard.close()
        _change(redis_server, ident, abort_requested="true")
        assert crawl.wait(30) == 3
    events = [json.loads(line) for line in (out / "crawl.jsonl").read_text().splitlines()]
    changed = [(e["who"], e["what"], e["to"]) for e in events if e["event"] == "change"]
    assert ("redis", "delay", "100-150") in changed
    assert ("redis", "ignores", "p1[0-9]") in changed
    assert ("redis", "explanation", "because") in changed
    assert changed[-1] == ("redis", "state", "ABORTED")
    said = [entry["message"] for entry in logged_entries(out) if entry["type"] == "stdout"]
    assert len([line for line in said if line.startswith("Refused: ")]) == 3
    assert f"Adjusted target WARC path to {ident}-aborted" in said
    assert redis.get("jobs_aborted") == "1"
    assert not any(f"/p1{n}.html" in request.uri for n in range(10) for request in site.requests()[-20:])
    again = muniment("crawl", site.url, "-o", out, "--redis", redis_server.url)
    assert again.code == 3
    assert "job resume" in again.stderr


@pytest.mark.long
@pytest.mark.points(35, 57)
def test_a_pattern_in_place_of_another_is_seen_without_a_word(
    muniment: Any, redis_server: RedisServer, site: Nginx, tmp_path: Path
) -> None:
    """Their number is as before; all of them are read within 30 seconds."""
    out, redis = tmp_path / "out", redis_server.client
    with muniment.start("crawl", site.url, "-o", out, "--redis", redis_server.url, "--delay", "2000") as crawl:
        ident = redis_server.working()
        eventually(lambda: (redis.hget(ident, "heartbeat") or "0") >= "2")
        old = str(redis.srandmember(f"{ident}_ignores"))
        with redis.pipeline() as pipe:
            pipe.srem(f"{ident}_ignores", old)
            pipe.sadd(f"{ident}_ignores", "/silent/")
            pipe.execute()
        eventually(lambda: '"/silent/"' in (out / "crawl.jsonl").read_text(), within_s=33)
        assert not redis.sismember(f"{ident}_ignores", old)
        redis.hset(ident, "abort_requested", "true")
        assert crawl.wait(30) == 3


@pytest.mark.points(14)
def test_concurrency_pauses_and_resumes(muniment: Any, redis_server: RedisServer, site: Nginx, tmp_path: Path) -> None:
    """0 pauses the job, a number after it resumes it."""
    out, redis = tmp_path / "out", redis_server.client
    with muniment.start("crawl", site.url, "-o", out, "--redis", redis_server.url, "--delay", "100") as crawl:
        ident = redis_server.working()
        _change(redis_server, ident, concurrency="0")
        eventually(lambda: "changed paused" in (out / "log.jsonl").read_text())
        time.sleep(1)
        before = len(site.requests())
        time.sleep(2)
        assert len(site.requests()) == before
        assert redis.hget(ident, "concurrency") == "0"
        _change(redis_server, ident, concurrency="2", delay_min="0", delay_max="0")
        assert crawl.wait(60) == 0
    assert len(site.requests()) == SITE


@pytest.mark.points(43, 57)
def test_a_failed_job_ends_with_4(muniment: Any, redis_server: RedisServer, site: Nginx, tmp_path: Path) -> None:
    """What ArchiveBot's console does, which publishes nothing."""
    out, redis = tmp_path / "out", redis_server.client
    with muniment.start("crawl", site.url, "-o", out, "--redis", redis_server.url, "--delay", "500") as crawl:
        ident = redis_server.working()
        with redis.pipeline() as pipe:
            pipe.hset(ident, "failed", "true")
            pipe.incr("jobs_failed")
            pipe.lrem("working", 0, ident)
            pipe.execute()
        assert crawl.wait(30) == 4
    assert redis.get("jobs_failed") == "1"
    assert redis.ttl(ident) <= 5


@pytest.mark.points(61)
def test_redis_may_come_and_go(muniment: Any, redis_server: RedisServer, site: Nginx, tmp_path: Path) -> None:
    """Killed, then another server with nothing in it; the layout stands again, and the log is whole."""
    out, redis = tmp_path / "out", redis_server.client
    with muniment.start("crawl", site.url, "-o", out, "--redis", redis_server.url, "--delay", "150") as crawl:
        ident = redis_server.working()
        redis_server.kill()
        asked = len(site.requests())
        eventually(lambda: len(site.requests()) > asked + 5)
        redis_server.start()
        assert redis_server.working() == ident
        redis.flushall()
        assert redis_server.working() == ident
        assert (redis.hget(ident, "url") or "").startswith(site.url)
        assert crawl.wait(60) == 0
        assert "Redis at" in crawl.stderr.read()
    entries = logged_entries(out)
    assert [json.loads(entry) for entry in redis.zrange(f"{ident}_log", 0, -1)] == entries
    assert [entry["seq"] for entry in entries] == list(range(1, len(entries) + 1))
    assert Counter(entry["type"] for entry in entries)["download"] == SITE


@pytest.mark.points(9, 50, 59)
def test_a_killed_crawl_goes_on_under_the_same_ident(
    muniment: Any, redis_server: RedisServer, site: Nginx, tmp_path: Path
) -> None:
    """Killed in the middle, counters and log agree to the entry, and what others changed is heeded."""
    out, redis = tmp_path / "out", redis_server.client
    command = "crawl", site.url, "-o", out, "--redis", redis_server.url, "--delay", "100"
    with muniment.start(*command) as crawl:
        ident = redis_server.working()
        eventually(lambda: int(redis.hget(ident, "r2xx") or 0) > 10)
        crawl.kill()
        crawl.wait()
    redis.hset(ident, mapping={"delay_min": "0", "delay_max": "0"})
    redis.hincrby(ident, "settings_age", 1)
    assert muniment(*command).code == 0
    job, entries = redis.hgetall(ident), logged_entries(out)
    downloads = [entry for entry in entries if entry["type"] == "download"]
    assert [entry["seq"] for entry in entries] == list(range(1, len(entries) + 1))
    assert len(downloads) == sum(int(job[f"r{n}xx"]) for n in range(1, 6)) + int(job["runk"])
    assert len({entry["url"] for entry in downloads}) == SITE
    assert (job["delay_max"], job["counted"]) == ("0", "completed")
    assert [json.loads(entry) for entry in redis.zrange(f"{ident}_log", 0, -1)] == entries


@pytest.mark.points(3, 39)
def test_keys_of_another_type_cost_only_themselves(
    muniment: Any, redis_server: RedisServer, site: Nginx, tmp_path: Path
) -> None:
    out, redis = tmp_path / "out", redis_server.client
    for key in ("working", "pipelines", "tweets:queue", "tweets:done"):
        redis.set(key, "mine")
    assert muniment("crawl", site.url, "-o", out, "--redis", redis_server.url).code == 0
    assert [redis.get(key) for key in ("working", "pipelines", "tweets:queue")] == ["mine"] * 3
    assert redis.get("jobs_completed") == "1"
    said = [entry["message"] for entry in logged_entries(out) if entry["type"] == "stdout"]
    assert said.count("The key working of Redis has another type: it is left alone.") == 1


def test_without_a_server_the_crawl_goes_on(muniment: Any, site: Nginx, tmp_path: Path) -> None:
    done = muniment("crawl", site.url, "-o", tmp_path / "out", "--redis", "redis://127.0.0.1:1")
    assert done.code == 0
    assert done.stderr.count("the crawl goes on without it") == 1


@pytest.mark.points(5)
def test_a_password_comes_by_the_environment_alone(
    muniment: Any, site: Nginx, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = muniment("crawl", site.url, "-o", tmp_path / "no", "--redis", "redis://:hunter2@127.0.0.1:1")
    assert (refused.code, "hunter2" in refused.stderr) == (2, False)
    redis_server = RedisServer(tmp_path)
    redis_server.client.config_set("requirepass", "hunter2")
    monkeypatch.setenv("MUNIMENT_REDIS_PASSWORD", "hunter2")
    done = muniment("crawl", site.url, "-o", tmp_path / "out", "--redis", redis_server.url)
    redis_server.client.execute_command("AUTH", "hunter2")
    assert (done.code, redis_server.client.get("jobs_completed")) == (0, "1")
    redis_server.close()
    assert not [path for path in (tmp_path / "out").iterdir() if path.is_file() and b"hunter2" in path.read_bytes()]


@pytest.mark.points(15, 40, 43, 50, 52)
def test_a_silent_job_is_reaped_and_taken_up_again(
    muniment: Any, redis_server: RedisServer, site: Nginx, tmp_path: Path
) -> None:
    """A killed crawl of ours has failed, a foreign job is only counted."""
    redis = redis_server.client
    silent = "crawl", site.url, "-o", tmp_path / "silent", "--redis", redis_server.url
    with muniment.start(*silent, "--delay", "500") as crawl:
        ident = redis_server.working()
        eventually(lambda: redis.hget(ident, "heartbeat"))
        crawl.kill()
        crawl.wait()
    redis.hset("foreign", mapping={"url": "http://a.example/", "heartbeat": "7", "last_acknowledged_heartbeat": "7"})
    redis.rpush("working", "foreign", "without-hash")
    other = (
        "crawl",
        site.url,
        "-o",
        tmp_path / "other",
        "--redis",
        redis_server.url,
        "--delay",
        "1000",
        "--reap-after",
        "4",
    )
    with muniment.start(*other) as crawl:
        eventually(lambda: redis.hget(ident, "failed"))
        assert int(redis.hget(ident, "death_timer") or 0) == 2
        assert (redis.get("jobs_failed"), redis.hget(ident, "counted")) == ("1", "failed")
        assert all(100 < redis.ttl(key) <= 172_800 for key in (ident, f"{ident}_log", f"{ident}_ignores"))
        running = redis.lrange("working", 0, -1)
        assert ident not in running
        assert len(running) == 3
        assert 0 < redis.ttl("muniment:reaper") <= 10
        eventually(lambda: int(redis.hget("foreign", "death_timer") or 0) > 2)
        _change(redis_server, next(one for one in running if len(one) >= 25), delay_min="0", delay_max="0")
        assert crawl.wait(60) == 0
    assert set(redis.lrange("working", 0, -1)) == {"foreign", "without-hash"}
    assert set(redis.hgetall("foreign")) == {"url", "heartbeat", "last_acknowledged_heartbeat", "death_timer"}
    assert redis.exists("without-hash", "muniment:reaper") == 0
    assert muniment(*silent, "--delay", "0").code == 0
    assert (redis.get("jobs_failed"), redis.get("jobs_completed")) == ("0", "2")
    assert (redis.hget(ident, "failed"), redis.hget(ident, "counted")) == (None, "completed")


@pytest.mark.points(61)
def test_a_full_server_is_said_once(muniment: Any, redis_server: RedisServer, site: Nginx, tmp_path: Path) -> None:
    """It answers all the time and refuses every write; the layout stands again when it takes them."""
    redis = redis_server.client
    command = "crawl", site.url, "-o", tmp_path / "out", "--redis", redis_server.url, "--delay", "200"
    with muniment.start(*command) as crawl:
        ident = redis_server.working()
        redis.config_set("maxmemory", "1")
        time.sleep(8)
        score = int(redis.hget(ident, "log_score") or 0)
        redis.config_set("maxmemory", "0")
        eventually(lambda: int(redis.hget(ident, "log_score") or 0) > score, within_s=10)
        assert crawl.wait(60) == 0
        said = crawl.stderr.read()
    assert said.count("the crawl goes on without it") == 1
    assert said.count("answers again") == 1
    assert [json.loads(entry) for entry in redis.zrange(f"{ident}_log", 0, -1)] == logged_entries(tmp_path / "out")


def _with_user(redis_server: RedisServer) -> Any:
    """A server that knows nobody but its owner, who is connected, and one user; the owner's client."""
    redis = redis_server.client
    redis.acl_setuser("writer", enabled=True, passwords=["+hunter2"], keys=["*"], channels=["*"], categories=["+@all"])
    redis.config_set("requirepass", "owner")
    redis.execute_command("AUTH", "owner")
    return redis


@pytest.mark.points(4, 5)
def test_a_socket_a_database_and_a_user(muniment: Any, site: Nginx, tmp_path: Path) -> None:
    socket = tmp_path / "socket"
    redis_server = RedisServer(tmp_path, "--unixsocket", str(socket))
    redis = _with_user(redis_server)
    url = f"unix://writer@{socket}?db=1"
    done = muniment(
        "crawl", site.url, "-o", tmp_path / "out", "--redis", url, MUNIMENT_REDIS_PASSWORD="hunter2"
    )  # fmt: skip
    assert (done.code, redis.dbsize()) == (0, 0)
    redis.select(1)
    assert redis.get("jobs_completed") == "1"
    redis_server.close()


@pytest.mark.points(5, 45)
def test_a_password_comes_from_a_file(muniment: Any, redis_server: RedisServer, site: Nginx, tmp_path: Path) -> None:
    """Old announcements leave the feed."""
    redis, accounts, out = _with_user(redis_server), tmp_path / "accounts", tmp_path / "out"
    redis.zadd("tweets:done", {"Archiving old": time.time() - 31 * 86_400, "Archiving new": time.time() - 86_400})
    command = "crawl", site.url, "-o", out, "--redis", redis_server.url, "--announce", "feed", "--auth-file", accounts
    accounts.write_text("machine 127.0.0.1 login writer password wrong\n")
    assert "the crawl goes on without it" in muniment(*command, "--max-pages", "1").stderr
    accounts.write_text("machine 127.0.0.1 login writer password hunter2\n")
    done = muniment(*command, "--max-pages", "5")
    assert (redis.zrange("tweets:done", 0, -1), redis.exists("tweets:queue")) == (
        ["Archiving new", f"Archiving {site.url}"], 0,
    )  # fmt: skip
    assert "hunter2" not in done.stdout + done.stderr
    assert not [path for path in out.iterdir() if path.is_file() and b"hunter2" in path.read_bytes()]
