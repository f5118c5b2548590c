"""A server behind ArchiveBot: jobs come from its queues, are shown and steered in Redis, and end as its bot expects."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.support.archivebot import Bot
from tests.support.nginx import Nginx
from tests.support.redis_server import RedisServer, eventually

PAGES = 30


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RedisServer]:
    running = RedisServer(tmp_path)
    yield running
    running.close()


@pytest.fixture
def site(tmp_path: Path, nginx: Callable[..., Nginx]) -> Nginx:
    directory = tmp_path / "site"
    directory.mkdir()
    links = "".join(f'<a href="p{n}.html">x</a>' for n in range(PAGES))
    (directory / "index.html").write_text(f"<html>{links}<a href='gone'>x</a></html>")
    (directory / "robots.txt").write_text("User-agent: *\nDisallow: /p1\n")
    for n in range(PAGES):
        (directory / f"p{n}.html").write_text(f"<html>page {n}</html>")
    return nginx(directory)


@contextmanager
def _ended(process: Any) -> Iterator[Any]:
    try:
        yield process
    finally:
        process.terminate()
        process.communicate(timeout=30)


class Served:
    """A server with one pipeline, as their users start them."""

    def __init__(self, muniment: Any, redis: RedisServer, directory: Path, *place: object) -> None:
        self._muniment, self._redis, self._directory = muniment, redis, directory
        self.place = place or ("--state", directory / "state")

    @contextmanager
    def serve(self, *options: object) -> Iterator[Any]:
        """Run the server."""
        process = self._muniment.start(
            "serve", *self.place, "--listen", "127.0.0.1:0", "--redis", self._redis.url, "--allow-private",
            "--lease", 5, *options,
        )  # fmt: skip
        self.url = process.stdout.readline().split()[-1]
        with _ended(process):
            yield process

    def register(self, name: str, *options: object) -> str:
        """Register a pipeline while no server runs; its token."""
        added = self._muniment("pipelines", "add", name, *options, *self.place)
        assert added.code == 0, added.stderr
        return str(added.stdout.split()[-1])

    @contextmanager
    def pipeline(self, token: str, *options: object, out: str = "pipe") -> Iterator[Any]:
        """Run a pipeline."""
        given = "-o", self._directory / out, "--allow-private", "--workers", 1, *options
        with _ended(self._muniment.start("pipeline", self.url, *given, MUNIMENT_TOKEN=token)) as process:
            yield process


@pytest.fixture
def served(muniment: Any, server: RedisServer, tmp_path: Path) -> Served:
    return Served(muniment, server, tmp_path)


def _log(redis: Any, ident: str) -> list[dict[str, Any]]:
    return [json.loads(entry) for entry in redis.zrange(f"{ident}_log", 0, -1)]


def test_a_job_of_the_bot_is_crawled_and_told_of(served: Served, server: RedisServer, site: Nginx) -> None:
    """Points 6 to 8, 11, 13, 20, 26, 28 to 30, 36 to 38, 40, 41, 44 and 46 to 50."""
    redis, bot = server.client, Bot(server.client)
    token = served.register("berlin-1")
    with served.serve() as serve, served.pipeline(token) as pipeline:
        ident = bot.queue(site.url, note="why", user_agent="Bot/1")
        assert server.working() == ident
        eventually(lambda: redis.hget(ident, "finished_at"))
        assert redis.hget(ident, "pipeline_id") in redis.lrange("pipelines", 0, -1)
        shown = redis.hgetall(redis.hget(ident, "pipeline_id"))
        pipeline.terminate()
        pipeline.wait()
        eventually(lambda: redis.llen("pipelines") == 0)
        serve.terminate()
        assert serve.wait() == 0, serve.stderr.read()
    assert (shown["nickname"], shown["status"]) == ("berlin-1", "Running")
    assert {"disk_usage", "disk_available", "mem_usage", "mem_available", "load_average_15m", "fqdn", "pid", "python",
            "version", "ts", "hostname", "id"} <= set(shown)  # fmt: skip
    job, requests = redis.hgetall(ident), site.requests()
    statuses = Counter(request.status // 100 for request in requests)
    assert [int(job[f"r{n}xx"]) for n in range(1, 6)] == [statuses[n] for n in range(1, 6)]
    assert len([one for one in requests if one.uri.startswith("/p")]) == PAGES  # robots.txt is not obeyed
    assert {one.user_agent for one in requests} == {"Bot/1"}
    log, end = _log(redis, ident), int(job["log_score"])
    assert [entry["seq"] for entry in log] == list(range(1, end + 1))
    downloads = [entry["url"] for entry in log if entry["type"] == "download"]
    assert sorted(downloads) == sorted(f"{site.url.rstrip('/')}{request.uri}" for request in requests)
    said = [entry["message"] for entry in log if entry["type"] == "stdout"]
    assert (said[0], said[-1]) == (f"Received item {ident}.", f"Finished RsyncUpload for Item {ident}")
    assert (job["counted"], job["note"], job["started_by"], job["url"]) == ("completed", "why", "nick", site.url)
    assert (redis.get("jobs_completed"), redis.llen("working"), redis.llen("pending")) == ("1", 0, 0)
    assert 0 < redis.ttl(ident) <= 172_800
    (notice,) = bot.notices()
    assert notice == {
        "aborted": False, "failed": False, "fetch_depth": "inf", "ident": ident, "pipeline_id": job["pipeline_id"],
        "queued_at": job["queued_at"], "started_by": "nick", "started_in": "#channel", "url": site.url,
        "url_file": None,
    }  # fmt: skip
    assert redis.exists("muniment:taken") == 0


def test_the_bot_steers_a_job(served: Served, server: RedisServer, site: Nginx, muniment: Any) -> None:
    """Points 14, 16, 32, 35, 42, 58 and 60."""
    redis, bot = server.client, Bot(server.client)
    token = served.register("berlin-1")
    with served.serve(), served.pipeline(token):
        ident = bot.queue(site.url, delay_min="500", delay_max="500")
        eventually(lambda: redis.hget(ident, "r2xx") not in {None, "0"})
        redis.sadd(f"{ident}_ignores", r"/p2\d", "(")
        bot.change(ident, concurrency="0", delay_max="x")
        eventually(lambda: redis.hget(ident, "delay_max") == "500")
        eventually(lambda: not redis.sismember(f"{ident}_ignores", "("))
        time.sleep(1)
        before = len(site.requests())
        time.sleep(2)
        assert len(site.requests()) == before
        bot.change(ident, concurrency="2")
        eventually(lambda: len(site.requests()) > before)
        redis.hset(ident, "abort_requested", "true")
        eventually(lambda: redis.hget(ident, "aborted"), within_s=5)
    assert redis.get("jobs_aborted") == "1"
    assert [notice["aborted"] for notice in bot.notices()] == [True]
    assert not [one for one in site.requests() if one.uri.startswith("/p2") and len(one.uri) > 8]
    changes = muniment("job", "changes", "1", "--json", *served.place)
    assert changes.code == 0, changes.stderr
    assert {"redis"} == {one["who"] for one in json.loads(changes.stdout)}


def test_lists_shallow_jobs_and_a_certificate_that_nobody_signed(
    served: Served, server: RedisServer, site: Nginx, tmp_path: Path, nginx: Callable[..., Nginx]
) -> None:
    """Points 14, 18, 32, 34 and 48: `!a <`, `!ao <`, `!ao` and `!a` below a directory, over TLS."""
    redis, bot = server.client, Bot(server.client)
    lists, deep = tmp_path / "lists", tmp_path / "deep"
    (deep / "in").mkdir(parents=True)
    lists.mkdir()
    secure = nginx(deep, tls=True)
    (deep / "in" / "index.html").write_text(
        '<a href="a.html">x</a> <a href="/out.html">x</a> <a href="//o.invalid/">x</a>'
    )
    (deep / "in" / "a.html").write_text("a")
    (deep / "out.html").write_text("out")
    (deep / "index.html").write_text('<a href="/in/">x</a>')
    host = nginx(lists)
    plain = site.url.removeprefix("http://")
    (lists / "pages.txt").write_text(f"{site.url}p1.html\r\n\n  {plain}p2.html\n{site.url}p1.html\n")
    (lists / "sites.txt").write_text(f"{site.url}index.html\n{secure.url}out.html\n")
    token = served.register("berlin-1")
    with served.serve(), served.pipeline(token, "--slots", 2):
        shallow = bot.queue(f"{host.url}pages.txt", depth="shallow", listed=True)
        eventually(lambda: redis.hget(shallow, "counted") == "completed")
        assert sorted(one.uri for one in site.requests() if one.uri != "/robots.txt") == ["/p1.html", "/p2.html"]
        whole = bot.queue(f"{host.url}sites.txt", listed=True, no_offsite_links="true")
        one_page = bot.queue(f"{secure.url}", depth="shallow")
        below = bot.queue(f"{secure.url}in/", no_offsite_links="true")
        missing = bot.queue(f"{host.url}missing.txt", listed=True)
        for ident in (whole, one_page, below):
            eventually(lambda ident=ident: redis.hget(ident, "counted") == "completed")  # type: ignore[misc]
        eventually(lambda: redis.hget(missing, "counted") == "failed")
    assert len({one.uri for one in site.requests()} & {f"/p{n}.html" for n in range(PAGES)}) == PAGES
    found = Counter(one.uri for one in secure.requests())
    assert (found["/in/"], found["/in/a.html"], found["/out.html"], found["/"]) == (1, 1, 1, 1)
    assert redis.hget(shallow, "url_file") == f"{host.url}pages.txt"
    assert "The job has failed: the list of start URLs cannot be read: status 404." in [
        entry.get("message") for entry in _log(redis, missing)
    ]
    told = {notice["ident"]: notice for notice in bot.notices()}
    assert {ident: (told[ident]["failed"], told[ident]["fetch_depth"]) for ident in told} == {
        shallow: (False, "shallow"), whole: (False, "inf"), one_page: (False, "shallow"), below: (False, "inf"),
        missing: (True, "inf"),
    }  # fmt: skip
    assert told[whole]["url_file"] == f"{host.url}sites.txt"
