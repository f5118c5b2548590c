"""Floods: more to say than anybody reads, and more said on a channel than anybody needs. The crawl goes on."""

from __future__ import annotations

import json
import re
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.support.live_site import logged_entries
from tests.support.nginx import Nginx
from tests.support.redis_server import RedisServer, eventually

PAGES, IGNORED = 300, 99_999


@pytest.fixture
def site(tmp_path: Path, nginx: Callable[..., Nginx]) -> Nginx:
    directory = tmp_path / "site"
    directory.mkdir()
    links = "".join(f"<a href=p{n}.html>" for n in range(PAGES))
    skipped = "".join(f"<a href=skip/{n}>" for n in range(IGNORED))
    (directory / "index.html").write_text(f"<html><a href=list.html>{skipped}</html>")
    (directory / "list.html").write_text(f"<html>{links}</html>")
    for n in range(PAGES):
        (directory / f"p{n}.html").write_text(f"<html>page {n}</html>")
    return nginx(directory)


@pytest.mark.long
@pytest.mark.points(37, 53)
def test_a_hundred_thousand_ignored_links(
    muniment: Any, redis_server: RedisServer, site: Nginx, tmp_path: Path
) -> None:
    """At most a thousand a second are listed, the others counted; of three subscribers one reads nothing."""
    out, redis, heard = tmp_path / "out", redis_server.client, list[float]()
    another = redis_server.another()
    listener = another.pubsub(ignore_subscribe_messages=True)
    listener.subscribe("updates")
    with socket.create_connection(("127.0.0.1", redis_server.port)) as silent:
        silent.sendall(b"SUBSCRIBE updates\r\n")
        with muniment.start("firehose", "--redis", redis_server.url) as reader:
            eventually(lambda: redis.pubsub_numsub("updates")[0][1] == 3)
            lines = list[str]()
            reading = threading.Thread(target=lambda: lines.extend(reader.stdout))
            reading.start()
            with muniment.start(
                *("crawl", site.url, "-o", out, "--redis", redis_server.url),
                *("--ignore", "/skip/", "--ignore-reports", "on", "--redis-log-keep", "100000"),
            ) as crawl:
                while crawl.poll() is None:
                    if listener.get_message(timeout=0.2) is not None:
                        heard.append(time.monotonic())
            entries = logged_entries(out)
            eventually(lambda: len(lines) >= len(entries))
            reader.terminate()
            reading.join()
    another.close()
    assert crawl.returncode == 0
    kinds = Counter(entry["type"] for entry in entries)
    requests = site.requests()
    assert kinds["download"] == len(requests)
    assert sum(request.uri.startswith("/p") for request in requests) == PAGES
    listed = Counter(int(entry["ts"]) for entry in entries if entry["type"] == "ignore")
    assert max(listed.values()) <= 1000
    said = [re.fullmatch(r"(\d+) more URLs were ignored, .*", entry.get("message", "")) for entry in entries]
    assert kinds["ignore"] + sum(int(one[1]) for one in said if one) == IGNORED
    assert [json.loads(line)["seq"] for line in lines] == list(range(1, len(entries) + 1))
    assert max(sum(1 for two in heard if one <= two < one + 1) for one in heard) <= 10


@pytest.mark.long
@pytest.mark.points(56, 58)
def test_ten_thousand_messages_a_second(muniment: Any, redis_server: RedisServer, site: Nginx, tmp_path: Path) -> None:
    """Settings are read five times a second at most, a change among them is taken over, and memory stays flat."""
    redis, out = redis_server.client, tmp_path / "out"
    options = "--ignore", "/skip/", "--delay", "200", "--redis", redis_server.url
    with muniment.start("crawl", site.url, "-o", out, *options) as crawl:
        ident = redis_server.working()
        eventually(lambda: int(redis.hget(ident, "r2xx") or 0) > 3)
        flooding = threading.Thread(target=_flood, args=(redis_server.another(), ident, 6.0))
        redis.config_resetstat()
        before, asked = psutil.Process(crawl.pid).memory_info().rss, len(site.requests())
        flooding.start()
        time.sleep(3)
        age = redis.hincrby(ident, "settings_age", 1)
        redis.hset(ident, mapping={"delay_min": "150", "delay_max": "150"})
        eventually(lambda: '"to":"150"' in (out / "crawl.jsonl").read_text(), within_s=3)
        flooding.join()
        stats = redis.info("commandstats")
        assert stats["cmdstat_publish"]["calls"] > 30_000
        assert stats["cmdstat_hmget"]["calls"] <= 12 * 6
        assert psutil.Process(crawl.pid).memory_info().rss - before < 20 << 20
        assert len(site.requests()) > asked + 15
        assert int(redis.hget(ident, "settings_age") or 0) >= age
        redis.hset(ident, mapping={"delay_min": "0", "delay_max": "0"})
        redis.publish(f"archivebot:job:{ident}", redis.hincrby(ident, "settings_age", 1))
        assert crawl.wait(60) == 0
    assert sum(entry["type"] == "download" for entry in logged_entries(out)) == len(site.requests())


def _flood(client: Any, ident: str, seconds: float) -> None:
    """Ages, old and new, and what is none."""
    give_up = time.monotonic() + seconds
    while (begun := time.monotonic()) < give_up:
        with client.pipeline(transaction=False) as pipe:
            for number in range(1000):
                pipe.publish(f"archivebot:job:{ident}", "nonsense" if number % 3 else str(number))
            pipe.execute()
        time.sleep(max(0.0, 0.1 - (time.monotonic() - begun)))
    client.close()
