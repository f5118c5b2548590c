"""The pages of a crawl of a hostile site: queue, hosts, captures, processes, ignores, and the API."""

from __future__ import annotations

import json
import re
import socket
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from crawled import run_muniment
from tests.support.chromium import Chromium
from tests.support.dashboard import Dashboard, Reply
from tests.support.disks import fill, small_disk
from tests.support.gated_site import Answer, GatedSite

pytestmark = pytest.mark.long  # its tests stay together

MARKUP = "<img src=x onerror=window.hit=1><script>window.hit=1</script>\u202e\u200b"
HOSTILE = "/x?%22%3E%3Cscript%3Ewindow.hit=1%3C/script%3E'&lt;"
SITE: dict[str, Any] = {
    "/": f'<title>{MARKUP}</title><a href=/a>a</a><a href=/gone>g</a><a href="{HOSTILE}">x</a><a href=/r>r</a>'
    "<a href=/broken>b</a>",
    "/a": "<p>the body of a</p>",
    HOSTILE: Answer("<p>odd", headers=(("Content-Type", 'text/html;"><script>window.hit=1</script>'),)),
    "/r": Answer("", 302, (("Location", "/x?<script>window.hit=1</script>"),)),
    "/broken": Answer("", 500),
}
AXE = Path(__file__).parents[2] / ".axe" / "axe.min.js"
RULES = "['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa']"
THEMES = {"light": (RULES, 5), "dark": ("['color-contrast']", 0)}
"""What is looked for in each, and the rules that find something to look at: the second has other colours alone."""
PAGES = ("/", "/jobs/1", "/jobs/1/log", "/jobs/1/queue", "/jobs/1/ignores", "/jobs/1/hosts", "/captures", "/processes")

NAMES = {
    "/": "jobs job job-url job-state job-done job-queued job-rate job-bytes job-errors job-by job-note filter-text "
    "filter-state new-job-url new-job-note new-job-submit connection logout",
    "/jobs/1": "settings-submit setting-per-host setting-delay audit plot-rate plot-status plot-hosts plot-rate-table "
    "plot-status-table plot-hosts-table log log-line log-pause log-level log-filter log-skipped log-download",
    "/jobs/1/ignores": "ignore-input ignore-test ignore-add ignore ignore-remove",
    "/jobs/1/queue": "search-input search-submit",
    "/jobs/1/hosts": "host-row",
    "/jobs/1/log": "log log-line log-level log-filter log-download",
    "/captures": "capture capture-view capture-raw search-input search-submit",
    "/processes": "process search-input search-submit",
}
"""By page: the names of a job that has ended."""
STEERED = "action-pause action-resume action-abort action-abort-confirm"
OF_A_PROCESS = "process process-kill process-kill-confirm process-output"


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Dashboard, str]]:
    cwd = tmp_path_factory.mktemp("dashboard")
    with GatedSite(SITE) as site:
        quiet = ("--quiet", "--no-robots", "--no-sitemaps", "--tries", "1", "--rounds", "0")
        run_muniment(cwd, "crawl", site.url, "-o", "runs/one", "--ignore", "nothing/here", *quiet)
        url = site.url
    with Dashboard(cwd, "runs") as dashboard:
        dashboard.sign_in()
        yield dashboard, url


def test_every_name_that_is_promised_is_there(muniment: Any, shown: tuple[Dashboard, str], tmp_path: Path) -> None:
    dashboard, _ = shown
    for path, names in NAMES.items():
        assert set(names.split()) <= (there := names_on(dashboard.ask("GET", path))), (path, set(names.split()) - there)
    assert "ignore-effect" in names_on(dashboard.post("/jobs/1/ignores/test", pattern="/a$"))
    assert "ignore-error" in names_on(dashboard.post("/jobs/1/ignores/test", pattern="("))
    assert "error" in names_on(dashboard.ask("GET", "/jobs/77"))
    assert dashboard.post("/processes/nobody/kill")[0] == 404
    with GatedSite({"/": "<a href=/late>late</a><a href=/next>next</a>", "/late": "x"}, held={"/late"}) as site:
        quiet = ("--quiet", "--no-robots", "--no-sitemaps", "--per-host", "1", "--tries", "1", "--rounds", "0")
        with muniment.start("crawl", site.url, "-o", "runs/one", *quiet) as crawl:
            site.wait_for("/late")
            with Dashboard(tmp_path, "runs") as other:
                other.sign_in()
                check_names_of_a_run(other)
            site.release()
            assert crawl.wait(60) == 0


def check_names_of_a_run(dashboard: Dashboard) -> None:
    assert set(STEERED.split()) <= names_on(dashboard.ask("GET", "/jobs/1"))
    assert "queue-row" in names_on(dashboard.ask("GET", "/jobs/1/queue"))
    me, *_ = json.loads(dashboard.ask("GET", "/v1/processes?type=worker&status=running&q=worker")[2])["processes"]
    assert set(OF_A_PROCESS.split()) <= names_on(dashboard.ask("GET", f"/processes/{me['id']}"))
    assert dashboard.post("/jobs/1/settings", explanation="words")[0] == 303
    assert {"flash", "audit-row"} <= names_on(dashboard.ask("GET", "/jobs/1?done=settings"))


def names_on(reply: tuple[int, dict[str, str], str]) -> set[str]:
    """The names of a page that tests may rely on."""
    return set(re.findall('data-testid="([^"]+)"', reply[2]))


def test_captures_are_searched_and_their_bytes_are_downloads(shown: tuple[Dashboard, str]) -> None:
    dashboard, url = shown
    found = json.loads(dashboard.ask("GET", "/v1/captures?status=4xx")[2])["captures"]
    assert [one["url"] for one in found if not one["url"].endswith(">")] and all(one["status"] == 404 for one in found)
    [row] = json.loads(dashboard.ask("GET", f"/v1/captures?q={url}a&type=text/html&job=1")[2])["captures"]
    place = f"file={row['warc_file']}&offset={row['warc_offset']}"
    status, headers, raw = dashboard.ask("GET", f"/jobs/1/raw?{place}")
    assert (status, raw) == (200, "<p>the body of a</p>")
    assert headers["content-disposition"].startswith("attachment") and "sandbox" in headers["content-security-policy"]
    record = dashboard.ask("GET", f"/jobs/1/record?{place}")[2]
    assert record.startswith("WARC/1.1") and f"WARC-Target-URI: {url}a" in record
    for odd in ("file=../one/tracker.sqlite&offset=0", "file=x.warc.gz&offset=0", f"file={row['warc_file']}&offset=1"):
        assert dashboard.ask("GET", f"/jobs/1/raw?{odd}")[0] == 404, odd
    for odd in ("status=bad", "from=yesterday", "job=x"):
        status, _, text = dashboard.ask("GET", f"/captures?{odd}")
        assert status == 422 and 'data-testid="error"' in text


def test_every_page_executes_nothing_of_the_site(shown: tuple[Dashboard, str], browser: Chromium) -> None:
    dashboard, url = shown
    page = browser.page()
    page.goto(dashboard.new_ticket()["url"])
    page.run("addEventListener('securitypolicyviolation', () => { window.hit = 2 })")
    why = f"/jobs/1/why?url={url}x%3F%3Cscript%3Ewindow.hit=1%3C/script%3E"
    for path in (*PAGES, why, "/captures?q=%22%3E%3Cscript%3Ewindow.hit=1%3C/script%3E", "/jobs/1?q=%3Cscript%3E"):
        page.goto(f"{dashboard.origin}{path}")
        page.wait("document.readyState === 'complete'")
        assert page.run("window.hit ?? 0") == 0, path
        assert page.run("document.querySelectorAll('main script, main img, [onerror]').length") == 0, path
        assert page.run("[...document.links].every((one) => /^https?:/.test(one.href))"), path
        text = dashboard.ask("GET", path)[2]
        assert "\u202e" not in text and "<script>window" not in text, path


def test_nothing_is_wider_than_a_phone(shown: tuple[Dashboard, str], browser: Chromium) -> None:
    dashboard, _ = shown
    page = browser.page(360, 800)
    page.goto(dashboard.new_ticket()["url"])
    for path in PAGES:
        page.goto(f"{dashboard.origin}{path}")
        assert page.run("document.documentElement.scrollWidth") <= 360, path
        lines = "[...document.querySelectorAll('[data-testid=log-line]')]"
        assert page.run(f"{lines}.filter((one) => one.scrollWidth > one.clientWidth).length") == 0, path


def test_the_log_begins_at_its_end_and_is_held_by_scrolling(shown: tuple[Dashboard, str], browser: Chromium) -> None:
    dashboard, _ = shown
    page = browser.page(360, 800)
    page.goto(dashboard.new_ticket()["url"])
    page.goto(f"{dashboard.origin}/jobs/1")
    page.run("log.scrollIntoView()")
    page.wait("log.lastElementChild.lastElementChild.getBoundingClientRect().height > 20")  # it has come into view
    below = "log.lastElementChild.lastElementChild.getBoundingClientRect().bottom - log.getBoundingClientRect().bottom"
    assert page.run(below) <= 0 and page.run("log.scrollHeight > log.clientHeight + 100")
    page.run("log.scrollTop = -90")
    page.wait("document.getElementById('log-pause').getAttribute('aria-pressed') === 'true'")
    page.run("document.getElementById('log-pause').click()")
    page.wait(f"log.scrollTop === 0 && {below} <= 0")


def test_nothing_keeps_anybody_from_using_the_pages(shown: tuple[Dashboard, str], browser: Chromium) -> None:
    dashboard, url = shown
    checker = AXE.read_text()
    page = browser.page()
    page.goto(dashboard.new_ticket()["url"])
    for theme, (rules, least) in THEMES.items():
        page.run(f"document.cookie = 'theme={theme}; path=/'")
        [process] = re.findall(r'href="(/processes/[0-9a-f-]+)"', dashboard.ask("GET", "/processes")[2])[:1]
        of_a_url = f"/jobs/1/why?url={url}a", f"/jobs/1/results?url={url}a"
        for path in (*PAGES, *of_a_url, process, "/jobs/9", "/nowhere", "/jobs/1/ignores/test", "/login"):
            page.goto(f"{dashboard.origin}{path}")
            page.run(f"{checker}; true")
            found = page.run(
                f"axe.run(document, {{runOnly: {rules}}}).then((told) => [told.passes.length, told.violations])"
            )
            serious = [(one["id"], one["nodes"][0]["html"]) for one in found[1]]
            assert found[0] > least and serious == [], (theme, path)


def test_all_of_it_by_keyboard(shown: tuple[Dashboard, str], browser: Chromium) -> None:
    dashboard, _ = shown
    page = browser.page()
    page.goto(dashboard.new_ticket()["url"])
    page.goto(f"{dashboard.origin}/captures")

    def press(key: str) -> str:
        """What has the focus after a key."""
        page.press(key)
        return str(page.run("document.activeElement.textContent || document.activeElement.name"))

    first = press("j")
    second = press("j")
    assert first != second and press("k") == first, "rows"
    outline = page.run("getComputedStyle(document.activeElement).outlineStyle")
    assert outline != "none", "the focus is seen"
    assert press("/") == "q"
    assert press("j") == "q" and page.run("document.activeElement.value") == "j", "a field takes letters"
    press("Escape")
    assert page.run("document.activeElement === document.body")
    press("?")
    assert page.run("document.getElementById('keys').open")
    press("Escape")
    assert not page.run("document.getElementById('keys').open")


def test_what_is_missing_locked_or_dead_is_one_line(shown: tuple[Dashboard, str], tmp_path: Path) -> None:
    with GatedSite({"/": "<a href=/a>a</a>", "/a": "a"}) as site:
        run_muniment(tmp_path, "crawl", site.url, "-o", "runs/one", "--quiet", "--no-robots", "--no-sitemaps")
        out = tmp_path / "runs" / "one"
        with Dashboard(tmp_path, "runs") as dashboard:
            dashboard.sign_in()
            tracker = out / "tracker.sqlite"
            bad = socket.socket(socket.AF_UNIX)
            (out / "parts").mkdir(exist_ok=True)
            bad.bind(str(out / "parts" / "control"))  # a socket whose owner is gone
            bad.close()
            for action in ("pause", "resume", "abort"):
                told_in_one_line(dashboard.post(f"/jobs/1/{action}"))
            with closing(sqlite3.connect(tracker)) as holder:
                holder.execute("BEGIN EXCLUSIVE")
                for path in PAGES:
                    told_in_one_line(dashboard.ask("GET", path))
                holder.rollback()
            tracker.write_bytes(b"not a database, whatever it is called" * 200)
            for path in PAGES:
                told_in_one_line(dashboard.ask("GET", path))
            tracker.unlink()
            for path in PAGES:
                told_in_one_line(dashboard.ask("GET", path))


def test_a_full_disk_is_one_line(tmp_path: Path) -> None:
    with small_disk(tmp_path / "runs", 30) as disk, GatedSite({"/": "<a href=/a>a</a>", "/a": "a"}) as site:
        quiet = ("--quiet", "--no-robots", "--no-sitemaps", "--min-free", "0", "--max-pages", "1")
        run_muniment(tmp_path, "crawl", site.url, "-o", "runs/one", *quiet, code=3)
        with Dashboard(tmp_path, "runs") as dashboard:
            dashboard.sign_in()
            ballast = fill(disk)
            for path in PAGES:
                told_in_one_line(dashboard.ask("GET", path))
            told_in_one_line(dashboard.post("/jobs/1/ignores", pattern="x" * 9000))
            told_in_one_line(dashboard.post("/jobs", url=site.url))
            told_in_one_line(dashboard.post("/jobs/1/abort"))
            ballast.unlink()
            assert dashboard.post("/jobs/1/ignores", pattern="/never/")[0] == 303, "there is room again"


def told_in_one_line(reply: Reply) -> None:
    """The page, a way back to it, or one that says in one line why not; never a fault of the server."""
    status, _, text = reply
    assert status in {200, 303, 404, 422, 503}, (status, text)
    if status not in {200, 303}:
        said = re.findall(r'data-testid="error" role="alert">([^<]+)<', text)
        assert len(said) == 1 and "internal" not in said[0] and "the server failed" not in said[0], text


def test_a_capture_is_viewed(shown: tuple[Dashboard, str], browser: Chromium) -> None:
    dashboard, url = shown
    assert 'data-testid="capture-view"' in dashboard.ask("GET", f"/captures?q={url}a")[2]
    [row] = json.loads(dashboard.ask("GET", f"/v1/captures?q={url}a&type=text/html")[2])["captures"]
    status, _, text = dashboard.post("/jobs/1/view", url=row["url"], at=str(row["fetched_at"]))
    found = re.search('data-testid="view-open" href="([^"]+)"', text)
    assert status == 200 and found is not None, text
    assert not found[1].startswith(dashboard.origin)
    page = browser.page()
    page.goto(found[1])
    page.frame("mp_/").wait("document.body.innerText.includes('the body of a')")


def test_a_pattern_is_tried_before_it_is_added(shown: tuple[Dashboard, str]) -> None:
    dashboard, _ = shown
    text = dashboard.post("/jobs/1/ignores/test", pattern="/gone|/a$")[2]
    assert re.search(r'ignore-effect" class="panel" data-pending="0" data-recent="2"', text), text
    assert 'data-testid="ignore-error"' in dashboard.post("/jobs/1/ignores/test", pattern="(")[2]
    assert "nothing/here" in dashboard.ask("GET", "/jobs/1/ignores")[2]
    told = dashboard.ask("POST", "/v1/jobs/1/ignores/test", b'{"pattern":"/a$"}', Origin=dashboard.origin)[2]
    assert json.loads(told) == {"valid": True, "error": "", "pending": 0, "sample": [], "recent": 1}
    status, _, text = dashboard.post("/jobs/1/ignores", pattern="/a$")
    assert status == 422 and "is finished" in text, "one clear line"


def test_the_api_of_local_runs(shown: tuple[Dashboard, str], tmp_path: Path) -> None:
    dashboard, url = shown
    [job] = json.loads(dashboard.ask("GET", "/v1/jobs")[2])["jobs"]
    assert (job["id"], job["state"], job["pages"]["pending"]) == (1, "FINISHED", 0)
    assert json.loads(dashboard.ask("GET", "/v1/jobs/1")[2]) == job
    status, _, text = dashboard.ask("GET", "/v1/jobs/77")
    assert status == 404 and json.loads(text)["error"]["code"] == "not-found"
    [page] = json.loads(dashboard.ask("GET", f"/v1/jobs/1/pages?url={url}a")[2])["pages"]
    assert page["status"] == 200
    assert dashboard.ask("PATCH", "/v1/jobs/1", b"[]", Origin=dashboard.origin)[0] == 422
    assert json.loads(dashboard.ask("GET", f"/v1/jobs/1/results?url={url}a")[2]) == {"results": [], "next": None}
    assert json.loads(dashboard.ask("GET", "/v1/jobs/1/rules")[2])["rules"] == []
    for name, body, status in (
        ("rules/dry-run", b'{"rules":[{"regex":"/a$","skip":true}]}', 200), ("stash", b'{"host":"other"}', 422),
        ("nice", b'{"host":"a","nice":1}', 422), ("fail", b'{"reason":"x"}', 422), ("unstash", b'{}', 200),
    ):  # fmt: skip
        answer = dashboard.ask("POST", f"/v1/jobs/1/{name}", body, Origin=dashboard.origin)
        assert answer[0] == status and ("error" in json.loads(answer[2])) == (status == 422), (name, answer)
    rows = json.loads(dashboard.ask("GET", "/v1/processes?type=cli")[2])["processes"]
    assert any(row["label"] == "dashboard" for row in rows)


def test_results_begin_with_the_attempts(shown: tuple[Dashboard, str]) -> None:
    dashboard, url = shown
    text = dashboard.ask("GET", f"/jobs/1/results?url={url}broken")[2]
    assert 'data-testid="attempts"' in text and "<dt>Last status</dt><dd>500" in text
    assert 'data-testid="attempts"' not in dashboard.ask("GET", f"/jobs/1/results?url={url}never")[2]


def test_processes(shown: tuple[Dashboard, str]) -> None:
    dashboard, _ = shown
    text = dashboard.ask("GET", "/processes?type=cli&status=running&q=dashboard")[2]
    process = re.search(r'data-process="([0-9a-f]+)" data-status="running"', text)
    assert process is not None
    text = dashboard.ask("GET", f"/processes/{process[1]}")[2]
    assert 'data-testid="process-kill"' in text and f'data-process="{process[1]}"' in text
    assert dashboard.ask("GET", "/processes/ffffffff")[0] == 404
    assert dashboard.ask("GET", "/processes?status=odd")[0] == 422


def test_a_dashboard_that_only_looks(tmp_path: Path, shown: tuple[Dashboard, str]) -> None:
    first, _ = shown
    with Dashboard(tmp_path, tmp_path, "--read-only", launch=subprocess.Popen) as dashboard:  # as users start it
        dashboard.sign_in()
        assert dashboard.post("/jobs", urls="http://127.0.0.1:1/")[0] == 403
        assert "New job" not in dashboard.ask("GET", "/")[2]
    assert first.ask("GET", "/")[0] == 200
