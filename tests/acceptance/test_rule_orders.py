"""What rules order: the user agent of a page, its hops and its requisites; and which pages go first."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.support.gated_site import Answer, GatedSite
from warc_reading import records

from muniment.control.tracker_location import tracker_place
from muniment.control.verbs.delivery import JobDirectory
from muniment.control.verbs.rules import replace_rules
from muniment.http.user_agent import AGENTS
from muniment.model.rule import Rule
from muniment.rules.session_ids import page_key
from muniment.tracker.connect import tracker_to_read
from muniment.tracker.jobs import store as jobs
from muniment.tracker.queue.page_keys import PageKeys
from muniment.tracker.stores.results import ResultStore

QUIET = ("--no-sitemaps", "--tries", 1, "--rounds", 0, "--quiet", "--workers", 1)
FIREFOX = AGENTS["firefox"]


def moved(path: str) -> Answer:
    return Answer("", 302, (("Location", path),))


def results(out: Path, url: str) -> list[tuple[str, str, bytes]]:
    with tracker_to_read(tracker_place(out, None)) as db:
        job = jobs.find_job(db)
        assert job is not None
        (found,) = PageKeys(db, job.job_id).find([page_key(url)])
        return [(one.kind, one.status, one.value) for one in ResultStore(db, job.job_id).of_page(found[1])]


def test_a_page_its_hops_and_its_requisites_are_asked_for_as_a_rule_says(
    muniment: Callable[..., Any], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    pages = {
        "/robots.txt": Answer("User-agent: muniment\nDisallow: /not\nUser-agent: Firefox\nDisallow: /spoofed\n"),
        "/": "<a href=/spoofed>x</a><a href=/plain>x</a><a href=/not>x</a>",
        "/spoofed": moved("/hop"),
        "/hop": moved("/end"),
        "/end": "<link rel=stylesheet href=/s.css><iframe src=/frame></iframe><a href=/next>x</a>",
        "/s.css": "a { background: url(/moved.png) }",
        "/moved.png": moved("/there.png"),
        **dict.fromkeys(("/plain", "/not", "/frame", "/next", "/there.png"), "x"),
    }
    with GatedSite(pages) as site:
        command = ("crawl", site.url, "-o", out, *QUIET)
        assert muniment(*command, "--max-pages", 1).code == 3
        rules = (Rule(regex="/(spoofed|not)$", ua="firefox"),)
        replace_rules(JobDirectory(out, tracker_place(out, None), "me"), rules)
        assert muniment(*command).code == 0
        agents = {
            record.url.removeprefix(site.url): agent_of(record.block)
            for path in sorted(out.glob("*.warc.gz"))
            for record in records(path)
            if record.type == "request"
        }
        spoofed = {path for path, agent in agents.items() if agent == FIREFOX}
        assert spoofed == {"spoofed", "hop", "end", "s.css", "moved.png", "there.png", "frame"}
        assert {path for path, agent in agents.items() if agent.startswith("muniment/")} == {
            "robots.txt", "", "plain", "next",
        }  # fmt: skip
        assert "/not" not in site.requests, "robots.txt is read for the job's own agent"
        assert results(out, f"{site.url}there.png") == [("ua", "done", json.dumps(FIREFOX).encode())]
        assert results(out, f"{site.url}not") == [("ua", "not-run", b"")]
        assert results(out, f"{site.url}next") == []
        assert muniment("check", out).code == 0


def agent_of(request: bytes) -> str:
    lines = request.partition(b"\r\n\r\n")[0].decode().split("\r\n")
    assert lines[1].startswith("Host: ")
    assert lines[2].startswith("User-Agent: "), "where it always stands"
    return lines[2].removeprefix("User-Agent: ")


def test_pages_that_wait_go_first_once_their_nice_value_is_lower(muniment: Callable[..., Any], tmp_path: Path) -> None:
    out = tmp_path / "out"
    late = [f"/late/{n}" for n in range(20)]
    paths = [f"/p{n}" for n in range(60)] + late
    page = "".join(f"<a href={path}>x</a>" for path in paths)
    pages = {"/": page, **dict.fromkeys(paths, "x"), "/late/0": "<img src=/i.png><a href=/late/new>x</a>"}
    pages |= {"/i.png": "x", "/late/new": "x"}
    with GatedSite(pages, held=["/p0"]) as site:
        process = muniment.start("crawl", site.url, "-o", out, *QUIET, "--no-robots", "--per-host", 1)
        site.wait_for("/p0")
        done = muniment("set", "-o", out, "nice=-5", "--prefix", f"{site.url}late/", "--json", MUNIMENT_OPERATOR="Ada")
        assert json.loads(done.stdout) == [{"what": f"nice of {site.url}late/", "before": "", "after": "-5"}]
        assert "nice value -5" in muniment("why", f"{site.url}late/9", "-o", out).stdout
        site.release()
        assert process.wait(30) == 0
        asked = site.requests[site.requests.index("/p0") + 1 :]
        # the image of a page that goes first goes before the rest of these, but for those that the worker holds by then
        assert asked.index("/i.png") < asked.index("/late/9")
        assert set(asked[:22]) == {*late, "/i.png", "/late/new"}
        again = muniment("set", "-o", out, "nice=1", "--host", "127.0.0.1")
        assert (again.code, "finished" in again.stderr) == (2, True)


def test_a_nice_value_is_kept_for_the_next_run(muniment: Callable[..., Any], tmp_path: Path) -> None:
    out = tmp_path / "out"
    paths = [f"/p{n}" for n in range(9)]
    with GatedSite({"/": "".join(f"<a href={p}>x</a>" for p in paths), **dict.fromkeys(paths, "x")}) as site:
        command = ("crawl", site.url, "-o", out, *QUIET, "--no-robots", "--per-host", 1)
        assert muniment(*command, "--max-pages", 1).code == 3
        assert muniment("set", "-o", out, "nice=-1", "--prefix", f"{site.url}p8").code == 0
        assert muniment("set", "-o", out, "nice=1", "--prefix", f"{site.url}p0").stdout.endswith("p0: - -> 1\n")
        assert muniment(*command).code == 0
        assert site.requests == ["/", "/p8", *paths[1:8], "/p0"]


def test_wrong_use_of_nice_is_told(muniment: Callable[..., Any], tmp_path: Path) -> None:
    out = tmp_path / "out"
    with GatedSite({"/": "x"}) as site:
        assert muniment("crawl", site.url, "-o", out, *QUIET).code == 0
    for wrong, told in (
        (("nice=1",), "name one of them"),
        (("nice=x", "--host", "a.example"), "not a whole number"),
        (("nice=1", "delay=5", "--host", "a.example"), "alone"),
        (("delay=5", "--host", "a.example"), "for nice=N alone"),
    ):
        done = muniment("set", "-o", out, *wrong)
        assert (done.code, told in done.stderr or "finished" in done.stderr) == (2, True), done.stderr
