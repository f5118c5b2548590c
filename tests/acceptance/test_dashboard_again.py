"""A run that ended goes on from the dashboard, by the command that its row of processes keeps."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest
from crawled import run_muniment, wait_until
from tests.support.dashboard import Dashboard
from tests.support.gated_site import Answer, GatedSite

QUIET = ("--quiet", "--no-robots", "--no-sitemaps", "--tries", "1", "--rounds", "0", "--per-host", "2")
PAGES = 40


@pytest.fixture
def site() -> Iterator[GatedSite]:
    links = "".join(f"<a href=/p/{n}>{n}</a>" for n in range(PAGES))
    with GatedSite({"/": links, **{f"/p/{n}": Answer("x", after=0.3) for n in range(PAGES)}}) as made:
        yield made


def card(dashboard: Dashboard, number: int = 1) -> dict[str, Any]:
    found = json.loads(dashboard.ask("GET", f"/v1/jobs/{number}")[2])
    assert isinstance(found, dict)
    return found


def shown(dashboard: Dashboard, name: str, path: str = "/jobs/1") -> str:
    found = re.search(rf'data-testid="{name}"[^>]*>(.*?)</p>', dashboard.ask("GET", path)[2], re.DOTALL)
    return found[1] if found else ""


def test_an_aborted_run_goes_on_where_it_was_given(
    muniment: Any, site: GatedSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MUNIMENT_PROCESSES", str(tmp_path / "processes"))  # a store without other runs
    crawl = muniment.start("crawl", site.url, "-o", "runs/one", *QUIET)
    with Dashboard(tmp_path) as dashboard:  # without a path: what the rows of processes name
        dashboard.sign_in()
        wait_until(lambda: len(site.requests) > 5, "the crawl runs")
        wait_until(lambda: "/jobs/1" in dashboard.ask("GET", "/")[2], "it is found by its row")
        assert shown(dashboard, "restart") == ""
        assert dashboard.post("/jobs/1/abort")[0] == 303
        assert crawl.wait(30) == 3
        assert "Resume gives its command again: <code>muniment crawl" in shown(dashboard, "restart")
        asked = len(site.requests)
        assert dashboard.post("/jobs/1/resume")[1]["location"] == "/jobs/1?done=resume"
        wait_until(lambda: card(dashboard)["state"] == "FINISHED", "it goes on to its end")
        assert len(site.requests) > asked
        assert card(dashboard)["pages"]["captured"] == PAGES + 1
    assert set(site.requests) == {"/", *(f"/p/{n}" for n in range(PAGES))}


@pytest.mark.long
def test_a_run_that_is_still_ending_goes_on_by_one_resume(
    muniment: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MUNIMENT_PROCESSES", str(tmp_path / "processes"))
    links = "".join(f"<a href=/p/{n}>{n}</a>" for n in range(4))
    slow = {f"/p/{n}": Answer("x", after=7) for n in range(4)}
    (tmp_path / "runs").mkdir()
    with GatedSite({"/": links, **slow}) as site, Dashboard(tmp_path, "runs") as dashboard:
        crawl = muniment.start("crawl", site.url, "-o", "runs/one", *QUIET)
        dashboard.sign_in()
        wait_until(lambda: len(site.requests) > 2, "pages are on their way")
        assert dashboard.post("/jobs/1/abort")[0] == 303
        assert crawl.poll() is None, "it has not ended yet"
        assert dashboard.post("/jobs/1/resume")[1].get("location") == "/jobs/1?done=resume"
        assert crawl.wait(60) == 3
        wait_until(lambda: card(dashboard)["state"] == "FINISHED", "it goes on to its end")
        assert card(dashboard)["pages"]["captured"] == 5


def test_what_is_secret_is_named_and_must_be_given_again(site: GatedSite, tmp_path: Path) -> None:
    secret = ("--header", "X-Token: hidden-words", "--max-pages", "3")
    run_muniment(tmp_path, "crawl", site.url, "-o", "runs/one", *QUIET, *secret, code=3)
    with Dashboard(tmp_path, "runs") as dashboard:
        dashboard.sign_in()
        assert dashboard.post("/jobs/1/abort")[0] == 303
        assert dashboard.post("/jobs/1/resume")[1]["location"] == "/jobs/1?done=again"
        text = shown(dashboard, "restart")
        assert "--header is secret, and nothing keeps it" in text and "hidden-words" not in text
        assert card(dashboard)["state"] == "ACTIVE"  # the command that is given again goes on
        assert 'data-state="stopped"' in dashboard.ask("GET", "/jobs/1")[2]


def test_a_run_without_a_row_and_words_that_are_no_url(site: GatedSite, tmp_path: Path) -> None:
    run_muniment(tmp_path, "crawl", site.url, "-o", "runs/one", *QUIET, "--max-pages", "3", code=3)
    (tmp_path / "runs" / "one").rename(tmp_path / "runs" / "moved")
    with Dashboard(tmp_path, "runs") as dashboard:
        dashboard.sign_in()
        assert "no row of its process is kept" in shown(dashboard, "restart")
        for words in ("not a url", "http://", "http://[/", "\0", f"{site.url}\0"):
            status, _, text = dashboard.post("/jobs", urls=words)
            assert status == 422, (words, status, text)
        assert dashboard.post("/jobs", urls=site.url, explanation="a\0b")[0] == 422
        assert len(list((tmp_path / "runs").iterdir())) == 1


def test_the_stream_says_who_changed_a_state(muniment: Any, site: GatedSite, tmp_path: Path) -> None:
    crawl = muniment.start("crawl", site.url, "-o", "runs/one", *QUIET, "--delay", "200")
    with Dashboard(tmp_path, "runs") as dashboard:
        dashboard.sign_in()
        wait_until(lambda: len(site.requests) > 2, "the crawl runs")
        stream = HTTPConnection("127.0.0.1", dashboard.port, timeout=60)
        stream.request("GET", "/v1/events", headers={"Cookie": dashboard.cookie})
        answer = stream.getresponse()
        while not answer.readline().startswith(b"event: jobs"):
            pass
        assert muniment("job", "pause", "-o", "runs/one").code == 0
        while not answer.readline().startswith(b"event: state"):
            pass
        assert answer.readline().startswith(b"id: ")
        told = json.loads(answer.readline().removeprefix(b"data: "))
        assert {**told, "who": ""} == {"job": 1, "from": "running", "to": "paused", "who": ""} and told["who"]
        stream.close()
        assert dashboard.post("/jobs/1/abort")[0] == 303
    assert crawl.wait(30) == 3
