"""A reader takes atomic snapshots of a job in Redis as fast as it can, through a whole crawl: none is out of order."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.live_site import linked_pages
from tests.support.nginx import Nginx
from tests.support.redis_server import RedisServer

PAGES, SNAPSHOTS = 3000, 10_000
RISING = (
    "settings_age", "heartbeat", "log_score", "bytes_downloaded", "items_downloaded", "items_queued", "error_count",
    "r1xx", "r2xx", "r3xx", "r4xx", "r5xx", "runk", "next_watermark", "last_trimmed_log_entry",
    "last_analyzed_log_entry", "last_broadcasted_log_entry",
)  # fmt: skip
CURSORS = "last_trimmed_log_entry", "last_analyzed_log_entry", "last_broadcasted_log_entry", "log_score"


@pytest.fixture
def site(tmp_path: Path, nginx: Callable[..., Nginx]) -> Nginx:
    return nginx(linked_pages(tmp_path / "site", PAGES))


class _Snapshot:
    """The job at one moment."""

    def __init__(self, client: Any, ident: str) -> None:
        with client.pipeline() as pipe:
            pipe.hgetall(ident)
            pipe.zcard(f"{ident}_log")
            pipe.zrange(f"{ident}_log", 0, 0, withscores=True)
            pipe.zrange(f"{ident}_log", -1, -1, withscores=True)
            pipe.lrange("working", 0, -1)
            self.job, self.count, self.first, self.last, self.working = pipe.execute()

    @property
    def over(self) -> bool:
        return "finished_at" in self.job

    def faults(self, ident: str, before: dict[str, int]) -> list[str]:
        numbers = {name: int(self.job[name]) for name in RISING}
        trimmed, analyzed, broadcasted, score = (numbers[name] for name in CURSORS)
        wrong = {
            "the number of entries": self.count != score - trimmed,
            "the first entry": bool(self.first) and self.first[0][1] != trimmed + 1,
            "the last entry": bool(self.last) and self.last[0][1] != score,
            "the order of cursors": not trimmed <= analyzed <= broadcasted <= score,
            "working": self.working != ([] if self.over else [ident]),
            "what fell": any(numbers[name] < before.get(name, 0) for name in RISING),
            "the sums": numbers["items_downloaded"] < numbers["r2xx"],
        }
        before |= numbers
        return [f"{name}: {self.job}" for name, one in wrong.items() if one]


def _whole_log_faults(client: Any, ident: str) -> list[str]:
    """Of every entry that is there at one moment."""
    with client.pipeline() as pipe:
        pipe.zrange(f"{ident}_log", 0, -1, withscores=True)
        pipe.type(ident)
        pipe.type(f"{ident}_log")
        pipe.type(f"{ident}_ignores")
        log, *kinds = pipe.execute()
    scores = [score for _, score in log]
    faults = [] if kinds == ["hash", "zset", "set"] else [f"types: {kinds}"]
    if scores and scores != list(range(int(scores[0]), int(scores[0]) + len(scores))):
        faults.append(f"scores: {scores}")
    if [json.loads(entry)["seq"] for entry, _ in log] != scores:
        faults.append("an entry has another number than its score")
    return faults


@pytest.mark.long
@pytest.mark.points(11, 25, 26, 32, 33, 36)
def test_no_snapshot_is_out_of_order(muniment: Any, redis_server: RedisServer, site: Nginx, tmp_path: Path) -> None:
    out, reader = tmp_path / "out", redis_server.another()
    options = "--delay", "20", "--redis-log-keep", "600", "--redis", redis_server.url
    taken, faults, before = 0, list[str](), dict[str, int]()
    with muniment.start("crawl", site.url, "-o", out, *options) as crawl:
        ident = redis_server.working()
        snapshot = _Snapshot(reader, ident)
        while not snapshot.over:
            faults += snapshot.faults(ident, before)
            taken += 1
            if taken % 250 == 0:
                faults += _whole_log_faults(reader, ident)
            if taken == SNAPSHOTS:
                redis_server.client.hset(ident, mapping={"delay_min": "0", "delay_max": "0"})
                redis_server.client.publish(
                    f"archivebot:job:{ident}", redis_server.client.hincrby(ident, "settings_age", 1)
                )
            snapshot = _Snapshot(reader, ident)
        faults += snapshot.faults(ident, before)
        assert crawl.wait(120) == 0
    assert faults == []
    assert taken >= SNAPSHOTS
    assert before["last_trimmed_log_entry"] > PAGES // 2
    assert before["r2xx"] == sum(request.status // 100 == 2 for request in site.requests())
    reader.close()
