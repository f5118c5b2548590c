"""Many hosts: slow and dead ones do not hold up the others."""

from __future__ import annotations

import signal
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from warc_reading import captures

from muniment.testing.gated_site import Answer, GatedSite
from muniment.testing.nginx import Nginx, closed_port

GOOD, SLOW, DEAD, PAGES = 160, 20, 20, 80
MORE = 1.15
"""How much longer the good hosts may take beside the others."""
TURNS = 3
"""What else the machine does makes a turn longer and none shorter: the best of each kind are compared."""


@pytest.mark.alone
def test_slow_and_dead_hosts_do_not_hold_up_the_others(muniment: Any, tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    links = "".join(f"<a href='p{number}.html'>here</a>" for number in range(PAGES))
    (root / "index.html").write_text(links)
    for number in range(PAGES):
        (root / f"p{number}.html").write_text(f"<p>page {number}")
    addresses = [f"127.0.1.{number}" for number in range(1, GOOD + 1)]
    slow_page = Answer(links, after=4.0)
    slow = {"/robots.txt": Answer("", 404, after=4.0), "/": slow_page}
    slow |= {f"/p{number}.html": slow_page for number in range(PAGES)}
    with Nginx(root, addresses=addresses) as nginx, ExitStack() as stack:
        closed = closed_port("127.0.3.1")
        sites = [GatedSite(slow, address=f"127.0.2.{number}") for number in range(1, SLOW + 1)]
        slow_urls = [stack.enter_context(site).url for site in sites]
        dead_urls = [f"http://127.0.3.{number}:{closed}/" for number in range(1, DEAD // 2 + 1)]
        dead_urls += [f"http://no-such-host-{number}.invalid/" for number in range(DEAD // 2)]
        alone, among = [], []
        for turn in range(TURNS):
            alone.append(last_good(muniment, tmp_path, f"alone{turn}", list(nginx.urls)))
            among.append(last_good(muniment, tmp_path, f"among{turn}", [*slow_urls, *dead_urls, *nginx.urls]))
            if min(among) <= min(alone) * MORE:
                break
    assert min(among) <= min(alone) * MORE, f"{among} s beside slow and dead hosts, {alone} s alone"


def last_good(muniment: Any, cwd: Path, name: str, urls: list[str]) -> float:
    """Seconds from the first to the last capture of the good hosts' pages."""
    (cwd / "urls.txt").write_text("\n".join(urls))
    began = time.time() * 1000
    crawl = muniment.start("crawl", "-i", "urls.txt", "-o", name, "--workers", 2, "--quiet", "--no-sitemaps")
    log = cwd / name / "crawl.jsonl"

    def good() -> int:
        return log.read_bytes().count(b'"capture","url":"http://127.0.1.') if log.exists() else 0

    while good() < GOOD * (PAGES + 1) and crawl.poll() is None:
        assert time.time() < began / 1000 + 180, f"{good()} pages of good hosts in three minutes"
        time.sleep(0.5)
    if crawl.poll() is None:
        # the slow ones would take minutes
        crawl.send_signal(signal.SIGINT)
    assert crawl.wait(60) in (0, 3)
    times = [row["fetched_at"] for row in captures(cwd / name) if row["host"].startswith("127.0.1.")]
    assert len(times) == GOOD * (PAGES + 2)
    assert min(times) > began
    return (max(times) - min(times)) / 1000
