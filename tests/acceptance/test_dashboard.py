"""`muniment dashboard` in Debian's Chromium: a crawl beside it is seen, steered and its log streams."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from crawled import wait_until
from tests.support.chromium import BrowserPage, Chromium
from tests.support.dashboard import Dashboard
from tests.support.gated_site import Answer, GatedSite

PAGES = 1500


def slow_site() -> dict[str, Any]:
    """A page with many links, each of which takes a moment."""
    links = "".join(f"<a href=/p/{n}>{n}</a>" for n in range(PAGES))
    return {"/": links, **{f"/p/{n}": Answer(f"<title>{n}</title>", after=0.15) for n in range(PAGES)}}


@pytest.fixture
def site() -> Iterator[GatedSite]:
    with GatedSite(slow_site()) as made:
        yield made


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    made = tmp_path / "runs"
    made.mkdir()
    return made


@pytest.fixture
def dashboard(tmp_path: Path, runs: Path) -> Iterator[Dashboard]:
    with Dashboard(tmp_path, "runs") as made:
        yield made


def named(name: str) -> str:
    return f"document.querySelector('[data-testid={name}]')"


def click(page: BrowserPage, name: str) -> None:
    page.run(f"{named(name)}.click()")


def is_quiet(site: GatedSite, seconds: float = 1.0) -> bool:
    """Whether nobody asks for that long."""
    before = len(site.requests)
    time.sleep(seconds)
    return len(site.requests) == before


def crawl(muniment: Any, site: GatedSite, out: Path, *more: object) -> Any:
    return muniment.start("crawl", site.url, "-o", out, "--quiet", "--no-robots", "--no-sitemaps", *more)


def test_a_job_beside_it_is_seen_and_steered(
    muniment: Any, site: GatedSite, runs: Path, dashboard: Dashboard, browser: Chromium
) -> None:
    page = browser.page()
    page.goto(dashboard.opened["url"])
    page.wait(f"{named('connection')}.dataset.state === 'live'")
    process = crawl(muniment, site, runs / "one")
    page.wait(f"{named('job')}?.dataset.state === 'running' && Number({named('job-done')}.firstChild.value) > 3")
    assert page.run(f"{named('job-url')}.textContent") == site.url
    page.run(f"{named('job-url')}.click()")
    page.wait(f"{named('log')} && {named('connection')}.dataset.state === 'live'")
    lines = page.run("document.querySelectorAll('[data-testid=log-line]').length")
    page.wait(f"document.querySelectorAll('[data-testid=log-line]').length > {lines} + 5")
    assert page.run(
        "[...document.querySelectorAll('[data-testid=log-line]')].some((one) => one.dataset.status === '200')"
    )

    click(page, "action-pause")
    page.wait(f"!!{named('flash')} && {named('job')}.dataset.state === 'paused'")
    wait_until(lambda: is_quiet(site), "no request after the pause")
    click(page, "action-resume")
    page.wait(f"{named('flash')}?.textContent === 'Resumed.' && {named('job')}.dataset.state === 'running'")
    before = len(site.requests)
    wait_until(lambda: len(site.requests) > before, "requests after resuming")

    page.wait(f"!!{named('settings-submit')}")
    page.run(f"{named('setting-per-host')}.value = '2'; {named('settings-submit')}.click()")
    page.wait(
        "[...document.querySelectorAll('[data-testid=audit-row]')].some((row) => row.innerText.includes('per-host'))"
    )
    click(page, "action-abort")
    click(page, "action-abort-confirm")
    page.wait(f"{named('job')}.dataset.state === 'aborted'")
    assert process.wait(30) == 3


def test_all_of_it_without_script(
    muniment: Any, site: GatedSite, runs: Path, dashboard: Dashboard, browser: Chromium
) -> None:
    process = crawl(muniment, site, runs / "one")
    wait_until(lambda: len(site.requests) > 5, "the crawl runs")
    page = browser.page()
    page.goto(dashboard.opened["url"])
    page.without_script()
    page.goto(f"{dashboard.origin}/jobs/1")
    click(page, "action-pause")
    page.wait(f"{named('job')}?.dataset.state === 'paused'")
    wait_until(lambda: is_quiet(site), "no request after the pause")
    page.goto(f"{dashboard.origin}/jobs/1/ignores")
    page.run(f"{named('ignore-input')}.value = '/p/[0-9]*[13579]$'; {named('ignore-add')}.click()")
    page.wait(f"!!{named('ignore-remove')} && !!{named('flash')}")
    page.goto(f"{dashboard.origin}/jobs/1")
    asked = len(site.requests)
    click(page, "action-resume")
    page.wait(f"{named('job')}?.dataset.state === 'running'")
    wait_until(lambda: len(site.requests) > asked + 10, "requests after resuming")
    odd = [path for path in site.requests[asked:] if path.startswith("/p/") and int(path[3:]) % 2]
    assert odd == []
    click(page, "action-abort-confirm")
    page.wait(f"{named('job')}?.dataset.state === 'aborted'")
    assert process.wait(30) == 3


def test_a_job_begun_in_the_browser(site: GatedSite, dashboard: Dashboard, browser: Chromium, runs: Path) -> None:
    page = browser.page()
    page.goto(dashboard.opened["url"])
    page.run(f"{named('new-job-url')}.value = 'ftp://example.com'; {named('new-job-submit')}.click()")
    assert "ftp://example.com" in page.wait(f"{named('error')}?.textContent")
    page.goto(dashboard.origin)
    page.run(f"{named('new-job-url')}.value = '{site.url}'; {named('new-job-note')}.value = 'a <b>note</b>'")
    page.run(
        "document.querySelector('[name=max-pages]').value = '3'; document.querySelector('[name=robots]').value = 'off'"
    )
    click(page, "new-job-submit")
    page.wait(f"{named('job-note')}?.textContent === 'a <b>note</b>'")
    page.wait(f"{named('job')}.dataset.state === 'stopped'")
    [out] = runs.iterdir()
    wait_until(lambda: '"event":"finish"' in (out / "crawl.jsonl").read_text(), "the crawl ends")


def test_who_may_come_in(dashboard: Dashboard, muniment: Any, site: GatedSite, runs: Path) -> None:
    process = crawl(muniment, site, runs / "one")
    wait_until(lambda: len(site.requests) > 2, "the crawl runs")
    assert dashboard.ask("GET", "/")[0] == 401
    assert dashboard.ask("GET", "/v1/events")[0] == 401
    dashboard.sign_in()
    assert dashboard.ask("GET", dashboard.opened["url"].removeprefix(dashboard.origin))[0] == 401, "a ticket works once"
    again = dashboard.new_ticket()
    assert dashboard.ask("GET", again["url"].removeprefix(dashboard.origin))[0] == 303
    status, headers, text = dashboard.ask("GET", "/")
    assert status == 200 and "one" in text
    assert "default-src 'none'" in headers["content-security-policy"]
    assert headers["referrer-policy"] == "same-origin" and headers["cache-control"] == "no-store"

    assert dashboard.ask("GET", "/", Host="evil.example")[0] == 421
    assert dashboard.ask("POST", "/jobs/1/pause", b"", Origin="http://evil.example")[0] == 403
    assert dashboard.ask("POST", "/jobs/1/pause", b"", Origin=f"http://127.0.0.1:{dashboard.port + 1}")[0] == 403
    assert dashboard.ask("POST", "/jobs/1/pause", b"", Sec_Fetch_Site="same-site")[0] == 403
    assert dashboard.ask("POST", "/jobs/1/pause", b"")[0] == 403
    assert dashboard.ask("GET", "/jobs/1/pause")[0] == 405
    cookie, dashboard.cookie = dashboard.cookie, ""
    assert dashboard.post("/jobs/1/pause")[0] == 401
    dashboard.cookie = cookie
    assert 'data-state="running"' in dashboard.ask("GET", "/jobs/1")[2], "nothing of that changed anything"

    assert dashboard.post("/jobs/1/abort")[0] == 303
    assert process.wait(30) == 3
    assert dashboard.post("/logout")[0] == 200
    assert dashboard.ask("GET", "/", Cookie=cookie)[0] == 401, "the session is over"


def test_a_tab_survives_a_restart_and_shows_no_line_twice(
    muniment: Any, site: GatedSite, runs: Path, tmp_path: Path, browser: Chromium
) -> None:
    page = browser.page()
    process = crawl(muniment, site, runs / "one", "--delay", "200")
    wait_until(lambda: len(site.requests) > 2, "the crawl runs")
    with Dashboard(tmp_path, "runs") as first:
        port = first.port
        page.goto(first.opened["url"])
        page.goto(f"{first.origin}/jobs/1")
        page.wait(f"{named('connection')}.dataset.state === 'live'")
        page.run("window.sameTab = true")
        page.wait("document.querySelectorAll('[data-testid=log-line]').length > 8")
    page.wait(f"{named('connection')}.dataset.state === 'waiting'")
    with Dashboard(tmp_path, "runs", port=port) as second:
        page.wait(f"{named('connection')}.dataset.state === 'live'")
        before = page.run("document.querySelectorAll('[data-testid=log-line]').length")
        page.wait(f"document.querySelectorAll('[data-testid=log-line]').length > {before} + 10")
        second.sign_in()
        assert second.post("/jobs/1/abort")[0] == 303
        assert process.wait(30) == 3
        page.wait("[...document.querySelectorAll('[data-kind=finish]')].length === 1")
        assert page.run("window.sameTab")
        shown = page.run(
            "[...document.querySelectorAll('[data-testid=log-line]')].map((one) => one.querySelector('a')?.textContent)"
        )
        urls = [one for one in shown if one]
        assert len(urls) == len(set(urls))
        logged = [json.loads(line) for line in (runs / "one" / "crawl.jsonl").read_text().splitlines()]
        assert sorted(urls) == sorted(one["url"] for one in logged if one.get("url")), "and none is missing"


def test_wrong_use(muniment: Any, tmp_path: Path) -> None:
    done = muniment("dashboard", tmp_path / "none", "--no-open")
    assert done.code == 2 and "not a directory" in done.stderr
    with Dashboard(tmp_path, tmp_path) as there:
        done = muniment("dashboard", tmp_path, "--no-open", "--port", there.port)
        assert done.code == 2 and "choose another with --port" in done.stderr
        assert there.end() == (0, "")
