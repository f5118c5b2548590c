"""`muniment pipeline` as its users run it: what it fetches, keeps and says, and how it ends."""

from __future__ import annotations

import os
import re
import signal
import time
from collections import Counter
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.support.api_server import ApiServer
from tests.support.gated_site import Answer, GatedSite, Page
from tests.support.pipeline_runs import PipelineRun, ended, until
from tests.support.relay import Relay

from muniment.model.place import TrackerPlace

pytestmark = pytest.mark.long  # its tests stay together

_names = (f"pipe{number}" for number in count())


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    place = TrackerPlace(tmp_path_factory.mktemp("tracker"))
    with ApiServer(place, lease_s=5, allow_private=True).make_tokens() as running:
        yield running


@pytest.fixture
def pipe(server: ApiServer, muniment: Any, tmp_path: Path) -> PipelineRun:
    return PipelineRun(server, muniment, tmp_path / "out", next(_names))


def site_of(pages: int, *, after: float = 0.0) -> dict[str, Page]:
    """A site whose start page leads to all others, and each of these to its neighbour and one image."""
    links = "".join(f'<a href="/p{number}">p</a>' for number in range(pages))
    site: dict[str, Page] = {"/": links, "/robots.txt": Answer(status=404), "/i.png": Answer("x" * 2000)}
    for number in range(pages):
        text = f'page {number} <img src="/i.png"> <a href="/p{(number + 1) % pages}">next</a>'
        site[f"/p{number}"] = Answer(text, after=after)
    return site


def paths_of(site: GatedSite) -> set[str]:
    return {path for path in site.pages if path != "/robots.txt"} | {"/sitemap.xml"}


def test_two_jobs_from_their_start_urls_to_their_indexes(pipe: PipelineRun, muniment: Any) -> None:
    with GatedSite(site_of(40)) as first, GatedSite(site_of(30)) as second:
        jobs = [pipe.add_job(first.url, max_slots=1), pipe.add_job(second.url, settings={"delay": 5})]
        process = pipe.start("--slots", 2, "--exit-when-idle", 4)
        said = [pipe.finished(job) for job in jobs]
        assert ended(process) == (0, "")
        for site in (first, second):
            assert site.counts() == Counter(paths_of(site) | {"/robots.txt"})
    assert [one["outcome"] for one in said] == ["completed", "completed"]
    assert [one["pages"]["captured"] for one in said] == [41, 31]
    for job, site in zip(jobs, (first, second), strict=True):
        out = pipe.out / str(job)
        assert pipe.captured(job) == sorted(site.url[:-1] + path for path in paths_of(site) | {"/robots.txt"})
        assert (out / "tracker.place").read_text() == f"{pipe.server.url}\n{job}\n"
        assert [path.name for path in out.glob("*.warc.gz")] == [f"{pipe.name}-{job}-00000.warc.gz"]
        pipe.check(job)
    for asked in (("why", site.url), ("set", "delay=1"), ("ignores", "list"), ("crawl", site.url)):
        given = muniment(*asked, "-o", out)
        assert (given.code, f"--server {pipe.server.url}" in given.stderr) == (2, True), given
    kinds = Counter(event["event"] for event in pipe.events())
    assert kinds == {"start": 1, "session": 1, "slot": 4, "stop": 1, "finish": 1}
    assert pipe.session() is None


def tree_of(pipe: PipelineRun, muniment: Any) -> str:
    """The processes of all pipelines, as their server shows them."""
    token = pipe.server.tokens["read"]
    return str(muniment("process", "tree", "--server", pipe.server.url, MUNIMENT_TOKEN=token).stdout)


def test_what_an_operator_changes_holds_soon(pipe: PipelineRun, muniment: Any) -> None:
    pages = site_of(2000, after=0.1)
    with GatedSite(pages) as site:
        job = pipe.add_job(site.url, settings={"per-host": 2})
        call = pipe.server.call
        process = pipe.start()
        until(lambda: len(site.requests) > 20, "it does not begin")
        until(lambda: "orchestrator" in tree_of(pipe, muniment), "its run of the job has no row")
        assert re.search(
            rf"cli pipeline .*\n.*orchestrator job {job} running .*\n.*worker fetcher ", tree_of(pipe, muniment)
        )

        odd = [path for path in pages if path[1:2] == "p" and int(path[2:]) % 2]
        assert call("POST", f"/v1/jobs/{job}/ignores", {"add": ["/p[0-9]*[13579]$"]}).status == 200
        time.sleep(2)
        before = len(site.requests)
        until(lambda: len(site.requests) > before + 10, "it does not go on with the others")
        assert set(site.requests[before:]).isdisjoint(odd)

        assert call("POST", f"/v1/jobs/{job}/pause").value["paused"] is True
        time.sleep(2)
        before = len(site.requests)
        until(lambda: not pipe.job(job)["pages"]["claimed"], "what it held does not go back")
        assert len(site.requests) == before
        assert call("POST", f"/v1/jobs/{job}/resume").value["paused"] is False
        until(lambda: len(site.requests) > before + 10, "it does not go on after a pause")

        assert call("POST", f"/v1/jobs/{job}/abort").value["state"] == "ABORTED"
        time.sleep(2)
        before = len(site.requests)
        until((pipe.out / str(job) / "captures.parquet").exists, "the index of an aborted job is not joined")
        assert len(site.requests) == before
        process.send_signal(signal.SIGTERM)
        assert ended(process) == (0, "")
    assert max(Counter(site.requests).values()) == 1
    pipe.check(job)


def test_a_stop_repeats_nothing_and_the_next_start_goes_on(pipe: PipelineRun) -> None:
    with GatedSite(site_of(150, after=0.02)) as site:
        job = pipe.add_job(site.url)
        process = pipe.start()
        until(lambda: len(site.requests) > 30, "it does not begin")
        process.send_signal(signal.SIGINT)
        assert ended(process) == (0, "")
        stopped = len(site.requests)
        assert pipe.job(job)["pages"]["claimed"] == 0
        assert len(pipe.captured(job)) == stopped

        process = pipe.start("--exit-when-idle", 4)
        pipe.finished(job)
        assert ended(process) == (0, "")
        assert site.counts() == Counter(paths_of(site) | {"/robots.txt"})
    pipe.check(job)


def test_a_killed_pipeline_goes_on_in_its_directory(pipe: PipelineRun) -> None:
    with GatedSite(site_of(150, after=0.02)) as site:
        job = pipe.add_job(site.url)
        process = pipe.start()
        until(lambda: len(site.requests) > 40, "it does not begin")
        process.kill()
        process.communicate(timeout=20)
        process = pipe.start("--exit-when-idle", 4)
        pipe.finished(job)
        assert ended(process) == (0, "")
        assert set(pipe.captured(job)) == {site.url[:-1] + path for path in paths_of(site) | {"/robots.txt"}}
    pipe.check(job)


def test_without_a_server_it_goes_on_for_a_lease_and_then_waits(pipe: PipelineRun) -> None:
    with GatedSite(site_of(200, after=0.05)) as site, Relay(pipe.server.address) as relay:
        job = pipe.add_job(site.url, settings={"per-host": 2})
        process = pipe.start("--exit-when-idle", 20, url=relay.url.rstrip("/"))
        until(lambda: len(site.requests) > 10, "it does not begin")
        before = pipe.session()
        assert before is not None
        relay.away(12)
        until(lambda: any(event["event"] == "pause" for event in pipe.events()), "it does not notice")
        time.sleep(1)
        held = len(site.requests)
        until(relay.open_again, "the relay does not open")
        assert len(site.requests) == held
        pipe.finished(job)
        process.send_signal(signal.SIGTERM)
        assert ended(process)[0] == 0
        assert set(site.requests) == paths_of(site) | {"/robots.txt"}
    pipe.check(job)
    kinds = [event["event"] for event in pipe.events()]
    assert {"lost", "found", "pause", "resume"} <= set(kinds)


def test_what_is_refused_ends_it_with_one_line(pipe: PipelineRun, muniment: Any, tmp_path: Path) -> None:
    server = pipe.server.url
    first = pipe.start()
    until(pipe.session, "it does not begin")
    # one process for a directory, and one for a pipeline
    code, said = ended(pipe.start())
    assert (code, "in use by another pipeline" in said) == (2, True)
    second = pipe.start(out=tmp_path / "second")
    code, said = ended(first)
    assert (code, said) == (2, "muniment: another process of this pipeline has begun: this one ends\n")
    # its token is worth nothing from now on
    assert pipe.server.call("POST", f"/v1/pipelines/{pipe.name}/token").status < 300
    code, said = ended(second)
    assert (code, said.count("\n"), "token" in said) == (2, 1, True)
    for wrong in ("no-such-token", ""):
        given = muniment("pipeline", server, "-o", tmp_path / "third", MUNIMENT_TOKEN=wrong)
        assert (given.code, given.stderr.count("\n"), "token" in given.stderr) == (2, 1, True)
    given = muniment("pipeline", "http://192.0.2.1:8600", "-o", tmp_path / "third", MUNIMENT_TOKEN="t")
    assert (given.code, "--plain-http" in given.stderr) == (2, True)
    kinds = [event["event"] for event in pipe.events()]
    assert kinds[-1] == "finish"


def test_the_directory_of_another_tracker_is_refused(pipe: PipelineRun, muniment: Any, tmp_path: Path) -> None:
    assert ended(pipe.start("--exit-when-idle", 0.5)) == (0, "")
    place = TrackerPlace(tmp_path / "other")
    place.directory.mkdir()
    with ApiServer(place).make_tokens() as other:
        given = muniment("pipeline", other.url, "-o", pipe.out, MUNIMENT_TOKEN=other.tokens["pipeline"])
        assert (given.code, "another tracker" in given.stderr) == (2, True)


def test_only_public_addresses_unless_told_otherwise(pipe: PipelineRun, muniment: Any) -> None:
    with GatedSite(site_of(1)) as site:
        job = pipe.add_job(*(f"{site.url}{n}" for n in range(9)), settings={"robots": True})
        given = ("-o", pipe.out, "--exit-when-idle", 5)
        process = muniment.start("pipeline", pipe.server.url, *given, MUNIMENT_TOKEN=pipe.token)
        found = pipe.finished(job)
        assert (found["outcome"], found["reason"]) == ("failed", "private-address: 127.0.0.1 is a loopback address")
        assert ended(process)[0] == 0
        assert site.requests == []


@pytest.mark.parametrize("quiet", [False, True])
def test_it_ends_when_no_server_answers(pipe: PipelineRun, quiet: bool) -> None:
    with Relay(pipe.server.address) as relay:
        process = pipe.start("--exit-when-lost", 2, *(["--quiet"] if quiet else []), url=relay.url.rstrip("/"))
        until(pipe.session, "it does not begin")
        relay.away(60)
        code, said = ended(process)
        assert code == 3
    assert ("cannot be reached" in said) != quiet


def test_stopped_without_a_server_it_says_how_to_go_on(pipe: PipelineRun) -> None:
    with Relay(pipe.server.address) as relay:
        process = pipe.start(url=relay.url.rstrip("/"))
        until((pipe.out / "pipeline.jsonl").exists, "it does not begin")
        until(lambda: '"session"' in (pipe.out / "pipeline.jsonl").read_text(), "it has no answer to its greeting")
        relay.away(60)
        process.send_signal(signal.SIGTERM)
        code, said = ended(process)
    assert code == 3, said
    assert said.endswith("the same command in the same directory goes on\n")


def test_without_room_it_gives_back_what_it_has_not_begun(pipe: PipelineRun) -> None:
    with GatedSite(site_of(20)) as site:
        job = pipe.add_job(site.url)
        full = pipe.start("--min-free", 1 << 60)
        until(lambda: (pipe.session() or {}).get("paused") == "disk", "it does not say that it is paused")
        until(lambda: pipe.job(job)["pages"]["claimed"] == 0, "it does not give back what it has")
        full.send_signal(signal.SIGTERM)
        assert ended(full) == (0, "")
        assert site.requests == []


def test_a_page_that_kills_its_worker_is_given_up_alone(pipe: PipelineRun) -> None:
    with GatedSite(site_of(30)) as site:
        pages = site.pages
        killed: list[int] = []

        def deadly(_headers: Any) -> Answer:
            worker = next(
                process.pid
                for process in psutil.Process(running.pid).children(recursive=True)
                if "worker" in process.cmdline()
            )
            killed.append(worker)
            os.kill(worker, signal.SIGKILL)
            return Answer("never read")

        pages["/p7"] = deadly
        job = pipe.add_job(site.url)
        running = pipe.start()
        assert pipe.finished(job)["pages"]["captured"] == 30
        running.send_signal(signal.SIGTERM)
        assert ended(running)[0] == 0
    assert len(killed) == 3
    listed = pipe.server.call("GET", f"/v1/jobs/{job}/pages?limit=100").value["pages"]
    assert [page["url"] for page in listed if page["error"]] == [f"{site.url}p7"]
    pipe.check(job)


def test_a_second_signal_ends_it_at_once(pipe: PipelineRun) -> None:
    pages = {"/": Answer("slow", after=30), "/robots.txt": Answer(status=404)}
    with GatedSite(pages) as site:
        job = pipe.add_job(site.url)
        process = pipe.start()
        until(lambda: "/" in site.requests, "it does not begin")
        process.send_signal(signal.SIGINT)
        until(lambda: pipe.events()[-1]["event"] == "stop", "it does not stop")
        process.send_signal(signal.SIGINT)
        assert ended(process, 10)[0] == 3
    assert pipe.job(job)["state"] == "ACTIVE"
