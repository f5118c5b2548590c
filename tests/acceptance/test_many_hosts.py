"""Many hosts: slow and dead ones do not hold up the others. What they cost, `benchmarks/hosts.py` measures."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

from tests.support.gated_site import GatedSite
from tests.support.nginx import Nginx, closed_port
from warc_reading import captures

GOOD, SLOW, DEAD, PAGES = 40, 20, 20, 20
LINKS = "".join(f"<a href='p{number}.html'>here</a>" for number in range(PAGES))
GOOD_HOST, SLOW_HOST = "127.0.1.", "127.0.2."


def test_slow_and_dead_hosts_do_not_hold_up_the_others(muniment: Any, tmp_path: Path) -> None:
    """The slow ones answer nothing more until the good ones are through: if these needed them, nobody would move."""
    root = tmp_path / "root"
    root.mkdir()
    (root / "index.html").write_text(LINKS)
    for number in range(PAGES):
        (root / f"p{number}.html").write_text(f"<p>page {number}")
    addresses = [f"{GOOD_HOST}{number}" for number in range(1, GOOD + 1)]
    held = [f"/p{number}.html" for number in range(PAGES)]
    with Nginx(root, addresses=addresses) as nginx, ExitStack() as stack:
        sites = [GatedSite({"/": LINKS}, held=held, address=f"{SLOW_HOST}{n}") for n in range(1, SLOW + 1)]
        urls = [stack.enter_context(site).url for site in sites]
        closed = closed_port("127.0.3.1")
        urls += [f"http://127.0.3.{number}:{closed}/" for number in range(1, DEAD // 2 + 1)]
        urls += [f"http://no-such-host-{number}.invalid/" for number in range(DEAD // 2)]
        (tmp_path / "urls.txt").write_text("\n".join([*urls, *nginx.urls]))
        # the slow ones take all of that, so that no page would be finished and the limit never be raised
        few = ("--quiet", "--no-sitemaps", "--start-inflight", 8)
        crawl = muniment.start("crawl", "-i", "urls.txt", "-o", "out", "--workers", 2, *few)
        wait_until(crawl, partial(good_ones_are_through, tmp_path / "out" / "crawl.jsonl"))
        # they may be through before a slow one was asked for its first page
        wait_until(crawl, lambda: all(set(site.requests) & set(held) for site in sites))
        crawl.send_signal(signal.SIGINT)
        assert crawl.wait(60) == 3
    rows = captures(tmp_path / "out")
    assert sum(row["host"].startswith(GOOD_HOST) for row in rows) == GOOD * (PAGES + 2)


def good_ones_are_through(log: Path) -> bool:
    """Whether the good hosts' pages are captured: their start pages and what these link to."""
    captured = f'"capture","url":"http://{GOOD_HOST}'.encode()
    return log.exists() and log.read_bytes().count(captured) >= GOOD * (PAGES + 1)


def wait_until(crawl: Any, done: Callable[[], bool]) -> None:
    ends = time.monotonic() + 50
    while not done():
        assert crawl.poll() is None
        assert time.monotonic() < ends, "the good hosts wait for the slow ones, or these were never asked"
        time.sleep(0.2)
