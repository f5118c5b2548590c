"""Sites, gateways, proxies and robots.txt that fail for a minute: they are waited for, and no page is lost to it.

All jobs of this module run at once, because they do little but wait.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from concurrent.futures import Future

import pytest
from bad_minutes import COMMANDS, Command, Job, Jobs

from muniment.archive.check.directory import check

pytestmark = pytest.mark.long

DOWN_S, GATEWAY_S, PROXY_S, ROBOTS_S = 70.0, 30.0, 60.0, 30.0
"""How long each is away."""


def _nothing(jobs: Jobs, command: Command) -> Job:
    job = jobs.one("undisturbed", command)
    job.wait(job.start())
    return job


def _down(jobs: Jobs, command: Command) -> Job:
    job = jobs.one("down", command)
    process = job.reach_the_middle()
    job.relay.away(DOWN_S)
    job.relay.allow(None)
    return job.wait_twice_at_most(process)


def _gateway(jobs: Jobs, command: Command) -> Job:
    job = jobs.one("gateway", command)
    process = job.reach_the_middle()
    job.relay.answer(502, GATEWAY_S)
    job.relay.allow(None)
    return job.wait_twice_at_most(process)


def _proxy(jobs: Jobs, command: Command) -> Job:
    with jobs.proxy("proxy", command) as proxy:
        job = jobs.one("proxy", command, "--proxy", proxy.url)
        process = job.reach_the_middle()
        proxy.stop()
        job.relay.allow(None)
        ended = jobs.begin(job.wait_twice_at_most, process)
        time.sleep(PROXY_S)
        proxy.start()
        return ended.result()


def _robots(jobs: Jobs, command: Command) -> Job:
    job = jobs.one("robots", command, "--robots")
    began = time.monotonic()
    job.relay.answer_robots(503, ROBOTS_S)
    job.wait_twice_at_most(job.start())
    # a busy machine takes a second for the start, in which robots.txt fails already
    job.lasted_s = time.monotonic() - began
    return job


TROUBLES = {"nothing": (_nothing, 0.0), "down": (_down, DOWN_S), "gateway": (_gateway, GATEWAY_S)}
TROUBLES |= {"proxy": (_proxy, PROXY_S), "robots": (_robots, ROBOTS_S)}
"""What happens, and how long it lasts."""
Ends = dict[tuple[str, str], Future[Job]]


@pytest.fixture(scope="module")
def ends(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ends]:
    with contextlib.ExitStack() as stack:
        jobs = Jobs(tmp_path_factory.mktemp("jobs"), stack)
        yield {
            (name, command): jobs.begin(trouble, jobs, command)
            for name, (trouble, _) in TROUBLES.items()
            for command in COMMANDS
        }


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("trouble", TROUBLES)
def test_a_bad_minute_costs_no_page(ends: Ends, trouble: str, command: str) -> None:
    undisturbed, job = ends["nothing", command].result(), ends[trouble, command].result()
    assert undisturbed.captured() == undisturbed.all_paths()
    missing = undisturbed.captured() - job.captured()
    assert (missing, job.codes[-1]) == (set(), 0), f"{len(missing)} pages are missing, {job.codes}: {job.said}"
    assert job.captured() == undisturbed.captured()
    assert job.lasted_s >= TROUBLES[trouble][1], "it ended before the trouble did, which was not there then"
    assert check(job.out, 1).faults == ()
