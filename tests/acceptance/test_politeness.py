"""Politeness, proved by the servers' own logs: connections, delay, Retry-After, storms, dead hosts and slow ones."""

from __future__ import annotations

import contextlib
import json
import signal
import time
from collections.abc import Callable
from email.utils import formatdate
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from crawled import run_muniment, wait_until
from tests.support.gated_site import Answer, GatedSite
from tests.support.nginx import closed_port
from tests.support.raw_server import Pause, RawServer, Script, Send
from warc_reading import captures

QUIET = ("-o", "out", "--quiet", "--no-sitemaps", "--tries", 3)
ON_THE_WIRE_S = 2.5
"""What was asked before the bad news had reached every worker, which on a busy machine takes its time."""
HELD_FOR_EACH = 3
"""What workers have in hand for each connection when the bad news comes: they ask for it until they have heard."""
ON_ARRIVAL_S = 0.05
"""How much later than it came a busy machine may note a request."""
PAGES = 160


def links(paths: list[str], times: int = 1) -> str:
    """A page that leads to other pages, `times` times, which keeps a worker busy."""
    return "".join(f"<a href='{path}'>here</a>" for path in paths) * times


def whole(body: bytes) -> Script:
    """An answer with a length."""
    return (Send(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n" % len(body) + body),)


def heavy_site(busy: dict[str, Any], **answers: Any) -> GatedSite:
    """A site whose pages cost more to read than to serve, so that workers are added."""
    paths = [f"/p{number}" for number in range(PAGES)]
    heavy = Answer(links(paths, 16))
    pages: dict[str, Any] = {"/": links(paths), "/robots.txt": Answer("", 404), **dict.fromkeys(paths, heavy)}
    for path, answer in busy.items():
        pages[path] = [answer, heavy]
    return GatedSite({**pages, **answers})


def events(out: Path, *names: str) -> list[dict[str, Any]]:
    path = out / "crawl.jsonl"
    lines = path.read_text().splitlines() if path.exists() else []
    return [event for event in map(json.loads, lines) if event["event"] in names]


def asked(site: GatedSite, path: str) -> list[float]:
    return [at for at, seen in zip(site.times, site.requests, strict=True) if seen == path]


def captured(out: Path) -> set[str]:
    return {row["url"] for row in captures(out) if row["status"] == 200}


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_nothing_is_asked_before_retry_after_has_passed(tmp_path: Path, workers: int) -> None:
    wait = 5
    with heavy_site({"/p150": Answer("slow down", 429, (("Retry-After", str(wait)),))}) as site:
        run_muniment(tmp_path, "crawl", site.url, *QUIET, "--per-host", 4, "--workers", workers, eager=True)
        refused, again = asked(site, "/p150")
        late = [at for at in site.times if refused < at < refused + wait]
        assert not [at for at in late if at > refused + ON_THE_WIRE_S]
        assert len(late) <= HELD_FOR_EACH * 4
        assert refused + wait <= again
        assert site.connections.most <= 4
    started = [e for e in events(tmp_path / "out", "worker") if e["state"] == "started"]
    assert len(started) >= min(workers, 2)
    [pause] = events(tmp_path / "out", "pause")
    assert (pause["host"], pause["reason"]) == ("127.0.0.1", "429 with Retry-After")
    assert [event["host"] for event in events(tmp_path / "out", "resume")] == ["127.0.0.1"]
    assert len(captured(tmp_path / "out")) == PAGES + 1


@pytest.mark.parametrize("workers", [1, 2])
def test_an_answer_that_asks_for_patience_counts_before_its_body_has_come(tmp_path: Path, workers: int) -> None:
    wait, dribble = 6, 4
    head = f"HTTP/1.1 429 Slow\r\nRetry-After: {wait}\r\nContent-Length: 4\r\n\r\n".encode()
    slow = (Send(head + b"sl"), Pause(dribble), Send(b"ow"))
    paths = [f"/p{number}" for number in range(PAGES)]
    page = whole(b"<p>a page" * 2_000)
    pages = {"/": whole(links(paths).encode()), **dict.fromkeys(paths, (Pause(0.02), *page))}
    with RawServer(pages, turns={"/p50": (slow, page)}) as site:
        run_muniment(tmp_path, "crawl", site.url("/"), *QUIET, "--per-host", 4, "--workers", workers)
        refused, again = site.exchanges("/p50")
        late = [e.at for e in site.log if refused.at < e.at < refused.at + wait]
        assert not [at for at in late if at > refused.at + ON_THE_WIRE_S]
        assert len(late) <= HELD_FOR_EACH * 4
        # by the time of the header block, not of the body's end
        assert min(e.at for e in site.log if e.at >= refused.at + wait) < refused.at + wait + dribble
        assert again.at > refused.at + wait
    assert len(events(tmp_path / "out", "pause")) == 1
    assert len(captured(tmp_path / "out")) == PAGES + 1
    [row] = [row for row in captures(tmp_path / "out") if row["status"] == 429]
    assert (row["body_length"], row["error"]) == (4, "")


def test_a_slow_robots_txt_that_asks_for_patience_counts_at_once(tmp_path: Path) -> None:
    slow = (
        Send(b"HTTP/1.1 503 Busy\r\nRetry-After: 4\r\nContent-Length: 4\r\n\r\n"),
        Pause(3),
        Send(b"busy"),
    )
    with RawServer({"/": whole(b"a page")}, turns={"/robots.txt": (slow, whole(b""))}) as site:
        run_muniment(tmp_path, "crawl", site.url("/"), *QUIET)
        first, second = site.exchanges("/robots.txt")
        assert 4 <= second.at - first.at < 4 + 3
        assert len(site.log) == 3
    assert [event["reason"] for event in events(tmp_path / "out", "pause")] == ["503 with Retry-After"]


def test_retry_after_may_be_a_date_and_robots_txt_may_say_it(tmp_path: Path) -> None:
    due: list[float] = []

    def robots(_: object) -> Answer:
        if due:
            return Answer("", 404)
        until = int(time.time()) + 4
        due.append(time.monotonic() + until - time.time())
        return Answer("closed", 503, (("Retry-After", formatdate(until, usegmt=True)),))

    with GatedSite({"/": "a page", "/robots.txt": robots}) as site:
        run_muniment(tmp_path, "crawl", site.url, *QUIET)
        assert site.requests == ["/robots.txt", "/robots.txt", "/"]
        assert site.times[0] < due[0] <= site.times[1]


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_a_wait_is_kept_over_a_resume(muniment: Callable[..., Any], tmp_path: Path, how: int) -> None:
    wait = 9
    site = heavy_site({"/p20": Answer("slow down", 429, (("Retry-After", str(wait)),))})
    with site:
        first = muniment.start("crawl", site.url, *QUIET, "--workers", 2, "--per-host", 6)
        wait_until(lambda: events(tmp_path / "out", "pause"), "the pause")
        first.send_signal(how)
        first.communicate()
        why = json.loads(muniment("why", f"{site.url}p150", "-o", "out", "--json").stdout)
        run_muniment(tmp_path, "crawl", site.url, *QUIET, "--workers", 2)
        refused, _ = asked(site, "/p20")
        late = [at for at in site.times if refused < at < refused + wait]
        assert not [at for at in late if at > refused + ON_THE_WIRE_S]
        assert len(late) <= HELD_FOR_EACH * 6
    assert "429 with Retry-After" in why["text"]
    assert len(captured(tmp_path / "out")) == PAGES + 1


@pytest.mark.alone
@pytest.mark.parametrize("workers", [1, 2])
def test_requests_are_a_delay_apart_and_a_resume_does_not_hurry(
    muniment: Callable[..., Any], tmp_path: Path, workers: int
) -> None:
    paths = [f"/p{number}" for number in range(12)]
    slow = Answer("<p>a page", after=0.3)
    with GatedSite({"/": links(paths), "/robots.txt": "", **dict.fromkeys(paths, slow)}) as site:
        crawl = ("crawl", site.url, *QUIET, "--delay", 200, "--workers", workers)
        first = muniment.start(*crawl)
        wait_until(lambda: len(site.times) > 6, "some pages")
        first.send_signal(signal.SIGKILL)
        first.communicate()
        run_muniment(tmp_path, *crawl)
        gaps = [later - earlier for earlier, later in pairwise(site.times)]
    assert min(gaps) > 0.2 - ON_ARRIVAL_S, gaps
    assert len(captured(tmp_path / "out")) >= 13


@pytest.mark.alone
def test_crawl_delay_is_kept(tmp_path: Path) -> None:
    paths = [f"/p{number}" for number in range(8)]
    robots = "User-agent: other\nCrawl-delay: 200\n\nUser-agent: muniment\nCrawl-delay: 0.5\n"
    with GatedSite({"/": links(paths), "/robots.txt": robots, **dict.fromkeys(paths, "a page")}) as site:
        run_muniment(tmp_path, "crawl", site.url, *QUIET, "--workers", 2)
        gaps = [later - earlier for earlier, later in pairwise(site.times)]
    assert len(gaps) == 9
    assert min(gaps) > 0.5 - ON_ARRIVAL_S, gaps


def test_a_storm_pauses_the_host_and_says_so(muniment: Callable[..., Any], tmp_path: Path) -> None:
    no = Answer("no", 403)
    paths = [f"/p{number}" for number in range(60)]
    with GatedSite({"/": links(paths), **dict.fromkeys(paths, no)}) as site:
        crawl = muniment.start("crawl", site.url, *QUIET, "--workers", 2)
        wait_until(lambda: events(tmp_path / "out", "pause"), "the pause")
        time.sleep(ON_THE_WIRE_S)
        before = len(site.times)
        time.sleep(2)
        assert len(site.times) == before < 30
        crawl.send_signal(signal.SIGINT)
        assert crawl.wait(20) == 3
    [pause] = events(tmp_path / "out", "pause")
    assert (pause["host"], pause["reason"]) == ("127.0.0.1", "10 refusals in a row, 403 last")


def test_a_challenge_pauses_the_host_at_once(muniment: Callable[..., Any], tmp_path: Path) -> None:
    guard = Answer("<script src='/cdn-cgi/challenge-platform/x.js'></script>", 403)
    with GatedSite({"/": links(["/a", "/b"]), "/a": guard, "/b": guard}) as site:
        crawl = muniment.start("crawl", site.url, *QUIET)
        wait_until(lambda: events(tmp_path / "out", "pause"), "the pause")
        crawl.send_signal(signal.SIGINT)
        assert crawl.wait(20) == 3
    assert events(tmp_path / "out", "pause")[0]["reason"] == "a challenge page"


def test_a_robots_txt_elsewhere_takes_one_connection_and_leaves_it(
    muniment: Callable[..., Any], tmp_path: Path
) -> None:
    with contextlib.ExitStack() as stack:
        rules = Answer("User-agent: *\nDisallow: /no\n", headers=(("Content-Type", "text/plain"),), after=0.3)
        central = stack.enter_context(GatedSite({"/robots.txt": rules}, address="127.0.0.40"))
        moved = Answer("", 301, (("Location", f"{central.url}robots.txt"),))
        pages = {"/": links(["/no", "/yes"]), "/robots.txt": moved, "/yes": "a page"}
        addresses = [f"127.0.0.{41 + number}" for number in range(6)]
        sites = [stack.enter_context(GatedSite(pages, held=["/yes"], address=address)) for address in addresses]
        crawl = muniment.start("crawl", *(site.url for site in sites), *QUIET, "--workers", 1)
        for site in sites:
            site.wait_for("/yes")
        wait_until(lambda: central.connections.open == 0, "the end of the connection", 2.0)
        for site in sites:
            site.release()
        assert crawl.wait(30) == 0
        assert central.connections.most == 1
        assert central.requests == ["/robots.txt"] * 6
        assert all("/no" not in site.requests for site in sites)


def test_a_dead_host_is_given_up_after_proof(muniment: Callable[..., Any], tmp_path: Path) -> None:
    gone, nameless = f"http://127.0.0.9:{closed_port()}", "http://no-such-host.invalid"
    dead = [f"{host}/p{number}" for host in (gone, nameless) for number in range(40)]
    with GatedSite({"/": links(dead)}) as site:
        began = time.monotonic()
        run_muniment(tmp_path, "crawl", site.url, *QUIET)
        assert time.monotonic() - began < 40
    for host in (gone, nameless):
        rows = [row for row in captures(tmp_path / "out") if row["url"].startswith(host)]
        assert 1 <= len(rows) < 10
        assert all(row["error"] for row in rows)
        why = json.loads(muniment("why", f"{host}/p39", "-o", "out", "--json").stdout)
        assert why["verdict"] == "skipped"
        failures = 3 if host == gone else 2
        assert why["text"].startswith(f"dead-host: given up after {failures} failures")
    assert muniment("check", "out").code == 0
