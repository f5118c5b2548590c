"""Two servers and two pipelines, as the archived sites and their operators see them."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import pairwise
from typing import Any

import pyarrow.parquet as pq
import pytest
from crawled import wait_until
from tests.support.fleet import Fleet
from tests.support.gated_site import Answer, GatedSite
from tests.support.postgres import Postgres

from forked import ForkedWithChildren

pytestmark = pytest.mark.long  # its tests stay together

PER_HOST = 3
PAGES = 60
LATE_S = 2.0
"""How long a change may take to reach every pipeline."""
ON_ARRIVAL_S = 0.05
"""How much later than it came a busy machine may note a request."""
OPTIONS = ("--no-robots", "--no-sitemaps")


def site_of(pages: int = PAGES, after: float = 0.05, address: str = "127.0.0.1") -> GatedSite:
    """A start page that leads to all others."""
    paths = [f"/p{number}" for number in range(pages)] + [f"/other/p{number}" for number in range(pages)]
    links = "".join(f"<a href='{path}'>a page</a>" for path in paths)
    answers = {path: Answer(f"<p>this is {path}", after=after) for path in paths}
    return GatedSite({"/": Answer(links), **answers}, address=address)


@pytest.fixture(scope="module")
def fleet(postgres: Postgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    place = ("--database", postgres.create("two_servers"))
    with Fleet(tmp_path_factory.mktemp("fleet") / "work", place, lease_s=10, launch=ForkedWithChildren) as fleet:
        for number in (0, 1):
            fleet.serve()
            fleet.pipeline("--workers", "1", server=number)
        yield fleet


def rows_of(fleet: Fleet, job: str) -> list[dict[str, Any]]:
    """The rows of all pipelines, which go on: a job that has ended gets its whole index at each of them."""
    found = [out for number in (0, 1) if (out := fleet.directory(number) / job).exists()]
    wait_until(lambda: not any((out / "parts").exists() for out in found), "the whole index of the job")
    return [row for out in found for row in pq.read_table(out / "captures.parquet").to_pylist()]


def shown(fleet: Fleet, job: str) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(fleet.ask("job", "show", job, "--json"))
    return value


def test_two_pipelines_capture_each_page_once_and_count_it(fleet: Fleet) -> None:
    with ExitStack() as stack:
        sites = [stack.enter_context(site_of(address=f"127.0.0.{number}")) for number in (1, 2)]
        job = fleet.ask("job", "add", *(site.url for site in sites), *OPTIONS, "--per-host", str(PER_HOST))
        fleet.ask("job", "wait", job, "--timeout", "60", server=1)
        for site in sites:
            assert set(site.counts().values()) == {1}
            assert site.connections.most <= PER_HOST
    rows = rows_of(fleet, job)
    assert len(rows) == len({row["url"] for row in rows}) == 2 * (2 * PAGES + 1)
    assert {row["status"] for row in rows} == {200}
    view = shown(fleet, job)
    assert (view["state"], view["outcome"]) == ("FINISHED", "completed")
    assert view["pages"]["captured"] == len(rows)
    assert view["responses"]["2xx"] == len(rows)
    assert view["payload_bytes"] == sum(row["body_length"] for row in rows)


def test_a_job_that_ends_after_the_pipelines_left_it_has_its_whole_index(fleet: Fleet) -> None:
    with site_of(30, after=0.1) as site:
        job = fleet.ask("job", "add", site.url, *OPTIONS, "--per-host", "2")
        site.wait_for("/p3")
        fleet.ask("job", "pause", job)
        wait_until(lambda: not shown(fleet, job)["pages"]["claimed"], "no page is in hand")
        fleet.ask("job", "abort", job)
        rows = rows_of(fleet, job)
        assert sorted(row["url"].removeprefix(site.url[:-1]) for row in rows) == sorted(site.requests)


def test_a_pipeline_that_was_killed_joins_the_index_of_a_job_that_ended_meanwhile(fleet: Fleet) -> None:
    with site_of(30, after=0.1) as site:
        job = fleet.ask("job", "add", site.url, *OPTIONS, "--per-host", "2")
        site.wait_for("/p9")
        for pipeline in fleet.pipelines:
            pipeline.kill()
        fleet.ask("job", "abort", job)
        for pipeline in fleet.pipelines:
            pipeline.start()
        rows = rows_of(fleet, job)
        kept = {row["url"].removeprefix(site.url[:-1]) for row in rows}
        assert len(kept) == len(rows) > 5 and kept <= set(site.requests)


def test_a_delay_holds_over_all_pipelines(fleet: Fleet) -> None:
    with site_of(10, after=0) as site:
        job = fleet.ask("job", "add", site.url, *OPTIONS, "--delay", "200")
        fleet.ask("job", "wait", job, "--timeout", "60")
        gaps = [later - earlier for earlier, later in pairwise(site.times)]
    assert len(gaps) == 20
    assert min(gaps) >= 0.2 - ON_ARRIVAL_S


def test_what_is_changed_at_one_server_holds_at_the_pipelines_of_the_other(fleet: Fleet) -> None:
    with site_of(200, after=0.1) as site:
        job = fleet.ask("job", "add", site.url, *OPTIONS, "--per-host", "4")
        site.wait_for("/p3")
        fleet.ask("job", "pause", job, server=1)
        paused = time.monotonic()
        quiet_after(site, paused)
        fleet.ask("job", "ignore", job, "^http://[^/]+/other/", server=0)
        ignored = time.monotonic()
        fleet.ask("job", "resume", job, server=0)
        asked = len(site.requests)
        wait_until(lambda: len(site.requests) > asked, "the job goes on")
        fleet.ask("job", "abort", job, server=1)
        aborted = time.monotonic()
        quiet_after(site, aborted)
        late = [path for path, at in zip(site.requests, site.times, strict=True) if at > ignored + LATE_S]
        assert not [path for path in late if path.startswith("/other/")]
    assert shown(fleet, job)["state"] == "ABORTED"
    whats = [change["what"] for change in json.loads(fleet.ask("job", "changes", job, "--json"))]
    assert {"paused", "ignores", "state"} <= set(whats)


def test_bytes_are_limited_over_all_pipelines(fleet: Fleet) -> None:
    """The job pauses itself; what was out is taken in, and the rest comes when the limit is raised."""
    size, most = 10_000, 400_000
    paths = [f"/p{number}" for number in range(150)]
    pages = {"/": "".join(f"<a href='{path}'>x</a>" for path in paths)}
    pages |= {path: Answer("x" * size, after=0.1) for path in paths}
    with ExitStack() as stack:
        sites = [stack.enter_context(GatedSite(pages, address=f"127.0.0.{number}")) for number in (1, 2)]
        urls = (site.url for site in sites)
        job = fleet.ask("job", "add", *urls, *OPTIONS, "--per-host", "2", "--max-bytes", str(most))
        wait_until(lambda: shown(fleet, job)["paused"], "the limit")
        wait_until(lambda: not shown(fleet, job)["pages"]["claimed"], "what was out")
        found = shown(fleet, job)
        assert (found["state"], found["reason"]) == ("ACTIVE", f"limit: --max-bytes {most}")
        assert most <= found["payload_bytes"] < most + 200 * size, "of 300 pages"
        asked = sum(len(site.requests) for site in sites)
        assert asked == found["pages"]["captured"]
        fleet.ask("job", "set", job, "max-bytes=4000000", server=1)
        fleet.ask("job", "resume", job, server=1)
        fleet.ask("job", "wait", job, "--timeout", "60")
        assert all(set(site.counts().values()) == {1} for site in sites)
    assert shown(fleet, job)["pages"]["captured"] == 2 * len(pages)


def test_pages_are_limited_exactly_over_all_pipelines(fleet: Fleet) -> None:
    most, paths = 57, [f"/p{number}" for number in range(60)]
    pages = {"/": "".join(f"<a href='{path}'>x</a>" for path in paths)}
    pages |= {path: Answer(path, after=0.05) for path in paths}
    with ExitStack() as stack:
        sites = [stack.enter_context(GatedSite(pages, address=f"127.0.0.{number}")) for number in (1, 2)]
        urls = (site.url for site in sites)
        job = fleet.ask("job", "add", *urls, *OPTIONS, "--per-host", "2", "--max-pages", str(most))
        wait_until(lambda: shown(fleet, job)["paused"], "the limit")
        wait_until(lambda: not shown(fleet, job)["pages"]["claimed"], "what was out")
        found = shown(fleet, job)
        assert (found["state"], found["reason"]) == ("ACTIVE", f"limit: --max-pages {most}")
        assert (found["pages"]["captured"], found["pages"]["claimed"]) == (most, 0)
        fleet.ask("job", "set", job, "max-pages=500", server=1)
        fleet.ask("job", "resume", job, server=1)
        fleet.ask("job", "wait", job, "--timeout", "60")
        assert all(set(site.counts().values()) == {1} for site in sites)
    assert shown(fleet, job)["pages"]["captured"] == 2 * len(pages)


def quiet_after(site: GatedSite, moment: float) -> None:
    """Nothing is asked for any more, from some seconds after a moment on."""
    time.sleep(max(0.0, moment + LATE_S - time.monotonic()))
    asked = len(site.requests)
    time.sleep(1.0)  # nothing is to happen: there is nothing to wait for
    assert site.requests[asked:] == []
