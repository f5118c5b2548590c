"""What the dashboard says of jobs that wait or have ended: causes in words, hosts, and which actions are left."""

from __future__ import annotations

import fcntl
import re
import time
from pathlib import Path
from typing import Any

import pytest
from crawled import run_muniment, wait_until
from tests.support.chromium import Chromium
from tests.support.dashboard import Dashboard
from tests.support.gated_site import Answer, GatedSite
from tests.support.nginx import closed_port

LINKS = "".join(f"<a href=/p/{n}>{n}</a>" for n in range(9))
QUIET = ("--quiet", "--no-sitemaps", "--workers", "1")
BUSY = Answer("", 503, (("Retry-After", "600"),))


def reason_of(dashboard: Dashboard, job: int = 1) -> str:
    found = re.search('data-field="reason">([^<]*)<', dashboard.ask("GET", f"/jobs/{job}")[2])
    assert found is not None
    return found[1]


@pytest.mark.parametrize(
    ("answer", "options", "words"),
    [
        (Answer("x"), ("--delay", "300000", "--per-host", "1"), r"it waits for the delay: a host is asked every 300 s"),
        (BUSY, (), r"1 of 1 hosts left alone until [0-9:]{8} UTC \(503 with Retry-After\)"),
    ],
    ids=["delay", "retry-after"],
)
def test_what_a_crawl_waits_for(
    muniment: Any, tmp_path: Path, answer: Answer, options: tuple[str, ...], words: str
) -> None:
    with GatedSite({"/": LINKS, **{f"/p/{n}": answer for n in range(9)}}) as site:
        out = tmp_path / "runs" / "one"
        crawl = muniment.start("crawl", site.url, "-o", out, "--no-robots", *QUIET, *options)
        wait_until((out / "tracker.sqlite").exists, "the crawl begins")
        with Dashboard(tmp_path, "runs") as dashboard:
            dashboard.sign_in()
            wait_until(lambda: re.fullmatch(words, reason_of(dashboard)), f"it says {words}")
            assert dashboard.post("/jobs/1/pause")[0] == 303
            wait_until(lambda: re.search(r'data-state="paused"', dashboard.ask("GET", "/jobs/1")[2]), "it is paused")
            assert dashboard.post("/jobs/1/abort")[0] == 303
        assert crawl.wait(30) == 3


def test_the_page_of_a_run_that_begins_comes_by_itself(browser: Chromium, tmp_path: Path) -> None:
    out = tmp_path / "runs" / "one"
    with GatedSite({"/": "x"}) as site:
        run_muniment(tmp_path, "crawl", site.url, "-o", out, "--no-robots", *QUIET)
    (out / "tracker.sqlite").rename(tmp_path / "kept")
    with (out / "crawl.jsonl").open() as log, Dashboard(tmp_path, "runs") as dashboard:
        fcntl.flock(log, fcntl.LOCK_EX)  # as a run does before it makes its tracker
        page = browser.page()
        page.goto(dashboard.opened["url"])
        page.goto(f"{dashboard.origin}/jobs/1")
        assert "the run begins" in page.run("document.querySelector('[data-testid=error]').textContent")
        (tmp_path / "kept").rename(out / "tracker.sqlite")
        page.wait("document.querySelector('[data-testid=job-done]')?.textContent === '1'")


def test_hosts_say_their_robots_txt_and_why_they_are_given_up(tmp_path: Path) -> None:
    with GatedSite({"/robots.txt": "User-agent: *\nDisallow: /secret\n", "/": "<a href=/a>a</a>"}) as site:
        dead = f"http://127.0.0.9:{closed_port()}"
        starts = [site.url, *(f"{dead}/{n}" for n in range(12))]
        run_muniment(tmp_path, "crawl", *starts, "-o", "runs/one", *QUIET, "--tries", "1", "--rounds", "0")
    with Dashboard(tmp_path, "runs") as dashboard:
        dashboard.sign_in()
        text = dashboard.ask("GET", "/jobs/1/hosts")[2]
        rows = dict(re.findall(r'data-testid="host-row" data-host="([^"]+)"(.*?)</tr>', text, re.DOTALL))
        assert re.search(r'host-robots">200<', rows["127.0.0.1"]) and 'host-dead">–<' in rows["127.0.0.1"]
        assert re.search(r'host-dead">dead-host: [^<]+<', rows["127.0.0.9"]), rows["127.0.0.9"]
        assert 'host-robots">not asked for<' in rows["127.0.0.9"]


def test_what_can_be_done_to_a_job_that_is_over(muniment: Any, tmp_path: Path) -> None:
    with GatedSite({"/": LINKS, **{f"/p/{n}": Answer("x", after=0.2) for n in range(9)}}) as site:
        run_muniment(tmp_path, "crawl", f"{site.url}p/1", "-o", "runs/done", "--no-robots", *QUIET, "--page-only")
        time.sleep(1.1)  # their numbers are by age, in seconds
        limited = muniment("crawl", site.url, "-o", tmp_path / "runs" / "part", "--no-robots", *QUIET, "--max-pages", 3)
        assert limited.code == 3
        with Dashboard(tmp_path, "runs") as dashboard:
            dashboard.sign_in()
            text = dashboard.ask("GET", "/jobs/1")[2]
            assert 'data-state="finished"' in text and "action-" not in text
            assert "limit: --max-pages" in reason_of(dashboard, 2)
            text = dashboard.ask("GET", "/jobs/2")[2]
            assert 'data-state="stopped"' in text and "action-pause" in text and "action-abort" in text
            assert dashboard.post("/jobs/2/abort")[0] == 303
            text = dashboard.ask("GET", "/jobs/2")[2]
            assert 'data-state="aborted"' in text and "action-resume" in text
            assert "action-pause" not in text and "action-abort" not in text
