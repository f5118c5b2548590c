"""`kill -9` of all processes while a run waits for a site, a gateway, a proxy, its robots.txt or a rate limit.

The same command goes on waiting, and ends as if nothing had happened. All jobs of this module run at once.
"""

from __future__ import annotations

import contextlib
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import Future

import pytest
from bad_minutes import COMMANDS, Command, Job, Jobs

from muniment.archive.check.directory import check

pytestmark = pytest.mark.long

KILLED_S = 8.0
"""How long the trouble has lasted when the run is killed."""
MORE_S = 12.0
"""How long it lasts after that."""
LASTS_S = KILLED_S + MORE_S


def _down(jobs: Jobs, command: Command) -> Job:
    job = jobs.one("down", command)
    process = job.reach_the_middle()
    job.relay.away(LASTS_S)
    return _killed(job, process)


def _gateway(jobs: Jobs, command: Command) -> Job:
    job = jobs.one("gateway", command)
    process = job.reach_the_middle()
    job.relay.answer(502, LASTS_S)
    return _killed(job, process)


def _throttle(jobs: Jobs, command: Command) -> Job:
    job = jobs.one("throttle", command)
    process = job.reach_the_middle()
    job.relay.answer(429, LASTS_S)
    return _killed(job, process)


def _robots(jobs: Jobs, command: Command) -> Job:
    job = jobs.one("robots", command, "--robots")
    job.relay.answer_robots(503, LASTS_S)
    return _killed(job, job.start())


def _proxy(jobs: Jobs, command: Command) -> Job:
    with jobs.proxy("proxy", command) as proxy:
        job = jobs.one("proxy", command, "--proxy", proxy.url)
        process = job.reach_the_middle()
        proxy.stop()
        ended = jobs.begin(_killed, job, process)
        time.sleep(LASTS_S)
        proxy.start()
        return ended.result()


def _killed(job: Job, process: subprocess.Popen[str]) -> Job:
    """Kill the run in the middle of the trouble that began just now, and give the same command again."""
    job.relay.allow(None)
    time.sleep(KILLED_S)
    job.kill(process)
    began = time.monotonic()
    job.wait(job.start())
    job.lasted_s = time.monotonic() - began
    return job


TROUBLES = {"down": _down, "gateway": _gateway, "throttle": _throttle, "robots": _robots, "proxy": _proxy}
Ends = dict[tuple[str, str], Future[Job]]


@pytest.fixture(scope="module")
def ends(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ends]:
    with contextlib.ExitStack() as stack:
        jobs = Jobs(tmp_path_factory.mktemp("jobs"), stack)
        yield {
            (name, command): jobs.begin(trouble, jobs, command)
            for name, trouble in TROUBLES.items()
            for command in COMMANDS
        }


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("trouble", TROUBLES)
def test_what_is_killed_while_it_waits_goes_on_waiting(ends: Ends, trouble: str, command: str) -> None:
    job = ends[trouble, command].result()
    missing = job.all_paths() - job.captured()
    assert (missing, job.codes) == (set(), [-9, 0]), f"{len(missing)} pages are missing, {job.codes}: {job.said}"
    assert job.lasted_s >= MORE_S - 1, "the trouble was over, and nothing was waited for"
    assert check(job.out, 1).faults == ()
