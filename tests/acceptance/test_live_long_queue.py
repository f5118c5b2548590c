"""A crawl with 50,000 queued pages is steered over Redis: the site's log shows each change within two seconds."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.support.nginx import Nginx
from tests.support.redis_server import RedisServer, eventually

PAGES = 50_000
SECOND = "location /q/ { limit_rate 300; return 200 '" + "x" * 200 + "'; }"
"""An answer takes about a second, so that as many come in a second as there are connections."""
WITHIN_S = 2.0


@pytest.fixture
def site(tmp_path: Path, nginx: Callable[..., Nginx]) -> Nginx:
    (tmp_path / "site").mkdir()
    links = "".join(f"<a href=/q/{number}>" for number in range(PAGES))
    (tmp_path / "site" / "index.html").write_text(f"<html>{links}</html>")
    return nginx(tmp_path / "site", server=SECOND)


class _Job:
    """Changes a job as ArchiveBot's Job does."""

    def __init__(self, redis: Any, ident: str) -> None:
        self._redis, self._ident = redis, ident

    def set(self, **fields: int | str) -> None:
        self._redis.hset(self._ident, mapping=fields)
        self._say()

    def ignore(self, patterns: list[str]) -> None:
        self._redis.sadd(f"{self._ident}_ignores", *patterns)
        self._say()

    def _say(self) -> None:
        age = self._redis.hincrby(self._ident, "settings_age", 1)
        self._redis.publish(f"archivebot:job:{self._ident}", age)


class _Killed:
    """Kills what still runs when a test fails."""

    def __init__(self, process: Any) -> None:
        self.close = process.kill


@pytest.mark.long
@pytest.mark.points(12, 14, 16, 35, 42, 56, 58)
def test_each_change_is_seen_within_two_seconds(
    muniment: Any, redis_server: RedisServer, site: Nginx, tmp_path: Path
) -> None:
    out, redis = tmp_path / "out", redis_server.client

    def asked(seconds: float) -> list[str]:
        """What is asked for in so many seconds."""
        before = len(site.requests())
        time.sleep(seconds)
        return [request.uri for request in site.requests()[before:]]

    options = "--redis", redis_server.url, "--no-robots", "--no-sitemaps", "--workers", "1"
    with muniment.start("crawl", site.url, "-o", out, *options) as crawl, closing(_Killed(crawl)):
        ident = redis_server.working()
        eventually(lambda: int(redis.hget(ident, "items_queued") or 0) > PAGES, within_s=60)
        eventually(lambda: len(asked(1)) >= 4)
        job = _Job(redis, ident)
        job.set(concurrency=1)
        time.sleep(WITHIN_S)
        assert 1 <= len(asked(4)) <= 5
        job.set(concurrency=0)
        time.sleep(WITHIN_S)
        assert asked(2) == []
        job.set(concurrency=5)
        time.sleep(WITHIN_S)
        assert len(asked(3)) >= 8
        job.ignore([*(f"/q/never{number}" for number in range(219)), "[02468]$"])
        time.sleep(WITHIN_S)
        odd = asked(3)
        assert odd
        assert not [uri for uri in odd if uri[-1] in "02468"]
        job.set(delay_min=900, delay_max=900)
        time.sleep(WITHIN_S)
        assert 2 <= len(asked(4)) <= 5
        redis.hset(ident, "note", "because")
        eventually(lambda: '"to":"because"' in (out / "crawl.jsonl").read_text(), within_s=WITHIN_S)
        job.set(abort_requested="true")
        assert crawl.wait(5) == 3
    assert redis.hget(ident, "aborted") == "true"
    assert int(redis.hget(ident, "items_queued") or 0) > PAGES
