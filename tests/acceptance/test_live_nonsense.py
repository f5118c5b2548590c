"""Nonsense in Redis, field by field and key by key: it is refused alone, said once, and put back. The crawl goes on."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest
from redis import Redis
from tests.support.live_site import linked_pages, logged_entries
from tests.support.nginx import Nginx
from tests.support.redis_server import RedisServer, eventually

HUGE, BYTES = "9" * 40, b"\xff\xfe"
NUMBERS = "banana", "-5", HUGE, "", "1.5", BYTES
REFUSED = {
    "delay_min": NUMBERS,
    "delay_max": (*NUMBERS, "3"),
    "concurrency": (*NUMBERS, "99999999"),
    "settings_age": NUMBERS,
    "note": ("n" * 3000, BYTES),
}
"""Values that make no sense, each with a line in the log; 3 is below `delay_min`."""
STEERED = "delay_min", "delay_max", "concurrency", "note"
PATTERNS = "(", "", "x" * 3000, BYTES, "(?P<a>", "*"
FLAT = 24 << 20


@pytest.fixture
def site(tmp_path: Path, nginx: Callable[..., Nginx]) -> Nginx:
    return nginx(linked_pages(tmp_path / "site", 400, f"<a href='{'a' * 60}!'>x</a>"))


@contextmanager
def _crawl(muniment: Any, redis_server: RedisServer, site: Nginx, out: Path) -> Iterator[tuple[Any, str]]:
    """A crawl that runs, and its ident; at the end it has asked for the whole site."""
    options = "--delay", "100", "--redis", redis_server.url
    with muniment.start("crawl", site.url, "-o", out, *options) as crawl:
        ident = redis_server.working()
        eventually(lambda: int(redis_server.client.hget(ident, "r2xx") or 0) > 3)
        yield crawl, ident
        assert muniment("set", "delay=0", "per-host=6", "-o", out).code == 0
        assert crawl.wait(60) == 0
    entries = logged_entries(out)
    assert Counter(entry["type"] for entry in entries)["download"] == len(site.requests()) > 400
    assert [entry["seq"] for entry in entries] == list(range(1, len(entries) + 1))


def _refusals(out: Path) -> Counter[str]:
    said = (entry["message"] for entry in logged_entries(out) if entry["type"] == "stdout")
    return Counter(line for line in said if line.startswith("Refused: "))


@pytest.mark.long
@pytest.mark.points(12, 14, 16, 32, 34, 59, 60)
def test_each_field(muniment: Any, redis_server: RedisServer, site: Nginx, tmp_path: Path) -> None:
    """Text, negative, huge, empty, not UTF-8: what is in force comes back, and the log has a line for each."""
    redis, out = redis_server.client, tmp_path / "out"
    with _crawl(muniment, redis_server, site, out) as (crawl, ident):
        raw = Redis(port=redis_server.port)  # it gives what is not UTF-8
        right, before = raw.hmget(ident, *STEERED), psutil.Process(crawl.pid).memory_info().rss
        lines = 0
        for field, values in REFUSED.items():
            for value in values:
                age = int(raw.hget(ident, "settings_age"))
                raw.hset(ident, field, value)
                redis.publish(f"archivebot:job:{ident}", "1")
                lines += 1
                eventually(lambda wanted=lines: sum(_refusals(out).values()) == wanted, within_s=3)  # type: ignore[misc]
                eventually(lambda: raw.hmget(ident, *STEERED) == right, within_s=3)
                assert int(raw.hget(ident, "settings_age")) >= age
        raw.hset(ident, "suppress_ignore_reports", BYTES)
        eventually(lambda: raw.hget(ident, "suppress_ignore_reports") == b"true", within_s=3)
        asked = len(site.requests())
        time.sleep(2)
        assert sum(_refusals(out).values()) == lines  # not one a second
        assert len(site.requests()) > asked + 10
        assert psutil.Process(crawl.pid).memory_info().rss - before < FLAT
    assert set(_refusals(out).values()) == {1}


@pytest.mark.long
@pytest.mark.points(35, 60)
def test_ignore_patterns(muniment: Any, redis_server: RedisServer, site: Nginx, tmp_path: Path) -> None:
    """Patterns that are no patterns, one that would never end, 10,000 at once, and more than that."""
    redis, out = redis_server.client, tmp_path / "out"
    with _crawl(muniment, redis_server, site, out) as (crawl, ident):
        key, kept = f"{ident}_ignores", redis.scard(f"{ident}_ignores")
        before = psutil.Process(crawl.pid).memory_info().rss

        def added(*patterns: str | bytes) -> None:
            redis.sadd(key, *patterns)
            redis.publish(f"archivebot:job:{ident}", str(redis.hincrby(ident, "settings_age", 1)))

        added(*PATTERNS)
        eventually(lambda: sum(_refusals(out).values()) == len(PATTERNS), within_s=3)
        eventually(lambda: redis.scard(key) == kept, within_s=3)
        added("/(a|a)*b$", "/(a+)+$")
        eventually(lambda: _changes(out) == 2, within_s=5)
        added(*(f"/never-{number}/" for number in range(10_000 - kept - 2)))
        eventually(lambda: _changes(out) == 10_000 - kept, within_s=30)
        added(*(f"/more-{number}/" for number in range(100)))
        eventually(lambda: "10100 ignore patterns" in str(_refusals(out)), within_s=5)
        eventually(lambda: redis.scard(key) == 10_000, within_s=5)
        asked = len(site.requests())
        eventually(lambda: len(site.requests()) > asked + 10)
        assert psutil.Process(crawl.pid).memory_info().rss - before < 4 * FLAT
    assert set(_refusals(out).values()) == {1}


def _changes(out: Path) -> int:
    return (out / "crawl.jsonl").read_text().count('"what":"ignores"')


@pytest.mark.points(3, 39, 60, 61)
def test_each_key(muniment: Any, redis_server: RedisServer, site: Nginx, tmp_path: Path) -> None:
    """Keys of another type, there before or put there while it runs, stay as they are; the rest goes on."""
    redis, out = redis_server.client, tmp_path / "out"
    before = "working", "pipelines", "tweets:queue", "tweets:done", "finish_notifications", "muniment:reaper"
    for key in (*before, "muniment:epoch"):
        redis.hset(key, "mine", "1")
    redis.rpush("jobs_completed", "mine")
    options = "--delay", "20", "--redis", redis_server.url
    with muniment.start("crawl", site.url, "-o", out, *options) as crawl:
        ident = str(eventually(lambda: next(redis.scan_iter("*_log"), "").removesuffix("_log")))
        eventually(lambda: int(redis.hget(ident, "r2xx") or 0) > 3)
        during = f"{ident}_ignores", f"{ident}_log", f"muniment:{ident}"
        for key in (*during, str(redis.hget(ident, "pipeline_id"))):
            redis.set(key, "mine")
            score = int(redis.hget(ident, "log_score") or 0)
            eventually(lambda score=score: int(redis.hget(ident, "log_score") or 0) > score)  # type: ignore[misc]
        redis.hset(ident, "note", "so")
        redis.publish(f"archivebot:job:{ident}", str(redis.hincrby(ident, "settings_age", 1)))
        eventually(lambda: '"to":"so"' in (out / "crawl.jsonl").read_text(), within_s=3)
        with redis.pipeline() as pipe:
            pipe.delete(ident)
            pipe.rpush(ident, "mine")
            pipe.execute()
        time.sleep(2)
        assert muniment("set", "delay=0", "-o", out).code == 0
        assert crawl.wait(60) == 0
        said = crawl.stderr.read()
    assert all(redis.hgetall(key) == {"mine": "1"} for key in (*before, "muniment:epoch"))
    assert [redis.get(key) for key in during] == ["mine"] * len(during)
    assert [redis.lrange(key, 0, -1) for key in ("jobs_completed", ident)] == [["mine"]] * 2
    assert "Traceback" not in said
    entries = logged_entries(out)
    assert Counter(entry["type"] for entry in entries)["download"] == len(site.requests()) > 400
    left_alone = [entry["message"] for entry in entries if "has another type" in entry.get("message", "")]
    assert len(left_alone) == len(set(left_alone))
    named = {message.split()[2] for message in left_alone}
    assert {"working", "tweets:queue", "tweets:done", ident, *during[:2]} <= named
