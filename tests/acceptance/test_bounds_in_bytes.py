"""What many hosts send at once takes a bounded number of bytes, over all processes."""

from __future__ import annotations

import json
import random
import subprocess
import time
from collections import Counter
from pathlib import Path
from typing import Any

import psutil
import pytest
from test_hostile import MOST_RESIDENT, resident
from tests.support.any_host import AnyHost, ok
from warc_reading import captures

MEGABYTE = 1_000_000
ONCE = ("--tries", 1, "--rounds", 0)
STALLED = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nX-Long: " + b"a" * MEGABYTE
PAGE = ok(b"<title>page</title>")


@pytest.fixture
def launch() -> type[subprocess.Popen[str]]:
    """Each command by itself: a fork shares memory with others."""
    return subprocess.Popen


class Fetch:
    """Fetches a list by two workers, and looks at the memory of all processes."""

    def __init__(self, muniment: Any, home: Path, urls: list[str], *options: object) -> None:
        (home / "urls.txt").write_text("\n".join(urls))
        self.out, self.most = home / "out", 0
        process = muniment.start("fetch", "urls.txt", "-o", "out", "--workers", 2, "--quiet", *options)
        while process.poll() is None:
            self.most = max(self.most, resident(psutil.Process(process.pid)))
            time.sleep(0.1)
        self.code = process.returncode
        print(f"at most {self.most / 1e6:.0f} MB")

    def rows(self) -> Counter[tuple[int, str]]:
        """How many pages ended with a status and the code of an error."""
        pages = (row for row in captures(self.out) if not row["url"].endswith("/robots.txt"))
        return Counter((row["status"], row["error"].partition(":")[0]) for row in pages)


def test_header_blocks_that_never_end(muniment: Any, tmp_path: Path) -> None:
    with AnyHost(lambda *_: STALLED) as hosts:
        fetch = Fetch(muniment, tmp_path, hosts.urls(1_500), *ONCE, "--timeout", 4, "--start-inflight", 2_000)
    assert fetch.rows() == {(0, "timeout-header"): 1_500}
    assert fetch.most < MOST_RESIDENT


@pytest.mark.long
def test_header_blocks_that_end_at_once_before_bodies_that_do_not_come(muniment: Any, tmp_path: Path) -> None:
    with AnyHost(lambda *_: STALLED + b"\r\nContent-Length: 9\r\n\r\n") as hosts:
        fetch = Fetch(muniment, tmp_path, hosts.urls(250), *ONCE, "--timeout", 3, "--start-inflight", 2_000)
    assert fetch.rows() == {(200, "timeout-body"): 250}
    assert fetch.most < MOST_RESIDENT


@pytest.mark.long
def test_large_robots_txt(muniment: Any, tmp_path: Path) -> None:
    rules = b"User-agent: *\n" + b"".join(b"Disallow: /p%06d/\n" % number for number in range(460_000 // 19))
    with AnyHost(lambda *_: PAGE, robots=ok(rules)) as hosts:
        urls = [url for page in hosts.urls(60) for url in (page, page.removesuffix("0") + "p000007/0")]
        fetch = Fetch(muniment, tmp_path, urls, "--robots")
    assert fetch.rows() == {(200, ""): 60, (0, "robots"): 60}
    assert fetch.most < MOST_RESIDENT


def cookies(path: str, request: bytes) -> bytes:
    """The first two pages set 90 cookies each, of 4 KB; a request that is too long is refused."""
    if len(request) > 16 << 10:
        return b"HTTP/1.1 431 Request Header Fields Too Large\r\nContent-Length: 0\r\n\r\n"
    first = int(path[1:]) * 90
    fields = (
        [b"Set-Cookie: c%d=%s; Path=/" % (n, b"v" * 4_000) for n in range(first, first + 90)] if first < 180 else []
    )
    return ok(b"<title>page</title>", *fields)


@pytest.mark.alone  # on a busy machine it takes nearly all that is allowed
def test_many_large_cookies(muniment: Any, tmp_path: Path) -> None:
    """A worker keeps those of a few hosts at a time, and asks the orchestrator for the others."""
    last: list[bool] = []

    def answer(path: str, request: bytes) -> bytes:
        if path == "/3":
            last.append(b"\r\nCookie: " in request)
        return cookies(path, request)

    with AnyHost(answer) as hosts:
        fetch = Fetch(muniment, tmp_path, hosts.urls(500, 4))
    assert fetch.rows() == {(200, ""): 2_000}
    assert fetch.most < MOST_RESIDENT
    assert sum(last) >= 450, "but where another worker was told a moment ago"
    with (fetch.out / "cookies.txt").open() as kept:
        assert sum(not line.startswith("#") for line in kept) == 500 * 180


def test_a_list_of_many_hosts(muniment: Any, tmp_path: Path) -> None:
    """Each has one page: what is fetched may not pile up before the records, however many hosts there are."""
    text = random.Random(1).randbytes(40_000)
    with AnyHost(lambda path, request: ok(request[:200] + text)) as hosts:
        fetch = Fetch(muniment, tmp_path, hosts.urls(10_000), "--start-inflight", 2_000)
    assert fetch.rows() == {(200, ""): 10_000}
    assert fetch.most < MOST_RESIDENT
    events = map(json.loads, (fetch.out / "crawl.jsonl").read_text().splitlines())
    assert not any(event["event"] == "worker" and event["state"] == "lost" for event in events)
