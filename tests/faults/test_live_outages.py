"""Outages of Redis at random moments of a crawl, while its settings change on both sides: at the end all agree.

`MUNIMENT_OUTAGES=30` gives thirty of them.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
import redis
from tests.support.live_site import linked_pages, logged_entries
from tests.support.nginx import Nginx
from tests.support.redis_server import RedisServer, eventually

OUTAGES = int(os.environ.get("MUNIMENT_OUTAGES", "8"))
SEED = int(os.environ.get("MUNIMENT_KILL_SEED", "0")) or random.randrange(1 << 30)
PAGES, STOOD_WITHIN_S = max(2000, 250 * OUTAGES), 15.0
KINDS = "killed", "frozen", "emptied", "old", "loading", "read-only", "full"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RedisServer]:
    running = RedisServer(tmp_path, "--loading-process-events-interval-bytes", "1024")
    yield running
    running.close()


@pytest.fixture
def site(tmp_path: Path, nginx: Callable[..., Nginx]) -> Nginx:
    return nginx(linked_pages(tmp_path / "site", PAGES))


class _Outages:
    """What befalls a server."""

    def __init__(self, server: RedisServer, directory: Path) -> None:
        self._server, self._dump, self._old = server, directory / "dump.rdb", directory / "old.rdb"

    def remember(self) -> None:
        """The data that comes back later, as that of an old dump."""
        self._server.client.save()
        shutil.move(self._dump, self._old)

    def strike(self, kind: str, chosen: random.Random) -> None:
        """One outage, and the server's return."""
        client, length = self._server.client, chosen.uniform(0.2, 3)
        if kind == "killed":
            self._again(length)
        elif kind == "old":
            self._again(length, dump=True)
        elif kind == "loading":
            self._again(length, "--key-load-delay", "150000", dump=True)
        elif kind == "frozen":
            self._server.process.send_signal(signal.SIGSTOP)
            time.sleep(length)
            self._server.process.send_signal(signal.SIGCONT)
        elif kind == "emptied":
            client.flushall()
        elif kind == "read-only":
            client.replicaof("127.0.0.1", "1")
            time.sleep(length)
            client.replicaof("no", "one")
        else:
            client.config_set("maxmemory", "1")
            time.sleep(length)
            client.config_set("maxmemory", "0")

    def _again(self, away_s: float, *arguments: str, dump: bool = False) -> None:
        self._server.kill()
        self._dump.unlink(missing_ok=True)
        if dump:
            shutil.copy(self._old, self._dump)
        time.sleep(away_s)
        self._server.start(*arguments)


class _Settings:
    """Changes of both sides."""

    def __init__(self, muniment: Any, server: RedisServer, out: Path, ident: str, chosen: random.Random) -> None:
        self._muniment, self._server, self._out, self._ident, self._chosen = muniment, server, out, ident, chosen
        self._count = 0

    def change(self) -> None:
        self._count += 1
        delay = self._chosen.randrange(30, 60)
        if self._chosen.random() < 0.5:
            assert self._muniment("set", f"delay={delay}", "-o", self._out).code == 0
            return
        client = self._server.client
        with suppress(redis.exceptions.RedisError), client.pipeline() as pipe:
            if not client.hexists(self._ident, "url"):
                return  # ArchiveBot's programs change what they have read
            pipe.hset(self._ident, mapping={"delay_min": delay, "delay_max": delay, "note": f"change {self._count}"})
            pipe.sadd(f"{self._ident}_ignores", f"never{self._count}")
            pipe.hincrby(self._ident, "settings_age", 1)
            pipe.publish(f"archivebot:job:{self._ident}", str(10_000 + self._count))
            pipe.execute()


def _in_tracker(out: Path) -> tuple[dict[str, Any], str, int]:
    with closing(sqlite3.connect(out / "tracker.sqlite")) as db:
        settings, why, age = db.execute("SELECT settings, explanation, settings_age FROM jobs").fetchone()
    return json.loads(settings), why, age


@pytest.mark.long
@pytest.mark.points(10, 12, 58, 59, 61)
def test_outages(muniment: Any, server: RedisServer, site: Nginx, tmp_path: Path) -> None:
    print(f"MUNIMENT_KILL_SEED={SEED}")  # shown when it fails
    out, chosen = tmp_path / "out", random.Random(SEED)
    with muniment.start("crawl", site.url, "-o", out, "--redis", server.url, "--delay", "40") as crawl:
        ident = server.working()
        eventually(lambda: int(server.client.hget(ident, "log_score") or 0) > 20)
        outages, settings = _Outages(server, tmp_path), _Settings(muniment, server, out, ident, chosen)
        outages.remember()
        kinds = [KINDS[number % len(KINDS)] for number in range(OUTAGES)]
        chosen.shuffle(kinds)
        for number, kind in enumerate(kinds):
            settings.change()
            time.sleep(chosen.uniform(0, 1))
            outages.strike(kind, chosen)
            score = logged_entries(out)[-1]["seq"]
            eventually(lambda known=score: _score(server, ident) >= known, within_s=STOOD_WITHIN_S)
            assert crawl.poll() is None, f"it ended during outage {number}"
        assert muniment("set", "delay=0", "-o", out).code == 0
        assert crawl.wait(120) == 0
    entries, client = logged_entries(out), server.client
    assert [entry["seq"] for entry in entries] == list(range(1, len(entries) + 1))
    assert [json.loads(entry) for entry in client.zrange(f"{ident}_log", 0, -1)] == entries
    asked = Counter(f"{site.url.rstrip('/')}{request.uri}" for request in site.requests())
    assert Counter(entry["url"] for entry in entries if entry["type"] == "download") == asked
    job, statuses = client.hgetall(ident), Counter(request.status // 100 for request in site.requests())
    assert [int(job[f"r{n}xx"]) for n in range(1, 6)] == [statuses[n] for n in range(1, 6)]
    kept, why, age = _in_tracker(out)
    assert (job["delay_min"], job["delay_max"], job["note"]) == ("0", "0", why)
    assert int(job["settings_age"]) >= age
    assert (kept["delay"]["low"], kept["delay"]["high"]) == (0, 0)
    changes = [json.loads(line) for line in (out / "crawl.jsonl").read_text().splitlines() if '"change"' in line]
    told = {one["what"]: one["to"] for one in changes if one["event"] == "change"}
    assert told["delay"] == "0"
    assert told.get("explanation", "") == why
    patterns = {one["to"] for one in changes if one["event"] == "change" and one["what"] == "ignores"}
    assert patterns <= client.smembers(f"{ident}_ignores")
    assert (client.get("jobs_completed"), client.llen("working"), job["counted"]) == ("1", 0, "completed")


def _score(server: RedisServer, ident: str) -> int:
    with suppress(redis.exceptions.RedisError):
        return int(server.client.hget(ident, "log_score") or 0)
    return 0
