"""A crawl that is killed again and again: its counters and its log agree to the entry, in its files and in Redis.

`MUNIMENT_LIVE_KILLS=30` gives thirty kills.
"""

from __future__ import annotations

import json
import os
import random
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.live_site import linked_pages, logged_entries
from tests.support.nginx import Nginx
from tests.support.redis_server import RedisServer, eventually

KILLS = int(os.environ.get("MUNIMENT_LIVE_KILLS", "5"))
SEED = int(os.environ.get("MUNIMENT_KILL_SEED", "0")) or random.randrange(1 << 30)
PAGES = 60 * KILLS
ODD = """location /moved { return 301 /p1.html; }
location /broken { return 500; }
location /gone { return 410; }
"""
MORE = "".join(f"<a href=/{name}>x</a>" for name in ("moved", "broken", "gone")) + "<a href=http://127.0.0.1:1/>x</a>"


@pytest.fixture
def site(tmp_path: Path, nginx: Callable[..., Nginx]) -> Nginx:
    return nginx(linked_pages(tmp_path / "site", PAGES, MORE), server=ODD)


@pytest.mark.long
@pytest.mark.points(11, 13, 17, 23, 26, 30, 36)
def test_counters_and_log_agree(muniment: Any, redis_server: RedisServer, site: Nginx, tmp_path: Path) -> None:
    """With retries, a redirect, a refused connection and resumes; no entry is missing or there twice."""
    print(f"MUNIMENT_KILL_SEED={SEED}")  # shown when it fails
    out, redis, chosen = tmp_path / "out", redis_server.client, random.Random(SEED)
    command = "crawl", site.url, "-o", out, "--redis", redis_server.url, "--tries", "2", "--rounds", "0"
    for _ in range(KILLS):
        begun = len(site.requests())
        with muniment.start(*command, "--delay", "30") as crawl:
            eventually(lambda begun=begun: len(site.requests()) > begun)  # type: ignore[misc]
            time.sleep(chosen.uniform(0, 1.5))
            assert crawl.poll() is None
            crawl.kill()
            crawl.wait()
    assert muniment(*command, "--delay", "0").code == 0
    (ident,) = (key.removesuffix("_log") for key in redis.scan_iter(_type="zset") if key.endswith("_log"))
    job, entries = redis.hgetall(ident), logged_entries(out)
    assert [entry["seq"] for entry in entries] == list(range(1, len(entries) + 1))
    assert [json.loads(entry) for entry in redis.zrange(f"{ident}_log", 0, -1)] == entries
    downloads = [entry for entry in entries if entry["type"] == "download"]
    answers = [entry for entry in downloads if entry["response_code"]]
    statuses = Counter(entry["response_code"] // 100 for entry in answers)
    assert [int(job[f"r{number}xx"]) for number in range(1, 6)] == [statuses[number] for number in range(1, 6)]
    assert int(job["error_count"]) == statuses[4] + statuses[5]
    asked = Counter(f"{site.url.rstrip('/')}{request.uri}" for request in site.requests())
    listed = Counter(entry["url"] for entry in answers)
    # an exchange whose finish a kill cut off is asked for again, and was not taken in
    assert listed <= asked
    assert set(listed) == set(asked)
    assert all(count == 1 for url, count in listed.items() if "/p" in url)
    assert [entry["wget_code"].partition(":")[0] for entry in downloads if not entry["response_code"]] == [
        "refused"
    ] * 2
    assert (job["counted"], redis.get("jobs_completed"), redis.llen("working")) == ("completed", "1", 0)
