"""What ArchiveBot's programs read in Redis, point by point of the checklist of the live plane."""

from __future__ import annotations

import json
import re
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.support.gated_site import Answer, GatedSite
from tests.support.live_site import linked_pages, logged_entries
from tests.support.nginx import Nginx
from tests.support.redis_server import RedisServer, eventually

PIPELINE = {
    "disk_usage", "disk_available", "fqdn", "hostname", "id", "load_average_1m", "load_average_5m",
    "load_average_15m", "mem_available", "mem_usage", "nickname", "pid", "python", "ts", "version", "status",
}  # fmt: skip
OURS = re.compile(r"[a-z0-9]{25,}(_log|_ignores)?|pipeline:[0-9a-f]+|muniment:.*")
SHARED = {"working", "pipelines", "jobs_completed", "tweets:queue"}


@pytest.fixture
def site(tmp_path: Path, nginx: Callable[..., Nginx]) -> Nginx:
    return nginx(linked_pages(tmp_path / "site", 40))


@pytest.mark.points(6, 7, 8)
def test_a_pipeline_reports_each_second_and_leaves(
    muniment: Any, redis_server: RedisServer, site: Nginx, tmp_path: Path
) -> None:
    redis = redis_server.client
    heard = redis.pubsub(ignore_subscribe_messages=True)
    heard.subscribe("archivebot:pipeline_updates")
    with muniment.start(
        "crawl", site.url, "-o", tmp_path / "out", "--redis", redis_server.url, "--delay", "100"
    ) as crawl:
        ident = redis_server.working()
        key = str(redis.hget(ident, "pipeline_id"))
        assert re.fullmatch(r"pipeline:[0-9a-f]{32}", key)
        first: dict[str, str] = eventually(lambda: redis.hgetall(key))  # type: ignore[assignment]  # a second after the job
        assert set(first) == PIPELINE
        assert (first["id"], first["pid"], first["python"]) == (key, str(crawl.pid), sys.version)
        assert all(0 <= float(first[name]) <= 100 and "." in first[name] for name in ("disk_usage", "mem_usage"))
        assert all(int(first[name]) > 1 << 20 for name in ("disk_available", "mem_available"))
        assert first["status"] == "Running"
        assert abs(int(first["ts"]) - time.time()) < 10
        assert 50 < redis.ttl(key) <= 60
        assert redis.lrange("pipelines", 0, -1) == [key]
        eventually(lambda: int(redis.hget(key, "ts") or 0) > int(first["ts"]))
        message = eventually(lambda: heard.get_message(timeout=1))
        assert message["data"] == key  # type: ignore[index]
        assert crawl.wait(60) == 0
    assert (redis.exists(key), redis.llen("pipelines")) == (0, 0)
    assert redis.hget(ident, "pipeline_id") == key  # point 28: kept after the end
    heard.close()


@pytest.mark.points(28, 39)
def test_pipelines_may_be_a_set(muniment: Any, redis_server: RedisServer, site: Nginx, tmp_path: Path) -> None:
    redis = redis_server.client
    redis.sadd("pipelines", "pipeline:foreign")
    with muniment.start(
        "crawl", site.url, "-o", tmp_path / "out", "--redis", redis_server.url, "--delay", "50"
    ) as crawl:
        ident = redis_server.working()
        eventually(lambda: redis.scard("pipelines") == 2)
        assert redis.smembers("pipelines") == {"pipeline:foreign", redis.hget(ident, "pipeline_id")}
        assert crawl.wait(60) == 0
    assert redis.smembers("pipelines") == {"pipeline:foreign"}


@pytest.mark.points(1, 2, 3)
def test_two_crawls_and_a_foreign_job_share_a_database(
    muniment: Any, redis_server: RedisServer, site: Nginx, tmp_path: Path
) -> None:
    """Each of them is left alone by the others; no command looks at all keys or takes all away."""
    redis = redis_server.client
    foreign = {"url": "http://a.example/", "settings_age": "3", "heartbeat": "1", "delay_min": "7"}
    redis.hset("foreign", mapping=foreign)
    redis.rpush("working", "foreign")
    redis.set("another program's", "value")
    started = [
        muniment.start("crawl", site.url, "-o", tmp_path / name, "--redis", redis_server.url, "--delay", "40")
        for name in ("one", "two")
    ]
    for crawl in started:
        with crawl:
            assert crawl.wait(60) == 0
    logs = [key for key in redis.scan_iter(_type="zset") if key.endswith("_log")]
    in_redis = [[json.loads(entry) for entry in redis.zrange(key, 0, -1)] for key in logs]
    assert sorted(in_redis, key=str) == sorted((logged_entries(tmp_path / name) for name in ("one", "two")), key=str)
    urls = {redis.hget(key.removesuffix("_log"), "url") for key in logs}
    assert len(urls) == 2
    assert {str(url).partition("#")[0] for url in urls} == {site.url}
    assert redis.get("jobs_completed") == "2"
    assert redis.hgetall("foreign").items() >= foreign.items()
    assert (redis.lrange("working", 0, -1), redis.get("another program's")) == (["foreign"], "value")
    left = {key for key in redis.scan_iter() if not OURS.fullmatch(key)}
    assert left <= SHARED | {"foreign", "another program's"}
    assert not set(redis.info("commandstats")) & {
        "cmdstat_keys",
        "cmdstat_flushdb",
        "cmdstat_flushall",
        "cmdstat_monitor",
    }


@pytest.mark.points(11, 37, 53)
def test_batches_are_few_and_none_is_forgotten(
    muniment: Any, redis_server: RedisServer, site: Nginx, tmp_path: Path
) -> None:
    """What is in Redis was committed before: the sums are never ahead of the entries, and each batch is published."""
    redis, heard, times, behind = redis_server.client, redis_server.another(), list[float](), list[str]()
    listener = heard.pubsub(ignore_subscribe_messages=True)
    listener.subscribe("updates")
    ended = threading.Event()

    def listen() -> None:
        while not ended.is_set():
            if (message := listener.get_message(timeout=0.2)) is not None:
                times.append(time.monotonic())
                job = heard.hgetall(message["data"])
                log = heard.zcard(f"{message['data']}_log")
                if log < int(job["log_score"]) - int(job["last_trimmed_log_entry"]):
                    behind.append(str(job))

    thread = threading.Thread(target=listen)
    thread.start()
    assert muniment("crawl", site.url, "-o", tmp_path / "out", "--redis", redis_server.url, "--delay", "30").code == 0
    time.sleep(0.3)
    ended.set()
    thread.join()
    assert len(times) > 3
    assert max(sum(1 for two in times if one <= two < one + 1) for one in times) <= 10
    assert behind == []
    (ident,) = (key for key in redis.scan_iter(_type="hash") if not key.startswith(("muniment:", "pipeline:")))
    assert redis.zcard(f"{ident}_log") == len(logged_entries(tmp_path / "out"))
    listener.close()
    heard.close()


@pytest.mark.points(18, 21, 24, 27, 29, 31, 32, 34)
def test_a_list_is_shallow_and_has_all_its_fields(
    muniment: Any, redis_server: RedisServer, site: Nginx, tmp_path: Path
) -> None:
    redis, seed = redis_server.client, tmp_path / "urls.txt"
    seed.write_text("".join(f"{site.url}p{n}.html\n" for n in range(5)))
    begun = time.time()
    given = "--user-agent", "Probe/1.0", "--delay", "5-9"
    done = muniment("fetch", seed, "-o", tmp_path / "out", "--redis", redis_server.url, *given, MUNIMENT_OPERATOR="ann")
    assert done.code == 0
    (ident,) = (key for key in redis.scan_iter(_type="hash") if not key.startswith(("muniment:", "pipeline:")))
    job = redis.hgetall(ident)
    assert (job["fetch_depth"], job["url_file"], job["started_by"]) == ("shallow", job["url"], "ann")
    assert re.fullmatch(r"urls-[a-z0-9.]+-urls\.txt-shallow", job["slug"])
    assert (job["user_agent"], job["delay_min"], job["delay_max"]) == ("Probe/1.0", "5", "9")
    asked = {request.uri for request in site.requests()}
    assert (job["suppress_ignore_reports"], job["next_watermark"]) == ("true", "100000")
    assert int(job["items_queued"]) == len(asked)
    for name in ("queued_at", "started_at", "finished_at", "ts"):
        assert re.fullmatch(r"\d{10}\.\d+", job[name])
        assert begun - 1 < float(job[name]) < time.time() + 1
    absent = {
        "grabber", "phantomjs_scroll", "phantomjs_wait", "no_phantomjs_smart_scroll", "youtube_dl", "recorded_at",
        "warc_size", "aborted", "abort_requested", "failed", "no_offsite_links",
    }  # fmt: skip
    assert not absent & set(job)


@pytest.mark.points(17, 23, 30)
def test_odd_statuses_and_failures_are_counted(muniment: Any, redis_server: RedisServer, tmp_path: Path) -> None:
    """An answer beyond 100-599 is `runk`; a failure without an answer is in none, though it has an entry."""
    pages = {
        "/": "".join(f"<a href=/{name}>x</a>" for name in ("odd", "gone", "bad", "moved", "fine"))
        + "<a href=http://127.0.0.1:1/refused>x</a>",
        "/odd": Answer("odd", 999),
        "/gone": Answer("gone", 410),
        "/bad": Answer("bad", 500),
        "/moved": Answer("", 301, (("Location", "/fine"),)),
        "/fine": "fine",
    }
    out = tmp_path / "out"
    with GatedSite(pages) as gated:
        muniment(
            "crawl",
            gated.url,
            "-o",
            out,
            "--redis",
            redis_server.url,
            "--no-robots",
            "--no-sitemaps",
            "--tries",
            "1",
            "--rounds",
            "0",
        )
        asked = len(gated.requests)
    redis = redis_server.client
    (ident,) = (key for key in redis.scan_iter(_type="hash") if not key.startswith(("muniment:", "pipeline:")))
    job = redis.hgetall(ident)
    downloads = [entry for entry in logged_entries(out) if entry["type"] == "download"]
    answers = [entry["response_code"] for entry in downloads if entry["response_code"]]
    assert len(answers) == asked
    for number in range(1, 6):
        assert int(job[f"r{number}xx"]) == sum(code // 100 == number for code in answers)
    assert int(job["runk"]) == answers.count(999) > 0
    assert int(job["error_count"]) == sum(400 <= code < 600 for code in answers)
    assert int(job["items_downloaded"]) == sum(200 <= code < 400 for code in answers)
    refused = [entry for entry in downloads if not entry["response_code"]]
    assert refused
    assert {entry["url"] for entry in refused} == {"http://127.0.0.1:1/refused"}
    assert all(entry["is_error"] and re.match(r"[a-z-]+: ", entry["wget_code"]) for entry in refused)
    assert all(entry["is_warning"] for entry in downloads if 400 <= entry["response_code"] < 500)


@pytest.mark.points(8, 19, 29, 50)
def test_a_stopped_job_is_taken_up_again(muniment: Any, redis_server: RedisServer, site: Nginx, tmp_path: Path) -> None:
    redis, out = redis_server.client, tmp_path / "out"
    command = "crawl", site.url, "-o", out, "--redis", redis_server.url
    with muniment.start(*command, "--delay", "300") as crawl:
        ident = redis_server.working()
        eventually(lambda: int(redis.hget(ident, "log_score") or 0) > 4)
        assert redis.hget(ident, "finished_at") is None
        started, pipeline = redis.hget(ident, "started_at"), str(redis.hget(ident, "pipeline_id"))
        for worker in (servers := psutil.Process(site.pid).children()):
            worker.suspend()
        time.sleep(1)
        crawl.send_signal(signal.SIGINT)
        eventually(lambda: redis.hget(pipeline, "status") == "Stopping")
        for worker in servers:
            worker.resume()
        assert crawl.wait(30) == 3
    assert redis.hget(ident, "finished_at") is not None
    assert (redis.llen("working"), redis.hexists(ident, "counted"), redis.get("jobs_completed")) == (0, False, None)
    assert all(172_700 < redis.ttl(key) <= 172_800 for key in (ident, f"{ident}_log", f"{ident}_ignores"))
    with muniment.start(*command, "--delay", "100") as crawl:
        assert redis_server.working() == ident
        eventually(lambda: redis.hget(ident, "finished_at") is None)
        assert all(redis.ttl(key) == -1 for key in (ident, f"{ident}_log", f"{ident}_ignores"))
        assert redis.hget(ident, "started_at") == started
        assert crawl.wait(60) == 0
    entries = [json.loads(entry) for entry in redis.zrange(f"{ident}_log", 0, -1)]
    assert entries == logged_entries(out)
    assert [entry["seq"] for entry in entries] == list(range(1, len(entries) + 1))
    assert redis.get("jobs_completed") == "1"


@pytest.mark.points(40, 42)
@pytest.mark.parametrize("wait_s", [0, 7])
def test_an_aborted_job_that_goes_on_is_taken_out_of_the_counts(
    muniment: Any, redis_server: RedisServer, site: Nginx, tmp_path: Path, wait_s: int
) -> None:
    """Also when its record, which stays for five seconds, has gone."""
    redis, out = redis_server.client, tmp_path / "out"
    command = "crawl", site.url, "-o", out, "--redis", redis_server.url
    with muniment.start(*command, "--delay", "300") as crawl:
        ident = redis_server.working()
        eventually(lambda: int(redis.hget(ident, "log_score") or 0) > 4)
        redis.hset(ident, "abort_requested", "true")
        assert crawl.wait(30) == 3
    assert redis.get("jobs_aborted") == "1"
    time.sleep(wait_s)
    assert redis.exists(ident) == (not wait_s)
    assert muniment("job", "resume", "-o", out).code == 0
    assert muniment(*command, "--delay", "0").code == 0
    assert redis.mget("jobs_aborted", "jobs_completed") == ["0", "1"]
    assert redis.hget(ident, "counted") == "completed"


@pytest.mark.points(51)
def test_an_expired_job_does_not_come_back(
    muniment: Any, redis_server: RedisServer, site: Nginx, tmp_path: Path
) -> None:
    redis = redis_server.client
    command = "crawl", site.url, "-o", tmp_path / "one", "--redis", redis_server.url
    assert muniment(*command).code == 0
    (ident,) = (key for key in redis.scan_iter(_type="hash") if not key.startswith(("muniment:", "pipeline:")))
    for key in (ident, f"{ident}_log", f"{ident}_ignores"):
        redis.expire(key, 0)
    assert muniment(*command).code == 0
    assert muniment("crawl", site.url, "-o", tmp_path / "two", "--redis", redis_server.url).code == 0
    logs = [key for key in redis.scan_iter(_type="zset") if key.endswith("_log")]
    assert len(logs) == 1
    assert [json.loads(entry) for entry in redis.zrange(logs[0], 0, -1)] == logged_entries(tmp_path / "two")


@pytest.mark.points(33, 36)
def test_a_short_run_leaves_all_itslogged_entries(
    muniment: Any, redis_server: RedisServer, site: Nginx, tmp_path: Path
) -> None:
    """Shorter than the plane's step."""
    seed = tmp_path / "urls.txt"
    seed.write_text(f"{site.url}p1.html\n")
    assert muniment("fetch", seed, "-o", tmp_path / "out", "--redis", redis_server.url, "--no-robots").code == 0
    (log,) = (key for key in redis_server.client.scan_iter(_type="zset") if key.endswith("_log"))
    entries = [json.loads(entry) for entry in redis_server.client.zrange(log, 0, -1)]
    assert entries == logged_entries(tmp_path / "out")
    assert [entry["url"] for entry in entries if entry["type"] == "download"] == [f"{site.url}p1.html"]
