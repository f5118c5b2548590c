"""A network that goes away and comes back, for real: the crawl runs in a network namespace whose only link is cut."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from tests.support.gated_site import Answer, GatedSite

pytestmark = pytest.mark.long

PATHS = [f"/p{number}" for number in range(30)]
AWAY_S = 9
"""How long the link is down."""
NOWHERE = [f"http://10.99.0.{number}/" for number in range(1, 31)]
"""Hosts to which no route leads from a namespace that knows its own link alone."""


def _ip(*words: str) -> None:
    try:
        done = subprocess.run(["ip", *words], capture_output=True, text=True, timeout=20, check=False)
    except FileNotFoundError:
        pytest.fail("the program ip is missing; install it with: apt-get install iproute2")
    if done.returncode:
        pytest.fail(
            f"`ip {' '.join(words)}` failed: {done.stderr.strip()}. This test makes a network namespace, which takes "
            "root and a kernel that allows it: run it where both are there"
        )


class Link:
    """A namespace with one link to here, where the servers are."""

    def __init__(self) -> None:
        number = os.getpid() % 60_000
        self.name, self._ours, self._theirs = f"muniment{number}", f"mu{number}a", f"mu{number}b"
        self._net = f"10.{200 + number % 50}.{number // 50 % 250}"
        self.addresses = [f"{self._net}.{last}" for last in (1, 2, 3)]

    def up(self) -> None:
        """Make it."""
        _ip("netns", "add", self.name)
        _ip("link", "add", self._ours, "type", "veth", "peer", "name", self._theirs, "netns", self.name)
        for address in self.addresses:
            _ip("address", "add", f"{address}/24", "dev", self._ours)
        _ip("link", "set", self._ours, "up")
        _ip("-n", self.name, "address", "add", f"{self._net}.100/24", "dev", self._theirs)
        _ip("-n", self.name, "link", "set", "lo", "up")
        _ip("-n", self.name, "link", "set", self._theirs, "up")

    def cut(self, where: str) -> None:
        """`here`: as if a cable were pulled somewhere on the way. `there`: as if the machine lost its own interface."""
        self._set(where, "down")

    def mend(self, where: str) -> None:
        """As it was."""
        self._set(where, "up")

    def _set(self, where: str, state: str) -> None:
        if where == "here":
            _ip("link", "set", self._ours, state)
        else:
            _ip("-n", self.name, "link", "set", self._theirs, state)

    def silence(self, address: str) -> None:
        """What is sent to one of the servers gets lost from now on; the others are there."""
        _ip("-n", self.name, "route", "add", f"{address}/32", "dev", "lo", "src", f"{self._net}.100")

    def down(self) -> None:
        """Take it away, and its link with it."""
        with contextlib.suppress(FileNotFoundError):
            for words in (("link", "del", self._ours), ("netns", "del", self.name)):
                subprocess.run(["ip", *words], capture_output=True, timeout=20, check=False)


@pytest.fixture
def link() -> Iterator[Link]:
    made = Link()
    try:
        made.up()
        yield made
    finally:
        made.down()


def _events(out: Path, *names: str) -> list[dict[str, Any]]:
    path = out / "crawl.jsonl"
    lines = path.read_text().splitlines() if path.exists() else []
    return [event for event in map(json.loads, lines) if event["event"] in names]


def _wait_for(true: Callable[[], object], what: str) -> None:
    end = time.monotonic() + 60
    while not true():
        assert time.monotonic() < end, what
        time.sleep(0.02)


@pytest.mark.parametrize("where", ["here", "there"])
def test_a_lost_network_costs_nothing_but_time(
    muniment: Callable[..., Any], link: Link, tmp_path: Path, where: str
) -> None:
    out = tmp_path / "out"
    page = Answer("a page", after=0.25)
    with contextlib.ExitStack() as stack:
        links = "".join(f"<a href='{path}'>x</a>" for path in PATHS)
        sites = [
            stack.enter_context(GatedSite({"/": links, **dict.fromkeys(PATHS, page)}, address=address))
            for address in link.addresses
        ]
        crawl = ("crawl", *(site.url for site in sites), "-o", out, "--no-robots", "--no-sitemaps", "--quiet")
        pace = ("--per-host", 2, "--workers", 2, "--timeout", 3, "--connect-timeout", 2)
        command = [sys.executable, "-m", "muniment", *map(str, (*crawl, *pace))]
        process = stack.enter_context(
            subprocess.Popen(["ip", "netns", "exec", link.name, *command], stderr=subprocess.PIPE, text=True)
        )
        stack.callback(process.kill)
        _wait_for(lambda: all(len(site.times) > 8 for site in sites), "some pages of each site")
        link.cut(where)
        began = time.monotonic()
        _wait_for(lambda: _events(out, "pause"), "the word that the network is lost")
        time.sleep(max(0.0, began + AWAY_S - time.monotonic()))
        link.mend(where)
        _, complaints = process.communicate(timeout=90)
        assert process.returncode == 0, complaints
        expected = {site.url.rstrip("/") + path for site in sites for path in ("/", *PATHS)}
    said = [(event["event"], event["reason"]) for event in _events(out, "pause", "resume") if "host" not in event]
    assert said == [("pause", "network"), ("resume", "network")]
    told = [event["event"] for event in _events(out, "pause", "fail")]
    assert told[-1] == "pause", "what fails while the network is lost costs no try"
    assert [event for event in _events(out, "fail") if event["final"]] == []
    assert _events(out, "skip") == []
    assert {event["url"] for event in _events(out, "capture")} == expected
    assert muniment("check", out).code == 0


def test_a_few_silent_hosts_at_the_end_are_no_lost_network(
    muniment: Callable[..., Any], link: Link, tmp_path: Path
) -> None:
    """Else the hosts that cannot be reached would never be given up, and the run would wait for ever."""
    out = tmp_path / "out"
    with contextlib.ExitStack() as stack:
        good, *silent = (
            stack.enter_context(GatedSite(dict.fromkeys(PATHS, Answer("a page", after=after)), address=address))
            for address, after in zip(link.addresses, (0.0, 0.25, 0.25), strict=True)
        )
        urls = [[site.url.rstrip("/") + path for path in PATHS] for site in (good, *silent)]
        (tmp_path / "list.txt").write_text("\n".join([*itertools.chain(*urls), *NOWHERE]))
        fetch = ("fetch", tmp_path / "list.txt", "-o", out, "--quiet", "--give-up-after", 20)
        # they must be silent before the unreachable ones were asked three times
        pace = ("--per-host", 2, "--workers", 1, "--timeout", 1, "--connect-timeout", 1)
        command = [sys.executable, "-m", "muniment", *map(str, (*fetch, *pace))]
        process = stack.enter_context(
            subprocess.Popen(["ip", "netns", "exec", link.name, *command], stderr=subprocess.PIPE, text=True)
        )
        stack.callback(process.kill)
        _wait_for(lambda: all(len(site.times) > 2 for site in silent), "some pages of each site")
        for address in link.addresses[1:]:
            link.silence(address)
        _, complaints = process.communicate(timeout=90)
    assert process.returncode == 3, complaints
    captured = {event["url"] for event in _events(out, "capture")}
    assert captured >= set(urls[0])
    assert {event["url"] for event in _events(out, "fail", "skip") if event.get("final", True)} == set(NOWHERE)
    with contextlib.closing(sqlite3.connect(out / "tracker.sqlite")) as tracker:
        pages = tracker.execute("SELECT url, state, attempts_remaining > 0 FROM pages").fetchall()
    left = {url for url, state, remain in pages if (state, remain) == ("READY", 1)}
    assert left == {*urls[1], *urls[2]} - captured
    assert {urlsplit(url).hostname for url in left} == set(link.addresses[1:])
    assert muniment("check", out).code == 0
