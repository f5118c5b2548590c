"""The lists of the dashboard: sorted jobs with a bar of their responses, a new job with any option, live processes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from crawled import run_muniment, wait_until
from tests.support.chromium import Chromium
from tests.support.dashboard import Dashboard
from tests.support.gated_site import GatedSite

from muniment.control.runs.start import OWN_OPTIONS
from muniment.settings.option_table import options
from muniment.settings.settings_json import option_name

SITE = {"/": "<a href=/one>1</a><a href=/gone>2</a><a href=/slow>3</a>", "/one": "one", "/slow": "slow"}
QUIET = ("--quiet", "--no-robots", "--no-sitemaps", "--tries", "1", "--rounds", "0")


@pytest.fixture
def site() -> Iterator[GatedSite]:
    with GatedSite(SITE, held={"/slow"}) as made:
        yield made


@pytest.fixture
def cwd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A place with processes of its own."""
    monkeypatch.setenv("MUNIMENT_PROCESSES", str(tmp_path / "processes"))
    (tmp_path / "runs").mkdir()
    return tmp_path


def test_jobs_are_sorted_by_a_column_and_back(cwd: Path, site: GatedSite) -> None:
    run_muniment(cwd, "crawl", site.url, "-o", "runs/all", "--ignore", "/slow", *QUIET)
    run_muniment(cwd, "crawl", site.url, "-o", "runs/few", "--page-only", *QUIET)

    def shown(query: str) -> list[str]:
        return re.findall(r'data-job="(\d+)"', dashboard.ask("GET", f"/?{query}")[2])

    with Dashboard(cwd, "runs") as dashboard:
        dashboard.sign_in()
        cards = json.loads(dashboard.ask("GET", "/v1/jobs")[2])["jobs"]
        done = {str(one["id"]): one["pages"]["captured"] + one["pages"]["failed"] for one in cards}
        fewest, most = sorted(done, key=lambda job: done[job])
        assert done[fewest] < done[most]
        assert shown("") == ["2", "1"]
        assert (shown("sort=done"), shown("sort=-done")) == ([fewest, most], [most, fewest])
        assert shown("sort=__class__") == ["2", "1"]
        text = dashboard.ask("GET", "/?sort=-done&state=finished&text=all")[2]
        assert 'aria-sort="descending"><a href="/?text=all&amp;state=finished&amp;sort=done">' in text
        assert shown("sort=-done&text=all") == [most]


def test_a_bar_shows_responses_as_they_come(cwd: Path, site: GatedSite, browser: Chromium, muniment: Any) -> None:
    with Dashboard(cwd, "runs") as dashboard:
        page = browser.page()
        page.goto(dashboard.opened["url"])
        page.wait("document.querySelector('[data-testid=connection]').dataset.state === 'live'")
        process = muniment.start("crawl", site.url, "-o", cwd / "runs" / "one", *QUIET)
        told = "document.querySelector('[data-testid=job-responses]')?.textContent.trim()"
        page.wait(f"{told} === '2xx 2 4xx 1'")
        assert page.run("document.querySelectorAll('svg.bar rect').length") == 2
        site.release("/slow")
        page.wait(f"{told} === '2xx 3 4xx 1'")
        assert process.wait(30) == 0
        page.run("location.reload()")
        page.wait(f"{told}.replace(/\\s+/g, ' ') === '2xx 3 4xx 1'")


def test_any_option_of_a_job_is_a_field_of_the_form(cwd: Path, site: GatedSite) -> None:
    with Dashboard(cwd, "runs") as dashboard:
        dashboard.sign_in()
        form = dashboard.ask("GET", "/")[2].partition('action="/jobs"')[2]
        fields = set(re.findall(r'name="([a-z-]+)"', form))
        assert (
            fields
            == {"urls", "explanation"}
            | {option_name(option) for _, _, _, option in options("crawl") if option.kind == "job"}
            | OWN_OPTIONS
        )
        given = dict.fromkeys(fields, "") | {
            "urls": site.url, "explanation": "why not", "tries": "1", "rounds": "0", "sitemaps": "off", "robots": "off",
            "page-only": "on", "user-agent": "of the form", "workers": "1", "prefix": "form",
        }  # fmt: skip
        body = "&".join(f"{name}={value}" for name, value in given.items()).encode()
        status, headers, text = dashboard.ask("POST", "/jobs", body, Origin=dashboard.origin)
        assert status == 303, text
        path = f"/v1{headers['location'].partition('?')[0]}"
        wait_until(lambda: "settings" in json.loads(dashboard.ask("GET", path)[2]), "the job in its tracker")
        made = json.loads(dashboard.ask("GET", path)[2])
        assert made["settings"] == {
            "tries": 1, "rounds": 0, "sitemaps": False, "robots": False, "page-only": True, "user-agent": "of the form",
        } and made["explanation"] == "why not"  # fmt: skip
        wait_until(lambda: list(cwd.glob("runs/*/form-*.warc.gz")), "a file with the prefix of the form")
        status, _, text = dashboard.post("/jobs", urls=site.url, workers="none at all")
        assert status == 422 and "--workers" in text


def test_processes_are_live(cwd: Path, site: GatedSite, browser: Chromium, muniment: Any) -> None:
    process = muniment.start("crawl", site.url, "-o", cwd / "runs" / "one", *QUIET)
    site.wait_for("/slow")
    with Dashboard(cwd, "runs") as dashboard:
        dashboard.sign_in()
        text = dashboard.ask("GET", "/processes?type=worker&status=running")[2]
        [worker] = re.findall(r'href="(/processes/[0-9a-f-]+)">', text)[:1]
        page = browser.page()
        page.goto(dashboard.new_ticket()["url"])
        page.goto(f"{dashboard.origin}{worker}")
        states = "[...document.querySelectorAll('[data-testid=process]')].map((one) => one.dataset.status).join()"
        assert page.run(states) == "running,running"
        page.run("window.same = true")
        site.release("/slow")
        assert process.wait(30) == 0
        page.wait(f"{states} === 'exited,exited,exited'")
        assert page.run("window.same") is True
        page.wait("document.querySelector('[data-testid=connection]').dataset.state === 'live'")


def test_a_set_of_ignores_goes_and_comes(cwd: Path, site: GatedSite) -> None:
    run_muniment(cwd, "crawl", site.url, "-o", "runs/one", "--ignore", "/slow", *QUIET)
    with Dashboard(cwd, "runs") as dashboard:
        dashboard.sign_in()

        def shown() -> str:
            return dashboard.ask("GET", "/jobs/1/ignores")[2]

        assert "<summary>global: " in shown() and "<option>wordpress</option>" in shown()
        for path, name in (("ignores/remove", "global"), ("ignores", "wordpress")):
            answer = dashboard.ask("POST", f"/jobs/1/{path}", f"set={name}".encode(), Origin=dashboard.origin)
            assert answer[0] == 303, answer
        assert "<summary>wordpress: " in shown() and "<summary>global: " not in shown()
        assert "<bdi>/slow</bdi>" in shown()
