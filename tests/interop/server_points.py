"""Points of a server: ArchiveBot's whole bot, its Control, its Listener, its reaper and its websocket server."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.interop.bench import HERE, Bench, IrcBot, Talker, changes
from tests.support.fleet import Fleet
from tests.support.nginx import Nginx, free_port
from tests.support.redis_server import eventually

__all__ = ["POINTS", "WITH_OLD_PYTHON"]

PATTERNS = 220
"""In ArchiveBot's set `global`."""
CHROME = "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36"


def _site(directory: Path, links: str) -> Path:
    (directory / "in").mkdir(parents=True)
    (directory / "robots.txt").write_text("User-agent: *\nDisallow: /\n")
    (directory / "in" / "index.html").write_text(f"<a href=a.html>a</a><a href=/above.html>x</a>{links}")
    (directory / "in" / "a.html").write_text("<img src=/dot.png>a")
    (directory / "above.html").write_text("<a href=1.html>1</a>")
    for name in ("dot.png", *(f"{number}.html" for number in range(20))):
        (directory / name).write_text(name)
    return directory


def _named(site: Nginx, name: str = "site") -> str:
    """The URL of a site by a name that leads to it, for the bot's patterns leave private addresses out."""
    return site.url.replace("127.0.0.1", f"{name}.localhost")


@contextmanager
def _served(bench: Bench) -> Iterator[Fleet]:
    """A server with its live plane."""
    with Fleet(bench.home / "fleet", ("--state", str(bench.home / "tracker")), lease_s=5) as fleet:
        fleet.serve("--redis", bench.server.url)
        yield fleet


@contextmanager
def _bot(bench: Bench) -> Iterator[IrcBot]:
    bot = IrcBot(bench.checkout, bench.server.url)
    try:
        yield bot
    finally:
        bot.end()


def _queued(bot: IrcBot, text: str) -> str:
    """The ident of what a message queues."""
    said = bot.says(text)
    found = [line.split()[2] for line in said if line.startswith("Use !status ")]
    assert found, said
    return found[0]


def _ended(bench: Bench, ident: str, outcome: str = "completed") -> dict[str, str]:
    redis = bench.server.client
    eventually(lambda: redis.hget(ident, "counted"), within_s=60)
    record: dict[str, str] = redis.hgetall(ident)
    assert record["counted"] == outcome
    return record


def _nickname(bench: Bench, record: dict[str, str]) -> str | None:
    return bench.server.client.hget(record["pipeline_id"], "nickname")


def queued(bench: Bench) -> None:
    """18, 32, 34, 46-48: the bot queues `!a` with all its options: each is crawled as it says, and announced"""
    with ExitStack() as stack:
        fleet, bot = stack.enter_context(_served(bench)), stack.enter_context(_bot(bench))
        other = stack.enter_context(Nginx(_site(bench.home / "other", "")))
        offsite = f"<a href={_named(other, 'other')}in/a.html>x</a>"
        sites = [stack.enter_context(Nginx(_site(bench.home / name, offsite))) for name in ("one", "two", "three")]
        fleet.pipeline("--slots", "2")
        fleet.pipeline()
        fleet.ask("pipelines", "set", "p1", "--tags", "large")
        eventually(lambda: len(bench.server.client.lrange("pipelines", 0, -1)) == 2)
        assert len(bot.ticks()) == 2  # both connected
        options = '--pipeline p0 --user-agent-alias chrome --delay 7 --concurrency 2 --explain "because of a test"'
        named = _queued(bot, f"!a {_named(sites[0])}in/ {options}")
        inside = _queued(bot, f"!a {_named(sites[1])}in/ --no-offsite-links")
        large = _queued(bot, f"!a {_named(sites[2])}in/ --large")
        records = {ident: _ended(bench, ident) for ident in (named, inside, large)}
        assert [_nickname(bench, records[ident]) for ident in (named, large)] == ["p0", "p1"]
        given = [records[named][name] for name in ("delay_min", "delay_max", "concurrency", "note", "fetch_depth")]
        assert given == ["7", "7", "2", "because of a test", "inf"]
        assert {request.user_agent[: len(CHROME)] for request in sites[0].requests()} == {CHROME}
        assert not any(request.user_agent.startswith(CHROME) for request in sites[1].requests())
        for site in sites:
            asked = {request.uri for request in site.requests()}
            # robots.txt forbids all and is not obeyed
            assert {"/in/", "/in/a.html", "/dot.png"} <= asked
            # what is above counts as another site: captured, but not followed
            assert "/1.html" not in asked
            assert ("/above.html" in asked) == (site is not sites[1])
        assert Counter(request.uri for request in other.requests())["/in/a.html"] == 2
        assert bench.server.client.scard(f"{named}_ignores") == PATTERNS
        assert "Job completed." in bot.says(f"!status {named}")[0]
        assert "3 completed, 0 aborted, 0 failed, 0 in progress, 0 pending" in bot.says("!status")[0]
        said = bot.ticks()
        assert sorted(said) == sorted(f"ann: Your job for {_named(site)}in/ has finished." for site in sites)
        assert "already exists." in bot.says(f"!a {_named(sites[0])}in/")[0]


def listed(bench: Bench) -> None:
    """18, 32, 46-48: the bot queues `!ao`, `!a <` and `!ao <`, over TLS with a certificate that nobody signed, too"""
    with ExitStack() as stack:
        fleet, bot = stack.enter_context(_served(bench)), stack.enter_context(_bot(bench))
        secure = stack.enter_context(Nginx(_site(bench.home / "secure", ""), tls=True))
        (bench.home / "lists").mkdir()
        lists = stack.enter_context(Nginx(bench.home / "lists"))
        (bench.home / "lists" / "pages.txt").write_text(f"{_named(secure)}1.html\n{_named(secure)}2.html\n")
        (bench.home / "lists" / "sites.txt").write_text(f"{_named(secure)}in/\n{_named(bench.site)}\n")
        fleet.pipeline("--slots", "3")
        one = _queued(bot, f"!ao {_named(secure)}in/a.html")
        assert _ended(bench, one)["fetch_depth"] == "shallow"
        assert {request.uri for request in secure.requests()} - {"/robots.txt"} == {"/in/a.html", "/dot.png"}
        pages = _queued(bot, f"!ao < {_named(lists)}pages.txt")
        assert _ended(bench, pages)["url_file"] == f"{_named(lists)}pages.txt"
        assert {"/1.html", "/2.html"} <= {request.uri for request in secure.requests()}
        assert "/in/" not in {request.uri for request in secure.requests()}
        sites = _queued(bot, f"!a < {_named(lists)}sites.txt --delay 0")
        _ended(bench, sites)
        assert "/in/" in {request.uri for request in secure.requests()}
        assert len([request for request in bench.site.requests() if request.uri.startswith("/p")]) == bench.pages
        missing = _queued(bot, f"!a < {_named(lists)}missing.txt")
        _ended(bench, missing, "failed")
        messages = "\n".join(bot.ticks())
        for url in (
            f"{_named(secure)}in/a.html",
            *(f"{_named(lists)}{name}.txt" for name in ("pages", "sites", "missing")),
        ):
            assert f"ann: Your job for {url} has finished." in messages


def talked(bench: Bench) -> None:
    """14, 16, 35, 42, 50: `!d`, `!con`, `!ig`, `!igon`, `!ex` and `!abort` to the bot, in force within 5 s"""
    with _served(bench) as fleet, _bot(bench) as bot:
        fleet.pipeline()
        ident, redis = _queued(bot, f"!a {_named(bench.site)} --delay 500"), bench.server.client
        eventually(lambda: int(redis.hget(ident, "r2xx") or 0) > 2)
        for text in (f"!d {ident} 300 310", f"!con {ident} 1", f"!ig {ident} /p2", f"!igon {ident}", f"!ex {ident} so"):
            bot.says(text)
        told = {"delay": "300-310", "per-host": "1", "ignores": "/p2", "ignore-reports": "on", "explanation": "so"}

        def there() -> bool:
            found = json.loads(fleet.ask("job", "changes", "1", "--json"))
            return told.items() <= {one["what"]: one["after"] for one in found if one["who"] == "redis"}.items()

        eventually(there, within_s=5)
        assert bot.says(f"!w {ident}")[0].startswith(f'Job {ident} is on pipeline "p0"')
        bot.says(f"!abort {ident}")
        eventually(lambda: redis.hget(ident, "aborted"), within_s=5)
        assert f"ann: Your job for {_named(bench.site)} was aborted." in bot.ticks()


def reaped(bench: Bench) -> None:
    """15, 52: its reaper in place of ours acknowledges heartbeats, and counts for a crawl that is frozen"""
    program = f"require '{bench.checkout}/cogs/reaper'; Reaper.new('{bench.server.url}'); sleep"
    reaper = subprocess.Popen(["ruby", "-W0", "-e", program])
    try:
        with bench.crawl("--redis-roles", "analyzer,broadcaster,trimmer") as (crawl, ident, _out):
            redis = bench.server.client
            eventually(lambda: redis.hget(ident, "death_timer") == "0")
            beat = int(redis.hget(ident, "last_acknowledged_heartbeat") or 0)
            eventually(lambda: int(redis.hget(ident, "last_acknowledged_heartbeat") or 0) > beat)
            crawl.send_signal(19)
            eventually(lambda: int(redis.hget(ident, "death_timer") or 0) >= 2)
            crawl.send_signal(18)
            eventually(lambda: redis.hget(ident, "death_timer") == "0")
    finally:
        reaper.kill()
        reaper.wait()


def shared(bench: Bench) -> None:
    """1-3, 39, 46, 47: Control as a foreign pipeline: of 24 jobs none is taken twice, nobody touches the other's"""
    key, redis = "pipeline:f0e1d2c3b4a5968778695a4b3c2d1e0f", bench.server.client
    client = [bench.old_python, HERE / "pipeline.py", bench.checkout, bench.server.url]
    foreign = Talker([*client, "work", key, "paris-1"])
    try:
        with _served(bench) as fleet, _bot(bench) as bot:
            eventually(lambda: redis.type("pipelines") == "set")
            fleet.pipeline("--slots", "2")
            idents = [_queued(bot, f"!ao {_named(bench.site)}p{number}.html") for number in range(20)]
            idents += [_queued(bot, f"!a {_named(bench.site)}p{number}.html --pipeline paris") for number in (20, 21)]
            idents += [_queued(bot, f"!a {_named(bench.site)}p{number}.html --pipeline p0") for number in (22, 23)]
            eventually(lambda: redis.get("jobs_completed") == "24", within_s=120)
            eventually(lambda: redis.llen("working") == 0)
            theirs = [told["taken"] for told in iter(lambda: foreign.next(3), None) if "taken" in told]
            assert len(theirs) == len(set(theirs)) >= 3
            assert {idents[20], idents[21]} <= set(theirs)
            assert not {idents[22], idents[23]} & set(theirs)
            for ident in theirs:
                record, log = redis.hgetall(ident), redis.zrange(f"{ident}_log", 0, -1)
                assert (record["pipeline_id"], record["heartbeat"], record["log_score"]) == (key, "3", "3")
                assert not {"counted", "r2xx", "last_trimmed_log_entry"} & set(record)
                assert len(log) == 3
                assert not redis.exists(f"muniment:{ident}")
            ours = set(idents) - set(theirs)
            assert all(redis.hget(ident, "counted") == "completed" for ident in ours)
            said = Counter(line for line in bot.ticks() if line.startswith("ann: "))
            assert set(said.values()) == {1}
            assert len(said) == len(idents)
            asked = Counter(request.uri for request in bench.site.requests() if request.uri.startswith("/p"))
            assert set(asked.values()) == {1}
            assert len(asked) == len(ours)
            assert redis.sismember("pipelines", key)
    finally:
        foreign.end()


def listened(bench: Bench) -> None:
    """55, 56: its Listener has what `muniment set` changes within 2 s"""
    with bench.crawl() as (_, ident, out):
        client = [bench.old_python, HERE / "pipeline.py", bench.checkout, bench.server.url]
        listener = Talker([*client, "listen", ident])
        try:
            found = listener.next()
            while found is not None and found["delay_min"] is None:
                found = listener.next()
            assert found is not None
            assert (found["delay_min"], found["concurrency"], found["abort_requested"]) == (200, 6, None)
            time.sleep(1)  # then it has subscribed
            for given, name, value in (("delay=321", "delay_min", 321), ("per-host=2", "concurrency", 2)):
                subprocess.run([sys.executable, "-m", "muniment", "set", given, "-o", out, "--quiet"], check=True)
                now = listener.next(2.0)
                assert now is not None
                assert (now[name], now["age"] > found["age"], now["ignores"]) == (value, True, found["ignores"])
                found = now
            assert changes(out) == []  # nothing of it comes back
        finally:
            listener.end()


def streamed(bench: Bench) -> None:
    """36, 38, 53: its websocket server sends what `muniment firehose` prints: each entry once, in order"""
    port = free_port()
    with ExitStack() as stack:

        def started(command: list[object], **given: object) -> subprocess.Popen[bytes]:
            process = subprocess.Popen([str(word) for word in command], **given)  # type: ignore[call-overload]
            stack.callback(lambda: (process.kill(), process.wait()))
            return process  # type: ignore[no-any-return]

        firehose = [sys.executable, "-m", "muniment", "firehose", "--redis", bench.server.url, "--since", "0"]
        source = started([*firehose], stdout=subprocess.PIPE)
        serve = [bench.old_python, HERE / "dashboard.py", "serve", bench.checkout, port]
        started(serve, stdin=source.stdout, stdout=subprocess.DEVNULL)
        eventually(lambda: _listens(port))
        received = bench.home / "received.jsonl"
        browser = [bench.old_python, HERE / "dashboard.py", "receive", port]
        started(browser, stdout=stack.enter_context(received.open("wb")))
        eventually(lambda: b"connected" in received.read_bytes())
        with bench.crawl(delay=10) as (crawl, ident, out):
            assert crawl.wait(120) == 0
            entries = [json.loads(line) for line in (out / "log.jsonl").read_bytes().splitlines()]
            eventually(lambda: received.read_bytes().count(b"\n") > len(entries))
        got = [json.loads(line) for line in received.read_text().splitlines()[1:]]
        assert all(line.pop("job_data")["ident"] == ident for line in got)
        assert got == entries


def _listens(port: int) -> bool:
    done = subprocess.run(["ss", "-Hltn", f"sport = :{port}"], capture_output=True, text=True, check=False)
    return bool(done.stdout.strip())


POINTS = (queued, listed, talked, reaped)
WITH_OLD_PYTHON = (shared, listened, streamed)
