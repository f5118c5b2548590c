"""A pipeline whose server is killed or frozen, whose network loses answers, or which is frozen itself."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.api_server import call
from tests.support.gated_site import Answer, GatedSite, Page
from tests.support.nginx import free_port
from tests.support.pipeline_runs import PipelineRun, ended, until
from tests.support.relay import Relay

from muniment.clock import now_ms
from muniment.model.network.scopes import TokenScope
from muniment.model.place import TrackerPlace
from muniment.tracker.connect import tracker_at
from muniment.tracker.fleet.tokens import add_token

LEASE_S = 5


class ServedDirectory:
    """A server in a process of its own, on an address that stays."""

    def __init__(self, muniment: Any, directory: Path) -> None:
        directory.mkdir()
        self._muniment, self._directory = muniment, directory
        with tracker_at(TrackerPlace(directory)) as db:
            self._token = add_token(db, "admin", [TokenScope.ADMIN], None, now_ms())
        self.address = "127.0.0.1", free_port()
        self.url = f"http://127.0.0.1:{self.address[1]}"
        self.begin()

    def begin(self) -> None:
        self.process: subprocess.Popen[str] = self._muniment.start(
            *("serve", "--state", self._directory, "--listen", self.url.removeprefix("http://")),
            *("--lease", LEASE_S, "--allow-private"),
        )
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == f"serving {self.url}\n"

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate(timeout=20)

    def call(self, method: str, path: str, body: Any = None) -> Any:
        return call(self.url, method, path, body, self._token)


def site_of(pages: int) -> dict[str, Page]:
    links = "".join(f'<a href="/p{number}">p</a>' for number in range(pages))
    return {
        "/": links,
        "/robots.txt": Answer(status=404),
        **{f"/p{number}": Answer(f'<a href="/q{number}">q</a>', after=0.1) for number in range(pages)},
        **{f"/q{number}": Answer("the end", after=0.1) for number in range(pages)},
    }


def _kill_server(served: ServedDirectory, _pipeline: subprocess.Popen[str], _relay: Relay, _site: GatedSite) -> None:
    served.kill()
    time.sleep(LEASE_S + 2)
    served.begin()


def _freeze_server(served: ServedDirectory, _pipeline: subprocess.Popen[str], _relay: Relay, _site: GatedSite) -> None:
    os.kill(served.process.pid, signal.SIGSTOP)
    time.sleep(LEASE_S + 2)
    os.kill(served.process.pid, signal.SIGCONT)


def _lose_answers(_served: ServedDirectory, _pipeline: subprocess.Popen[str], relay: Relay, _site: GatedSite) -> None:
    for _ in range(8):
        relay.cut(2)
        time.sleep(0.15)
        relay.reset()
        relay.stall(0.3)
        time.sleep(0.35)


def _freeze_pipeline(served: ServedDirectory, pipeline: subprocess.Popen[str], _relay: Relay, site: GatedSite) -> None:
    os.kill(pipeline.pid, signal.SIGSTOP)
    time.sleep(LEASE_S + 0.5)
    before = len(site.requests)
    time.sleep(2.5)
    # its workers go on, but not for longer than others must wait for their pages
    assert len(site.requests) == before
    until(lambda: not served.call("GET", "/v1/pipelines").value["pipelines"][0]["session"], "the session does not end")
    os.kill(pipeline.pid, signal.SIGCONT)


FAULTS: dict[str, tuple[Callable[..., None], bool]] = {
    "the server is killed for longer than a lease": (_kill_server, True),
    "the server is frozen for longer than a lease": (_freeze_server, True),
    "answers are cut, and connections reset and stalled": (_lose_answers, True),
    "the pipeline is frozen for longer than a lease": (_freeze_pipeline, False),
}
"""What befalls, and whether the session outlives it."""


@pytest.mark.parametrize("fault", FAULTS)
def test_nothing_is_lost(fault: str, muniment: Any, tmp_path: Path) -> None:
    befall, same_session = FAULTS[fault]
    served = ServedDirectory(muniment, tmp_path / "tracker")
    with GatedSite(site_of(60)) as site, Relay(served.address) as relay:
        pipe = PipelineRun(served, muniment, tmp_path / "out", "p1")  # type: ignore[arg-type]
        job = pipe.add_job(site.url, settings={"per-host": 2})
        process = pipe.start(url=relay.url.rstrip("/"))
        until(lambda: len(site.requests) > 20, "it does not begin")
        befall(served, process, relay, site)
        until(lambda: pipe.job(job)["state"] == "FINISHED", f"it does not end: {pipe.job(job)}")
        process.send_signal(signal.SIGTERM)
        assert ended(process)[0] == 0
        paths = {*site.pages, "/sitemap.xml"}
        assert set(site.requests) == paths
        again = Counter(site.requests) - Counter(paths)
        assert len(again) <= (0 if same_session else 20), again
        assert set(pipe.captured(job)) == {site.url[:-1] + path for path in paths}
    pipe.check(job)
    stands = pipe.job(job)
    assert (stands["outcome"], stands["pages"]["captured"], stands["pages"]["claimed"]) == ("completed", 121, 0)
    epochs = {event["epoch"] for event in pipe.events() if event["event"] == "session" and "epoch" in event}
    assert len(epochs) == (1 if same_session else 2)
    served.process.send_signal(signal.SIGTERM)
    served.process.communicate(timeout=20)
