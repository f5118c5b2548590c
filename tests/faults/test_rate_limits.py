"""Sites that take one request a second and refuse the others: 25 pages take a minute at most, and none is lost.

All jobs of this module run at once, because they do little but wait.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest
from bad_minutes import COMMANDS, Command, Job
from tests.support.nginx import LoggedRequest, Nginx
from tests.support.relay import Relay

from muniment.archive.check.directory import check

pytestmark = pytest.mark.long

PAGES = 25
MOST_S = 60.0
LIMITS = list(itertools.product((429, 503), ("", "1")))
"""The status that refuses, and its Retry-After."""
_ZONE = """\
limit_req_zone $server_addr zone=all:1m rate=1r/s;
map $status $wait { 429 "%s"; 503 "%s"; default ""; }
"""
_SERVER = "limit_req zone=all; limit_req_status %d; add_header Retry-After $wait always;"


Ended = tuple[Job, list[LoggedRequest]]
Ends = dict[tuple[str, int, str], Future[Ended]]


def _limited(home: Path, command: Command, status: int, retry_after: str) -> Ended:
    """Archive a site whose server refuses so; the job, and what the server answered."""
    home.mkdir()
    names = ["index.html", *(f"p{number}.html" for number in range(1, PAGES))]
    for name in names:
        (home / name).write_text("".join(f"<a href={other}>{other}</a>" for other in names))
    server = Nginx(home, http=_ZONE % (retry_after, retry_after), server=_SERVER % status)
    paths = ["/", *(f"/{name}" for name in names[1:])]
    with server, Relay(("127.0.0.1", server.ports[0])) as relay:
        job = Job(command, home / "job", relay, paths, ("--quiet",))
        job.wait(job.start())
        return job, server.wait_requests(relay.requests)


@pytest.fixture(scope="module")
def ends(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ends]:
    home = tmp_path_factory.mktemp("limited")
    with ThreadPoolExecutor(2 * len(LIMITS)) as pool:
        yield {
            (command, *limit): pool.submit(_limited, home / f"{command}-{limit[0]}-{limit[1]}", command, *limit)
            for command in COMMANDS
            for limit in LIMITS
        }


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(("status", "retry_after"), LIMITS)
def test_a_rate_limit_costs_a_minute_and_no_page(ends: Ends, command: str, status: int, retry_after: str) -> None:
    job, answers = ends[command, status, retry_after].result()
    refused = sum(answer.status == status for answer in answers)
    assert (job.all_paths() - job.captured(), job.codes) == (set(), [0]), job.said
    took = answers[-1].ended_at - answers[0].ended_at
    assert PAGES - 2 < took < MOST_S, f"{took:.1f} s, {refused} requests of {len(answers)} were refused"
    assert refused, "the limit was never met"
    assert check(job.out, 1).faults == ()
