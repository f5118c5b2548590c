"""A server behind ArchiveBot: jobs come from its queues, are shown and steered in Redis, and end as its bot expects."""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.support.archivebot import Bot, ForeignPipeline
from tests.support.live_site import linked_pages
from tests.support.nginx import Nginx
from tests.support.redis_server import RedisServer, eventually
from tests.support.served import Served

PAGES = 30


@pytest.fixture
def site(tmp_path: Path, nginx: Callable[..., Nginx]) -> Nginx:
    directory = linked_pages(tmp_path / "site", PAGES, "<a href='gone'>x</a>")
    (directory / "robots.txt").write_text("User-agent: *\nDisallow: /p1\n")
    return nginx(directory)


@pytest.fixture
def served(muniment: Any, redis_server: RedisServer, tmp_path: Path) -> Served:
    return Served(muniment, redis_server, tmp_path)


def _log(redis: Any, ident: str) -> list[dict[str, Any]]:
    return [json.loads(entry) for entry in redis.zrange(f"{ident}_log", 0, -1)]


@pytest.mark.points(6, 7, 8, 11, 13, 20, 21, 26, 28, 29, 30, 34, 36, 37, 38, 40, 41, 44, 46, 47, 48, 50)
def test_a_job_of_the_bot_is_crawled_and_told_of(served: Served, redis_server: RedisServer, site: Nginx) -> None:
    redis, bot = redis_server.client, Bot(redis_server.client)
    token = served.register("berlin-1")
    with served.serve() as serve, served.pipeline(token) as pipeline:
        ident = bot.queue(site.url, note="why", user_agent="Bot/1", grabber="phantomjs", youtube_dl="true")
        assert redis_server.working() == ident
        eventually(lambda: redis.hget(ident, "finished_at"))
        assert redis.hget(ident, "pipeline_id") in redis.lrange("pipelines", 0, -1)
        shown = redis.hgetall(redis.hget(ident, "pipeline_id"))
        pipeline.terminate()
        pipeline.wait()
        eventually(lambda: redis.llen("pipelines") == 0)
        serve.terminate()
        assert serve.wait() == 0, serve.stderr.read()
    assert (shown["nickname"], shown["status"], shown["python"]) == ("berlin-1", "Running", sys.version)
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
    assert [line for line in said if "has no effect" in line] == [
        "grabber=phantomjs has no effect: Muniment does not run it.",
        "youtube_dl=true has no effect: Muniment does not run it.",
    ]
    assert (job["grabber"], job["youtube_dl"]) == ("phantomjs", "true")
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


@pytest.mark.points(14, 16, 32, 35, 42, 58, 60)
def test_the_bot_steers_a_job(served: Served, redis_server: RedisServer, site: Nginx, muniment: Any) -> None:
    redis, bot = redis_server.client, Bot(redis_server.client)
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


@pytest.mark.points(14, 18, 32, 34, 46, 48)
def test_lists_shallow_jobs_and_a_certificate_that_nobody_signed(
    served: Served, redis_server: RedisServer, site: Nginx, tmp_path: Path, nginx: Callable[..., Nginx]
) -> None:
    """`!a <`, `!ao <`, `!ao` and `!a` below a directory, over TLS."""
    redis, bot = redis_server.client, Bot(redis_server.client)
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


@pytest.mark.points(1, 3, 4, 46, 47, 52)
def test_nobody_touches_the_jobs_of_others(
    muniment: Any, redis_server: RedisServer, site: Nginx, tmp_path: Path, postgres: Any
) -> None:
    """Two servers of one database, of which the first is killed, two crawls, and a pipeline of ArchiveBot's own."""
    redis, bot = redis_server.client, Bot(redis_server.client)
    first = Served(muniment, redis_server, tmp_path, "--database", postgres.create("live_plane"))
    second = Served(muniment, redis_server, tmp_path, *first.place)
    token, foreign, theirs = first.register("berlin-1"), ForeignPipeline(redis, "paris-1"), set[str]()
    foreign.report()
    with first.serve() as owner, second.serve(), second.pipeline(token):
        crawls = [
            muniment.start(
                "crawl", f"{site.url}{name}", "-o", tmp_path / name, "--redis", redis_server.url, "--delay", "40",
                "--redis-roles", "analyzer,broadcaster,trimmer",
            )
            for name in ("p2.html", "index.html")
        ]  # fmt: skip
        queued = [bot.queue(f"{site.url}p{n}.html", depth="shallow") for n in range(10, 16)]
        queued += [bot.queue(f"{site.url}p{n}.html") for n in range(16, 20)]
        queued.append(bot.queue(f"{site.url}p20.html", depth="shallow", tag="rlin"))
        for round_ in range(400):
            if round_ == 20:
                owner.kill()
            if len(theirs) < 4 and round_ % 3 == 0 and (ident := foreign.take()) is not None:
                theirs.add(ident)
                foreign.log(ident, "mine")
            for ident in theirs:
                foreign.beat(ident)
            if all(redis.hget(ident, "counted") for ident in queued if ident not in theirs):
                break
            time.sleep(0.2)
        kept = {ident: redis.hgetall(ident) for ident in theirs}
        for ident in theirs:
            foreign.done(ident)
        assert [crawl.wait(60) for crawl in crawls] == [0, 0]
    ours = set(queued) - theirs
    assert (len(theirs), len(ours)) == (4, 7)
    assert queued[-1] in ours
    assert {redis.hget(ident, "counted") for ident in ours} == {"completed"}
    for ident, record in kept.items():
        assert (record["pipeline_id"], record["log_score"]) == (foreign.key, "1")
        assert not {"counted", "finished_at", "r2xx", "last_trimmed_log_entry"} & set(record)
        assert not redis.exists(f"muniment:{ident}")
    assert redis.get("jobs_completed") == str(len(queued) + 2)
    assert redis.lrange("working", 0, -1) == []
    assert sorted(one["ident"] for one in bot.notices() if "ident" in one) == sorted(ours)
    assert len([one for one in site.requests() if one.uri in {f"/p{n}.html" for n in range(10, 21)}]) >= len(ours)


@pytest.mark.long
@pytest.mark.points(3, 47, 48, 60)
def test_odd_queues_cost_nothing_but_themselves(served: Served, redis_server: RedisServer, site: Nginx) -> None:
    """What stands in queues without a record, twice, or with values that make no sense."""
    redis, bot = redis_server.client, Bot(redis_server.client)
    token = served.register("berlin-1")
    redis.lpush("pending", "nobody", "odd", "text", b"\xff\xfe")
    redis.hset("odd", "fetch_depth", "inf")
    redis.set("text", "no record")
    redis.set("pending:berlin", "no list")
    redis.set("finish_notifications", "no list")
    with served.serve() as serve, served.pipeline(token):
        ident = bot.register(
            f"{site.url}p2.html", depth="shallow", delay_min="-1", delay_max="x", concurrency="9" * 30,
            user_agent="a\nb", note="n" * 3000, ignores=("(", "", "x" * 3000, "^fine"), started_in="\x02#c\n",
        )  # fmt: skip
        redis.sadd(f"{ident}_ignores", b"\xff")
        for _ in range(5):
            bot.push(ident, "pending", 1_700_000_000)
        refused = bot.queue("mailto:somebody@example.com")
        with_account = bot.queue("http://me:secret@example.com/")
        for one, outcome in ((ident, "completed"), (refused, "failed"), (with_account, "failed")):
            eventually(lambda one=one: redis.hget(one, "counted"))  # type: ignore[misc]
            assert redis.hget(one, "counted") == outcome
        eventually(lambda: not redis.exists("pending"))
        once_more = bot.queue(f"{site.url}p3.html", depth="shallow")
        eventually(lambda: redis.hget(once_more, "counted"))
        bot.push(bot.register(f"{site.url}p3.html", depth="shallow"), "pending-ao", int(time.time()) + 5)
        eventually(lambda: redis.get("jobs_completed") == "3" and not redis.exists("working"))
        serve.terminate()
        said = serve.communicate(timeout=30)[1]
    left_out = [said.count(f"{name} in the queue pending of Redis is left out") for name in ("nobody", "odd", "text")]
    assert left_out == [1, 1, 1]
    assert "secret" not in said
    assert Counter(one.uri for one in site.requests() if one.uri != "/robots.txt") == {"/p2.html": 1, "/p3.html": 2}
    assert (redis.get("jobs_completed"), redis.get("jobs_failed")) == ("3", "2")
    assert redis.hmget("odd", "fetch_depth", "started_at") == ["inf", None]
    assert redis.mget("text", "pending:berlin", "finish_notifications") == ["no record", "no list", "no list"]
    assert redis.smembers(f"{ident}_ignores") == {"^fine"}
    messages = [entry["message"] for entry in _log(redis, refused)]
    assert len(messages) == 1
    assert "is not an http or https URL" in messages[0]
    assert redis.llen("working") == 0


@pytest.mark.points(32, 35, 38)
def test_a_job_whose_patterns_leave_its_url_out_says_so(served: Served, redis_server: RedisServer, site: Nginx) -> None:
    """It has failed before it is shown: its log begins with its begin all the same."""
    redis, bot = redis_server.client, Bot(redis_server.client)
    token = served.register("berlin-1")
    with served.serve(), served.pipeline(token):
        ident = bot.queue(site.url, ignores=("^https?://127",))
        eventually(lambda: redis.hget(ident, "counted") == "failed")
    assert [entry["message"] for entry in _log(redis, ident)] == [
        f"Received item {ident}.",
        "The job has failed: no start URL was captured.",
        f"Finished RsyncUpload for Item {ident}",
    ]
    assert site.requests() == []


@pytest.mark.long
@pytest.mark.points(5)
def test_a_server_has_its_password_from_a_file(
    served: Served, redis_server: RedisServer, site: Nginx, tmp_path: Path
) -> None:
    """Neither its command line nor what it says has it."""
    redis, accounts = redis_server.client, tmp_path / "accounts"
    redis.config_set("requirepass", "hunter2")
    redis.execute_command("AUTH", "hunter2")
    accounts.write_text("machine 127.0.0.1 login default password hunter2\n")
    token = served.register("berlin-1")
    with served.serve("--auth-file", accounts) as serve, served.pipeline(token):
        ident = Bot(redis).queue(site.url, depth="shallow")
        eventually(lambda: redis.hget(ident, "counted") == "completed")
        processes = [psutil.Process(serve.pid), *psutil.Process(serve.pid).children(recursive=True)]
        assert not [one for one in processes if "hunter2" in f"{one.cmdline()}{one.environ()}"]
        serve.terminate()
        assert "hunter2" not in "".join(serve.communicate(timeout=30))


@pytest.mark.points(49)
def test_a_private_target_is_refused_with_its_reason(muniment: Any, redis_server: RedisServer, tmp_path: Path) -> None:
    redis, bot, served = redis_server.client, Bot(redis_server.client), Served(muniment, redis_server, tmp_path)
    served.private = False
    token = served.register("berlin-1")
    with served.serve(), served.pipeline(token):
        ident = bot.queue("http://127.0.0.1:1/")
        eventually(lambda: redis.hget(ident, "counted") == "failed")
        (entry,) = _log(redis, ident)
        assert "not a public address" in entry["message"]
        (notice,) = bot.notices()
    assert (notice["failed"], notice["url"], notice["started_in"]) == (True, "http://127.0.0.1:1/", "#channel")
    assert 0 < redis.ttl(ident) <= 172_800
    assert redis.exists("working", "muniment:taken") == 0


@pytest.mark.points(40, 50, 51, 61)
def test_records_of_ended_jobs_come_back_after_redis_was_emptied(
    served: Served, redis_server: RedisServer, site: Nginx
) -> None:
    """As they were, for the rest of their time, with the counts; not that of an aborted job, nor what somebody took."""
    redis, bot = redis_server.client, Bot(redis_server.client)
    token = served.register("berlin-1")
    with served.serve(), served.pipeline(token, "--slots", 2):
        ended = bot.queue(site.url, ignores=("/p3$",))
        eventually(lambda: redis.hget(ended, "counted") == "completed")
        runs = bot.queue(f"{site.url}index.html", delay_min="2000", delay_max="2000")
        aborted = bot.queue(f"{site.url}p2.html", delay_min="5000", delay_max="5000")
        eventually(lambda: set(redis.lrange("working", 0, -1)) == {runs, aborted})
        redis.hset(aborted, "abort_requested", "true")
        eventually(lambda: redis.hget(aborted, "aborted"))
        time.sleep(1.5)
        log, ignores = f"{ended}_log", f"{ended}_ignores"
        record, before = _lasting(redis, ended), (redis.zrange(log, 0, -1, withscores=True), redis.smembers(ignores))
        redis.flushall()
        assert redis_server.working() == runs
        eventually(lambda: redis.hget(ended, "counted") == "completed")
        assert _lasting(redis, ended) == record
        assert (redis.zrange(log, 0, -1, withscores=True), redis.smembers(ignores)) == before
        assert all(172_000 < redis.ttl(key) <= 172_800 for key in (ended, log, ignores))
        assert redis.mget("jobs_completed", "jobs_aborted") == ["1", "1"]
        assert not redis.exists(aborted)
        redis.delete(ended)
        time.sleep(2)
        assert not redis.exists(ended)
        assert redis.lrange("working", 0, -1) == [runs]


def _lasting(redis: Any, ident: str) -> dict[str, str]:
    """The fields of a record that are the same when it is written anew; its age is that of the tracker then."""
    others = {"ts", "heartbeat", "finished_at", "settings_age", "death_timer", "last_acknowledged_heartbeat"}
    return {name: value for name, value in redis.hgetall(ident).items() if name not in others}


@pytest.mark.points(51, 61)
def test_a_record_that_was_expired_does_not_come_back(served: Served, redis_server: RedisServer, site: Nginx) -> None:
    """What the bot's `!expire` does; not even with a database that is emptied, nor with another server."""
    redis, bot = redis_server.client, Bot(redis_server.client)
    token = served.register("berlin-1")
    with served.serve(), served.pipeline(token):
        idents = [bot.queue(f"{site.url}p{number}.html", depth="shallow") for number in range(3)]
        for ident in idents:
            eventually(lambda ident=ident: redis.hget(ident, "counted") == "completed")  # type: ignore[misc]
        expired, *kept = idents
        with redis.pipeline() as pipe:
            for key in (expired, f"{expired}_log", f"{expired}_ignores"):
                pipe.expire(key, 0)
            pipe.execute()
        time.sleep(4)
        redis.flushall()
        eventually(lambda: redis.exists(*kept) == 2)
        time.sleep(2)
        assert not redis.exists(expired)
    redis.flushall()
    with served.serve():
        eventually(lambda: redis.exists(*kept) == 2)
        time.sleep(2)
        assert not redis.exists(expired, f"{expired}_log", f"{expired}_ignores")


@pytest.mark.points(38, 40, 43, 61)
def test_redis_may_go_and_a_job_may_be_taken_up_again(
    served: Served, redis_server: RedisServer, site: Nginx, muniment: Any
) -> None:
    """With reports of what is ignored."""
    redis, bot = redis_server.client, Bot(redis_server.client)
    token = served.register("berlin-1")
    with served.serve(), served.pipeline(token):
        ident = bot.queue(site.url, delay_min="150", delay_max="150")
        eventually(lambda: redis.hget(ident, "r2xx") not in {None, "0"})
        redis.hdel(ident, "suppress_ignore_reports")
        redis.sadd(f"{ident}_ignores", r"/p2\d")
        bot.change(ident)
        eventually(lambda: any(entry["type"] == "ignore" for entry in _log(redis, ident)))
        redis_server.kill()
        asked = len(site.requests())
        eventually(lambda: len(site.requests()) > asked + 3)
        redis_server.start()
        assert redis_server.working() == ident
        assert redis.hmget(ident, "url", "suppress_ignore_reports") == [site.url, None]
        redis.hset(ident, "failed", "true")
        eventually(lambda: redis.hget(ident, "counted") == "failed")
        assert (redis.lrange("working", 0, -1), redis.get("jobs_failed")) == ([], None)
    resumed = muniment("job", "resume", "1", *served.place)
    assert resumed.code == 0, resumed.stderr
    with served.serve(), served.pipeline(token):
        eventually(lambda: redis.hget(ident, "counted") == "completed")
    log = _log(redis, ident)
    assert [entry["seq"] for entry in log] == list(range(1, len(log) + 1))
    ignored = [entry["url"] for entry in log if entry["type"] == "ignore"]
    asked_for = {f"{site.url.rstrip('/')}{request.uri}" for request in site.requests()}
    assert len(ignored) == len(set(ignored))
    assert not set(ignored) & asked_for
    assert len(asked_for & {f"{site.url}p{n}.html" for n in range(PAGES)}) + len(ignored) == PAGES
    assert redis.get("jobs_completed") == "1"
