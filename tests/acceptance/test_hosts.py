"""A list of many hosts, some dead and some stalling: none of the living is lost, every dead one is told."""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.gated_site import Answer, GatedSite
from tests.support.many_hosts import DEAD, LIVE, STALLING, ManyHosts
from warc_reading import captures

HOSTS, BAD = 450, 25
OPTIONS = (
    *("--page-only", "--no-robots", "--per-host", 8, "--inflight", 2000, "--workers", 2),
    *("--connect-timeout", 5, "--timeout", 3, "--rounds", 0, "--json"),
)


@pytest.fixture(scope="module")
def many_hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ManyHosts]:
    with ManyHosts(tmp_path_factory.mktemp("many-hosts")) as hosts:
        yield hosts


def events(out: Path, kind: str) -> list[dict[str, Any]]:
    return [e for e in map(json.loads, (out / "crawl.jsonl").read_text().splitlines()) if e["event"] == kind]


def test_live_pages_come_first_and_dead_hosts_are_told(
    muniment: Callable[..., Any], tmp_path: Path, many_hosts: ManyHosts
) -> None:
    # one page of each stalling host is enough: each costs its time-out three times
    urls = [url for url in many_hosts.mixed(HOSTS, BAD, BAD) if f"//{STALLING}" not in url or url.endswith("/0")]
    (tmp_path / "urls.txt").write_text("\n".join(urls))
    done = muniment("crawl", "-i", "urls.txt", "-o", "out", *OPTIONS, timeout=150)
    assert done.code == 0, done.stderr
    rows = captures(tmp_path / "out")
    live = {url for url in urls if f"//{LIVE}" in url}
    at = {row["url"]: row["fetched_at"] for row in rows if row["status"] == 200 and not row["error"]}
    assert live == set(at)

    # By order, not by time: nearly all of the living are there before a stalling host has let its time pass thrice.
    silent = sorted(row["fetched_at"] for row in rows if row["host"].startswith(STALLING) and row["attempt"] == 3)
    assert sorted(at.values())[len(at) * 99 // 100] < silent[0]

    dead = {url.split("/")[2].partition(":")[0] for url in urls if f"//{DEAD}" in url}
    pauses = events(tmp_path / "out", "pause")
    assert {event["host"] for event in pauses if "dead-host" in event["reason"]} == dead
    assert len(dead) == BAD

    summary = json.loads(done.stdout)
    told = {one["host"]: one["errors"] for one in summary["silent_hosts"]}
    assert dead <= {*told}
    assert not [host for host in told if host.startswith(LIVE)]
    assert summary["errors"]["timeout-header"] > 0
    assert not events(tmp_path / "out", "change"), "hosts that never answered do not cut the limit"


def test_inspect_tells_the_same_hosts(muniment: Callable[..., Any], tmp_path: Path, many_hosts: ManyHosts) -> None:
    urls = many_hosts.mixed(30, 0, 10)
    (tmp_path / "urls.txt").write_text("\n".join(urls))
    done = muniment("crawl", "-i", "urls.txt", "-o", "runs/a", *OPTIONS[:-1])
    assert "10 hosts never answered, 10 of them dead:" in done.stderr
    assert "and 5 more domains" in done.stderr
    assert "Answers: 120 × 200\n" in done.stderr
    assert re.search(r"^Errors: .*× dead-host", done.stderr, re.M)
    found = json.loads(muniment("inspect", "runs/*", "--json").stdout)
    assert {one["host"] for one in found["silent_hosts"]} == {f"{DEAD}0.{n}" for n in range(1, 11)}
    assert found["all_hosts"] == 40
    assert sum(span["captures"] for span in found["speed"]) == found["exchanges"]
    assert len(found["speed"]) <= 60
    shown = muniment("inspect", "runs/a", "-n", 20).stdout.splitlines()
    assert "10 hosts never answered, 10 of them dead:" in shown
    assert sum("http://127." in line for line in shown) == 20


def test_many_connections_are_no_more_than_a_process_may_open(tmp_path: Path, many_hosts: ManyHosts) -> None:
    """With 128 descriptors, half of them for connections: kept ones are closed early, and no page fails by it."""
    urls = many_hosts.mixed(400, 0, 0)
    (tmp_path / "urls.txt").write_text("\n".join(urls))
    muniment = [
        *("prlimit", "--nofile=128:128", sys.executable, "-m", "muniment", "crawl", "-i", "urls.txt", "-o", "out")
    ]
    command = [*muniment, *map(str, OPTIONS), "--inflight", "32"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert (summary["pages"], summary["errors"]) == (len(urls), {})


@pytest.mark.parametrize(("hosts", "cut"), [(10, True), (6, False)])
def test_many_hosts_that_fall_silent_at_once_cut_the_limit(
    muniment: Callable[..., Any], tmp_path: Path, hosts: int, cut: bool
) -> None:
    pages: dict[str, Any] = {f"/{n}": Answer("fast") for n in range(6)}
    pages |= {f"/{n}": Answer("slow", after=2.5) for n in range(6, 9)}
    with contextlib.ExitStack() as stack:
        sites = [stack.enter_context(GatedSite(pages, address=f"127.19.0.{n + 1}")) for n in range(hosts)]
        (tmp_path / "urls.txt").write_text("\n".join(f"{site.url}{n}" for site in sites for n in range(9)))
        pace = ("--timeout", 1, "--tries", 1, "--rounds", 0)
        limits = ("--min-inflight", 4, "--start-inflight", 40, "--inflight", 40)
        done = muniment("crawl", "-i", "urls.txt", "-o", "out", "--page-only", "--no-robots", "--json", *pace, *limits)
    assert json.loads(done.stdout)["pages"] == 6 * hosts
    changes = [(e["who"], e["what"], e["from"], e["to"]) for e in events(tmp_path / "out", "change")]
    assert changes == ([("muniment", "requests in flight", 40, 20)] if cut else [])
