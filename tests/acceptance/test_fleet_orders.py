"""What operators order of a fleet, as the site sees it: what goes first, waits, comes back, and who fetches it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from crawled import wait_until
from tests.support.fleet import Fleet
from tests.support.gated_site import Answer, GatedSite

from forked import ForkedWithChildren

pytestmark = pytest.mark.long  # its tests stay together

OPTIONS = ("--no-robots", "--no-sitemaps", "--per-host", "1", "--page-only", "--no-requisites")


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """A server and two pipelines that say their names; the second one is tagged, and takes what asks for it alone.

    It has two slots.
    """
    work = tmp_path_factory.mktemp("orders")
    with Fleet(work / "work", ("--state", str(work / "state")), lease_s=10, launch=ForkedWithChildren) as fleet:
        fleet.serve()
        for name, slots in (("p0", "1"), ("p1", "2")):
            fleet.pipeline("--workers", "1", "--slots", slots, "--header", f"*=X-Pipeline: {name}")
        fleet.ask("pipelines", "set", "p1", "--tags", "fast,big", "--matchonly")
        yield fleet


class Log:
    """A site of some sections, which notes which pipeline asks for what."""

    def __init__(self, sections: str, pages: int) -> None:
        self.seen: list[tuple[str, str]] = []
        paths = [f"/{section}/{number}" for section in sections for number in range(pages)]
        self.site = GatedSite({path: self._page(path) for path in paths})
        self.paths = paths

    def _page(self, path: str) -> Callable[[Any], Answer]:
        def answer(headers: Any) -> Answer:
            self.seen.append((path, headers["X-Pipeline"]))
            return Answer(f"this is {path}", after=0.01)

        return answer

    @property
    def sections(self) -> str:
        """The sections in the order in which they were asked for, without repetitions."""
        letters = [path[1] for path, _ in self.seen]
        return "".join(letter for at, letter in enumerate(letters) if at == 0 or letters[at - 1] != letter)

    def listed(self, work: Path) -> str:
        file = work / "list.txt"
        file.write_text("".join(f"{self.site.url.rstrip('/')}{path}\n" for path in self.paths))
        return str(file)


def ended(fleet: Fleet, job: str) -> dict[str, Any]:
    fleet.ask("job", "wait", job, "--timeout", "90")
    value: dict[str, Any] = json.loads(fleet.ask("job", "show", job, "--json"))
    return value


def add(fleet: Fleet, log: Log, tmp_path: Path, *options: str) -> str:
    return fleet.ask("job", "add", "--fetch", log.listed(tmp_path), "--no-robots", "--per-host", "1", *options)


def test_nice_stash_and_drip_are_seen_in_the_log(fleet: Fleet, tmp_path: Path) -> None:
    log = Log("abcd", 8)
    with log.site as site:
        job = add(fleet, log, tmp_path, "--paused")
        assert fleet.ask("job", "nice", job, "-5", "--prefix", f"{site.url}c/") == "8 pages waiting"
        assert fleet.ask("job", "nice", job, "5", "--prefix", f"{site.url}a/") == "8 pages waiting"
        assert fleet.ask("job", "stash", job, "--prefix", f"{site.url}b/") == "8 pages stashed"
        assert fleet.ask("job", "unstash", job, "1") == "1 page unstashed"
        assert fleet.ask("job", "stash", job, "--prefix", f"{site.url}d/") == "8 pages stashed"
        fleet.ask("job", "set", job, "drip=3")
        fleet.ask("job", "resume", job)
        found = ended(fleet, job)
    assert found["pages"]["captured"] == 32
    assert found["pages"]["stashed"] == 0
    order = [path for path, _ in log.seen]
    assert sorted(order) == sorted(log.paths), "each once"
    assert order[:8] == [f"/c/{number}" for number in range(8)], "nice -5 goes first"
    assert order[8] == "/b/0", "the one that came back, before those of nice 5"
    assert [path for path in order if path[1] == "a"] == [f"/a/{number}" for number in range(8)]
    dripped = [path for path in log.paths if path[1] in "bd" and path != "/b/0"]
    assert [path for path in order[9:] if path[1] in "bd"] == dripped, "three at a time, when nothing else waits"


def test_a_job_waits_for_what_is_in_the_stash(fleet: Fleet, tmp_path: Path) -> None:
    """It holds no slot meanwhile: another job is fetched to its end."""
    log, other = Log("a", 5), Log("z", 3)
    with log.site, other.site:
        job = add(fleet, log, tmp_path, "--paused")
        assert fleet.ask("job", "stash", job) == "5 pages stashed"
        fleet.ask("job", "resume", job)
        assert ended(fleet, add(fleet, other, tmp_path))["pages"]["captured"] == 3
        found = json.loads(fleet.ask("job", "show", job, "--json"))
        assert (found["state"], found["outcome"], log.seen) == ("DRAINING", "", [])
        assert fleet.ask("job", "unstash", job, "2") == "2 pages unstashed"
        wait_until(lambda: len(log.seen) == 2, "two pages")
        assert fleet.ask("job", "unstash", job) == "3 pages unstashed"
        found = ended(fleet, job)
    assert (found["state"], found["pages"]["captured"]) == ("FINISHED", 5)
    assert [path for path, _ in log.seen] == log.paths


def test_tags_and_matchonly_say_who_fetches(fleet: Fleet, tmp_path: Path) -> None:
    log = Log("a", 12)
    with log.site:
        assert ended(fleet, add(fleet, log, tmp_path))["pages"]["captured"] == 12
        assert {who for _, who in log.seen} == {"p0"}, "p1 takes what asks for it alone"
        log.seen.clear()
        assert ended(fleet, add(fleet, log, tmp_path, "--tags", "big,other"))["pages"]["captured"] == 12
        assert {who for _, who in log.seen} == {"p1"}


def test_a_locked_slot_waits_for_its_job(fleet: Fleet, tmp_path: Path) -> None:
    """It takes no other one, though that has pages, until it is unlocked."""
    log, other = Log("a", 6), Log("z", 6)
    with log.site, other.site:
        mine = add(fleet, log, tmp_path, "--paused")
        fleet.ask("pipelines", "lock", "p0", "--job", mine)
        theirs = add(fleet, other, tmp_path)
        fleet.ask("job", "resume", mine)
        assert ended(fleet, mine)["pages"]["captured"] == 6
        assert other.seen == []
        fleet.ask("pipelines", "unlock", "p0")
        assert ended(fleet, theirs)["pages"]["captured"] == 6
    assert {who for _, who in log.seen + other.seen} == {"p0"}


def test_two_jobs_on_a_host_have_the_lower_limit_together(fleet: Fleet, tmp_path: Path) -> None:
    """The job with the lower one is under way before the other begins, and after it has ended."""
    jobs = {"a": ("4", 30), "b": ("2", 400)}
    paths = {f"/{job}/{number}": Answer("x", after=0.05) for job, (_, count) in jobs.items() for number in range(count)}
    fleet.ask("pipelines", "set", "p1", "--tags", "none", "--no-matchonly")
    with GatedSite(paths) as site:
        numbers = {}
        for job, (limit, _) in jobs.items():
            numbers[job] = add_section(fleet, site, tmp_path, job, limit, "--paused")
        fleet.ask("job", "resume", numbers["b"])
        wait_until(lambda: len(site.requests) > 4, "the first is under way")
        fleet.ask("job", "resume", numbers["a"])
        for job, (_, count) in jobs.items():
            assert ended(fleet, numbers[job])["pages"]["captured"] == count
        assert set(site.counts().values()) == {1}
        asked = "".join(path[1] for path in site.requests)
        assert "b" in asked[: asked.index("a")], "the lower limit held before the other job began"
        assert asked.rindex("a") < asked.rindex("b"), "and until it had ended"
        assert site.connections.most <= 2
    fleet.ask("pipelines", "set", "p1", "--tags", "fast,big", "--matchonly")


def test_two_jobs_in_slots_of_one_pipeline_have_the_lower_limit_together(fleet: Fleet, tmp_path: Path) -> None:
    jobs = {"a": ("2", 300), "b": ("3", 60)}
    paths = {f"/{job}/{number}": Answer("x", after=0.05) for job, (_, count) in jobs.items() for number in range(count)}
    options = ("--tags", "big", "--max-slots", "1", "--paused")
    with GatedSite(paths) as site:
        numbers = {job: add_section(fleet, site, tmp_path, job, limit, *options) for job, (limit, _) in jobs.items()}
        for job in jobs:
            fleet.ask("job", "resume", numbers[job])
            wait_until(lambda job=job: any(path[1] == job for path in site.requests), "it is under way")
        for job, (_, count) in jobs.items():
            assert ended(fleet, numbers[job])["pages"]["captured"] == count
        asked = "".join(path[1] for path in site.requests)
        assert asked.index("a") < asked.index("b") < asked.rindex("b") < asked.rindex("a"), "beside each other"
        assert site.connections.most <= 2


def test_a_pipeline_that_leaves_a_job_closes_its_connection_before_the_next_one_opens_its_own(
    fleet: Fleet, tmp_path: Path
) -> None:
    paths = {f"/{job}/{number}": Answer("x", after=0.01) for job in "ab" for number in range(20)}
    paths["/b/3"] = Answer("this takes longer than the next job to begin", after=4)
    with GatedSite(paths) as site:
        jobs = {job: add_section(fleet, site, tmp_path, job, "1", "--paused") for job in "ab"}
        fleet.ask("job", "resume", jobs["b"])
        wait_until(lambda: "/b/3" in site.requests, "the slow page")
        fleet.ask("job", "resume", jobs["a"])
        fleet.ask("pipelines", "lock", "p0", "--job", jobs["a"])
        assert ended(fleet, jobs["a"])["pages"]["captured"] == 20
        fleet.ask("pipelines", "unlock", "p0")
        assert ended(fleet, jobs["b"])["pages"]["captured"] == 20
        assert site.connections.most == 1
        assert set(site.counts().values()) == {1}


def add_section(fleet: Fleet, site: GatedSite, tmp_path: Path, section: str, per_host: str, *options: str) -> str:
    """A job of the pages of a section."""
    file = tmp_path / f"{section}.txt"
    file.write_text("".join(f"{site.url}{path[1:]}\n" for path in site.pages if path[1] == section))
    return fleet.ask("job", "add", "--fetch", str(file), "--no-robots", "--per-host", per_host, *options)
