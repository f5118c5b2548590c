"""Many sites of which some are down for good: these are given up at once, named, and nobody waits for them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.support.nginx import Nginx, closed_port
from warc_reading import captures

SITES, DOWN, PAGES = 200, 20, 4
PATIENCE_S = 55
"""Less than a later round waits for, and far less than a host is waited for that had answered."""


def test_sites_that_never_answer_are_not_waited_for(muniment: Callable[..., Any], tmp_path: Path) -> None:
    root, out = tmp_path / "root", tmp_path / "out"
    root.mkdir()
    names = ["index.html", *(f"p{number}.html" for number in range(1, PAGES))]
    for name in names:
        (root / name).write_text("".join(f"<a href={other}>{other}</a>" for other in names[1:]))
    closed = closed_port("127.0.9.1")
    down = [f"http://127.0.9.{number}:{closed}/" for number in range(1, DOWN + 1)]
    with Nginx(root, addresses=("0.0.0.0",), access_log=False) as server:
        there = [f"http://127.0.8.{number}:{server.ports[0]}/" for number in range(1, SITES - DOWN + 1)]
        # each tenth is down, and not the last ones alone
        urls = [
            url for number, url in enumerate(there) for url in ([down[number // 9], url] if number % 9 == 0 else [url])
        ]
        (tmp_path / "urls.txt").write_text("\n".join(urls))
        done = muniment("crawl", "-i", tmp_path / "urls.txt", "-o", out, "--no-sitemaps", timeout=PATIENCE_S)
    assert done.code == 0, done.stderr
    rows = captures(out)
    captured = {row["url"] for row in rows if row["status"] == 200 and not row["error"]}
    pages = {f"{url}{name}" for url in there for name in names[1:]}
    assert captured == pages | set(there)
    assert {row["url"]: row["status"] for row in rows if row["error"]} == dict.fromkeys(down, 0)
    assert _named_as_dead(out) == {urlsplit(url).hostname for url in down}
    assert muniment("check", out).code == 0


def _named_as_dead(out: Path) -> set[str]:
    events = map(json.loads, (out / "crawl.jsonl").read_text().splitlines())
    return {event["host"] for event in events if event["event"] == "pause" and "dead-host: " in event["reason"]}
