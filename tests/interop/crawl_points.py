"""Points of a crawl: ArchiveBot's class Job, and its scripts in place of ours."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

from tests.interop.bench import Bench, changes
from tests.support.nginx import Nginx
from tests.support.redis_server import eventually

__all__ = ["POINTS"]


def shown(bench: Bench) -> None:
    """6-9, 13-34: Job.from_ident computes the same ident and reads every field; status, pipeline, log"""
    with bench.crawl() as (_, ident, _out):
        found = bench.job(ident, "show")
        assert found["computed_ident"] == ident
        assert found["url"].startswith(bench.site.url)
        assert (found["depth"], found["finished"], found["aborted"]) == ("inf", False, False)
        assert found["r2xx"] > 2
        assert found["total"] >= found["items_downloaded"]
        assert (found["concurrency"], found["delay_min"]) == (6, 200)
        assert "In progress. Downloaded" in found["status"]
        assert found["working"] == [ident]
        assert found["pipelines"] == [found["pipeline_id"]]
        assert found["pipeline"]
        assert all(json.loads(entry)["type"] in {"download", "stdout", "ignore"} for entry in found["recent"])


def steered(bench: Bench) -> None:
    """10, 12, 14, 16, 32, 35, 54-58: delay, concurrency 1, 0 and 5, 220 ignores, reports, note: each within 2 s"""
    with bench.crawl() as (_, ident, out):
        redis = bench.server.client
        before = redis.scard(f"{ident}_ignores")
        bench.job(ident, "delay", "100", "150")
        bench.within("delay", lambda: ("delay", "100-150") in changes(out))
        bench.job(ident, "concurrency", "1")
        bench.within("concurrency 1", lambda: ("per-host", "1") in changes(out))
        bench.job(ident, "concurrency", "0")
        bench.within("concurrency 0", lambda: any(what == "paused" for what, _ in changes(out)))
        time.sleep(0.5)
        asked = len(bench.site.requests())
        time.sleep(1.5)
        assert len(bench.site.requests()) == asked
        bench.job(ident, "concurrency", "5")
        bench.within("concurrency 5", lambda: ("per-host", "5") in changes(out) and len(bench.site.requests()) > asked)
        patterns = [f"never-{number}/" for number in range(220)]
        bench.job(ident, "ignore", *patterns)
        bench.within("220 ignores", lambda: sum(what == "ignores" for what, _ in changes(out)) >= 220)
        bench.job(ident, "unignore", patterns[0])
        bench.within("an ignore less", lambda: redis.scard(f"{ident}_ignores") == before + 219)
        bench.job(ident, "reports", "on")
        bench.within("reports", lambda: ("ignore-reports", "on") in changes(out))
        bench.job(ident, "note", "because")
        bench.within("note", lambda: ("explanation", "because") in changes(out))
        bench.job(ident, "yahoo")
        bench.within("yahoo", lambda: ("delay", "0") in changes(out))


def heard(bench: Bench) -> None:
    """55: a change by `muniment set` is what Job reads, with a later settings age"""
    with bench.crawl() as (_, ident, out):
        age = int(bench.server.client.hget(ident, "settings_age") or 0)
        subprocess.run([sys.executable, "-m", "muniment", "set", "delay=321", "-o", out, "--quiet"], check=True)
        bench.within("age", lambda: int(bench.server.client.hget(ident, "settings_age") or 0) > age)
        assert bench.job(ident, "show")["delay_min"] == 321


def aborted(bench: Bench) -> None:
    """42, 50: Job#abort ends the crawl within 5 s with exit 3, and Job says so"""
    with bench.crawl() as (crawl, ident, _out):
        bench.job(ident, "abort")
        assert crawl.wait(5) == 3
        found = bench.server.client.hgetall(ident)
        assert (found.get("aborted"), bench.server.client.get("jobs_aborted")) == ("true", "1")
        assert 0 <= bench.server.client.ttl(ident) <= 5


def failed(bench: Bench) -> None:
    """43: Job#fail, as on the console, ends the crawl with exit 4 and is counted once"""
    with bench.crawl() as (crawl, ident, _out):
        bench.job(ident, "fail")
        assert crawl.wait(10) == 4
        assert bench.server.client.get("jobs_failed") == "1"


def expired(bench: Bench) -> None:
    """51: Job#expire takes a finished job away for good"""
    with bench.crawl(delay=0) as (crawl, ident, _out):
        assert crawl.wait(60) == 0
        assert "Job completed." in bench.job(ident, "show")["status"]
        bench.job(ident, "expire")
        eventually(lambda: not bench.server.client.exists(ident, f"{ident}_log", f"{ident}_ignores"))


def plumbing(bench: Bench) -> None:
    """33, 36-38, 53: its analyzer, trimmer and firehose in place of ours: every entry is broadcast once and counted"""
    env = {**os.environ, "REDIS_URL": bench.server.url, "UPDATES_CHANNEL": "updates"}
    env["FIREHOSE_SOCKET_URL"] = f"ipc://{bench.home}/firehose"
    scripts = bench.checkout / "plumbing"
    received, trimmed = bench.home / "received.jsonl", bench.home / "trimmed"
    with ExitStack() as started:

        def start(command: str, output: Path | None) -> subprocess.Popen[bytes]:
            file = started.enter_context(output.open("wb")) if output else subprocess.DEVNULL
            shell = subprocess.Popen(
                ["bash", "-c", command], env=env, cwd=scripts, stdout=file, stderr=subprocess.DEVNULL, process_group=0
            )
            started.callback(lambda: (shell.poll() is None and os.killpg(shell.pid, 9), shell.wait()))
            return shell

        start("ruby updates-listener | ruby log-firehose", None)
        start("ruby updates-listener | ruby analyze-logs", None)
        start("ruby updates-listener | ruby trim-logs", trimmed)
        client = start("exec ruby firehose-client", received)
        eventually(lambda: bench.server.client.pubsub_numsub("updates")[0][1] == 3)
        time.sleep(2)  # the socket of the firehose has no sign of being there
        with bench.crawl("--redis-roles", "reaper", delay=10) as (crawl, ident, out):
            assert crawl.wait(120) == 0
            entries = [json.loads(line) for line in (out / "log.jsonl").read_bytes().splitlines()]
            counted = sum(entry["type"] == "download" for entry in entries)
            names = ("r1xx", "r2xx", "r3xx", "r4xx", "r5xx", "runk")
            eventually(lambda: sum(map(int, filter(None, bench.server.client.hmget(ident, names)))) == counted)
            cursor = f"{len(entries)}.0"
            eventually(lambda: bench.server.client.hget(ident, "last_broadcasted_log_entry") == cursor)
            time.sleep(1)
            client.terminate()  # then it writes what it has
            client.wait(10)
            got = [json.loads(line) for line in received.read_text().splitlines()]
            assert all(line.pop("job_data")["ident"] == ident for line in got)
            assert got == entries
            eventually(lambda: not bench.server.client.exists(f"{ident}_log"))  # its trimmer took all
            assert trimmed.read_bytes().count(b"\n") == len(entries)


def long_queue(bench: Bench) -> None:
    """12, 14, 16, 35, 42, 58: the same while 50,000 pages are queued; Job#abort within 5 s"""
    (bench.home / "long").mkdir()
    links = "".join(f"<a href=/q/{number}>" for number in range(50_000))
    (bench.home / "long" / "index.html").write_text(links)
    with Nginx(bench.home / "long", server="location /q/ { return 200 page; }") as site:
        long = Bench(bench.checkout, bench.home, site, bench.server, 50_000, bench.old_python)
        with long.crawl(delay=100) as (crawl, ident, out):
            eventually(lambda: int(bench.server.client.hget(ident, "items_queued") or 0) > long.pages)
            for verb, given, change in (
                ("delay", ["150", "160"], ("delay", "150-160")),
                ("concurrency", ["1"], ("per-host", "1")),
                ("note", ["because"], ("explanation", "because")),
                ("ignore", [f"never-{number}/" for number in range(220)], ("ignores", "never-219/")),
            ):
                long.job(ident, verb, *given)
                long.within(verb, lambda change=change: change in changes(out))  # type: ignore[misc]
            long.job(ident, "abort")
            assert crawl.wait(5) == 3


POINTS = (shown, steered, long_queue, heard, aborted, failed, expired, plumbing)
