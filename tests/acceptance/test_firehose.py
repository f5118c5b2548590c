"""`muniment firehose`: a subscriber that is frozen, killed or late gets every entry once, in order."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.live_site import linked_pages, logged_entries
from tests.support.nginx import Nginx
from tests.support.redis_server import RedisServer, eventually

PAGES = 80


@pytest.fixture
def site(tmp_path: Path, nginx: Callable[..., Nginx]) -> Nginx:
    return nginx(linked_pages(tmp_path / "site", PAGES))


def _lines(text: str) -> list[dict[str, Any]]:
    """The entries in lines, of which each has the record of its job."""
    lines = [json.loads(line) for line in text.splitlines()]
    for line in lines:
        job = line.pop("job_data")
        assert {"ident", "url", "log_score", "r2xx", "started_at"} <= set(job)
        assert all(isinstance(value, str) for value in job.values())
    return lines


def _part(reader: subprocess.Popen[str], count: int) -> str:
    """The first lines of a reader, which is killed then; a line that it had not ended is nobody's."""
    assert reader.stdout is not None
    lines = [reader.stdout.readline() for _ in range(count)]
    reader.kill()
    reader.wait()
    return "".join(lines)


@pytest.mark.parametrize("source", ["directory", "redis"])
def test_frozen_killed_and_late_readers_miss_nothing(
    muniment: Any, redis_server: RedisServer, site: Nginx, tmp_path: Path, source: str
) -> None:
    out = tmp_path / "out"
    with muniment.start("crawl", site.url, "-o", out, "--redis", redis_server.url, "--delay", "60") as crawl:
        ident = redis_server.working()
        read = (
            ("firehose", "-o", out)
            if source == "directory"
            else ("firehose", "--redis", redis_server.url, "--job", ident)
        )
        with muniment.start(*read, "--since", "0") as killed:
            first = _part(killed, 9)
        with muniment.start(*read, "--since", "0") as frozen:
            eventually(lambda: (redis_server.client.hget(ident, "log_score") or "") > "2")
            frozen.send_signal(signal.SIGSTOP)
            time.sleep(2)
            frozen.send_signal(signal.SIGCONT)
            with muniment.start(*read, "--since", str(json.loads(first.splitlines()[-1])["seq"])) as next_one:
                rest = next_one.stdout.read()
            assert next_one.wait(30) == 0
            whole = frozen.stdout.read()
        assert frozen.wait(30) == 0
        assert crawl.wait(60) == 0
    entries = logged_entries(out)
    assert len(entries) > PAGES
    assert _lines(whole) == entries
    assert _lines(first + rest) == entries
    late = muniment(*read, "--no-follow")
    assert (late.code, _lines(late.stdout)) == (0, entries)
    assert _lines(muniment(*read, "--since", "30").stdout) == entries[30:]


def test_it_goes_on_when_redis_was_killed_and_emptied(
    muniment: Any, redis_server: RedisServer, site: Nginx, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    with muniment.start("crawl", site.url, "-o", out, "--redis", redis_server.url, "--delay", "250") as crawl:
        ident = redis_server.working()
        with muniment.start("firehose", "--redis", redis_server.url, "--job", ident, "--since", "0") as reader:
            eventually(lambda: int(redis_server.client.hget(ident, "log_score") or 0) > 15)
            redis_server.kill()
            time.sleep(7)
            redis_server.start()
            score = int(eventually(lambda: redis_server.client.hget(ident, "log_score")))  # type: ignore[call-overload]
            eventually(lambda: int(redis_server.client.hget(ident, "log_score") or 0) > score + 10)
            redis_server.client.flushall()
            whole, warnings = reader.communicate(timeout=60)
        assert reader.returncode == 0
        assert crawl.wait(60) == 0
    assert _lines(whole) == logged_entries(out)
    assert [warnings.count(words) for words in ("this command waits for it", "answers again")] == [1, 1]


def test_what_has_left_redis_is_said(muniment: Any, redis_server: RedisServer, site: Nginx, tmp_path: Path) -> None:
    out = tmp_path / "out"
    keep = "--redis-log-keep", "10"
    assert muniment("crawl", site.url, "-o", out, "--redis", redis_server.url, *keep).code == 0
    entries, redis = logged_entries(out), redis_server.client
    (ident,) = (key.removesuffix("_log") for key in redis.scan_iter(_type="zset") if key.endswith("_log"))
    trimmed = int(redis.hget(ident, "last_trimmed_log_entry") or 0)
    assert trimmed >= len(entries) - 20
    late = muniment("firehose", "--redis", redis_server.url, "--job", ident, "--since", "0")
    assert (late.code, _lines(late.stdout)) == (1, entries[trimmed:])
    assert f"{trimmed} entries of {ident} had left Redis" in late.stderr
    everything = muniment("firehose", "--redis", redis_server.url, "--since", "0", "--no-follow")
    assert (everything.code, _lines(everything.stdout)) == (1, entries[trimmed:])
    complete = muniment("firehose", "-o", out, "--since", "0")
    assert (complete.code, _lines(complete.stdout)) == (0, entries)


def test_all_jobs_are_followed_until_it_is_stopped(
    muniment: Any, redis_server: RedisServer, site: Nginx, tmp_path: Path
) -> None:
    """Those that run and those that come, also of other programs; what is not an entry is left out."""
    redis, out = redis_server.client, tmp_path / "out"
    redis.hset("foreign", mapping={"url": "http://a.example/", "log_key": "foreign_log", "log_score": "1"})
    redis.zadd("foreign_log", {'{"type":"stdout","message":"before"}': 1})
    redis.rpush("working", "foreign", "nobody")
    with muniment.start("firehose", "--redis", redis_server.url) as reader:
        eventually(lambda: "cmdstat_zrangebyscore" in redis.info("commandstats"))  # it knows where the logs end
        redis.zadd("foreign_log", {'{"type":"stdout","message":"after"}': 2, "nonsense": 3, "{\n}": 4})
        redis.hset("foreign", "log_score", "4")
        redis.publish("updates", "foreign")
        redis.publish("updates", b"\xff\n")
        first = json.loads(reader.stdout.readline())
        assert (first["message"], first["job_data"]["ident"]) == ("after", "foreign")
        assert muniment("crawl", site.url, "-o", out, "--redis", redis_server.url).code == 0
        count = len(logged_entries(out))
        found = [reader.stdout.readline() for _ in range(count)]
        reader.send_signal(signal.SIGINT)
        assert reader.wait(10) == 0
        assert _lines("".join(found) + reader.stdout.read()) == logged_entries(out)


def test_wrong_use_is_refused(muniment: Any, redis_server: RedisServer, tmp_path: Path) -> None:
    for command, words, code in (
        ((), "give --redis URL", 2),
        (("-o", tmp_path), "log.jsonl", 2),
        (("-o", tmp_path, "--redis", redis_server.url), "leave --redis", 2),
        (("--redis", redis_server.url, "--job", "nobody"), "no job nobody", 2),
        (("--redis", redis_server.url, "--since", "3"), "--since SEQ needs one --job", 2),
        (("--redis", "redis://:hunter2@127.0.0.1:1"), "a password in the address", 2),
        (("--redis", "redis://127.0.0.1:1", "--no-follow"), "cannot be read", 3),
    ):
        refused = muniment("firehose", *command)
        assert refused.code == code
        assert words in refused.stderr
        assert "hunter2" not in refused.stderr
