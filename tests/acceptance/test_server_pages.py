"""The pages of `muniment serve` in Chromium: signing in by token, its scope, a pipeline's work seen live."""

from __future__ import annotations

import http.client
import json
import re
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from urllib.request import urlopen

import pytest
from crawled import wait_until
from tests.support.chromium import BrowserPage, Chromium
from tests.support.gated_site import Answer, GatedSite

AXE = Path(__file__).parents[2] / ".axe" / "axe.min.js"
RULES = "['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa']"
THEMES = {"light": RULES, "dark": "['color-contrast']"}
"""By theme, the rules that find something to look at: the second has other colours alone."""
Ask = Callable[..., tuple[int, dict[str, str], str]]


def named(name: str) -> str:
    return f"document.querySelector('[data-testid={name}]')"


@pytest.fixture
def tokens(muniment: Any, tmp_path: Path) -> dict[str, str]:
    made = {}
    for name, scope in (("boss", "admin"), ("looker", "read"), ("adder", "submit")):
        done = muniment("tokens", "add", name, "--scope", scope, "--state", tmp_path / "kept")
        assert done.code == 0, done.stderr
        made[name] = done.stdout.strip()
    done = muniment("pipelines", "add", "p1", "--state", tmp_path / "kept")
    assert done.code == 0, done.stderr
    return {**made, "p1": done.stdout.strip()}


@pytest.fixture
def origin(muniment: Any, tmp_path: Path, tokens: dict[str, str]) -> str:
    often = ("--lease", "12", "--allow-private")  # pipelines report as often as their lease wants
    process = muniment.start("serve", "--state", tmp_path / "kept", "--listen", "127.0.0.1:0", *often)
    return str(process.stdout.readline().split()[1])


@pytest.fixture
def ask(origin: str) -> Ask:
    return asking(origin)


def asking(origin: str) -> Ask:
    def send(method: str, path: str, body: str = "", **headers: str) -> tuple[int, dict[str, str], str]:
        connection = http.client.HTTPConnection(origin.partition("://")[2], timeout=60)
        try:
            connection.request(method, path, body or None, {n.replace("_", "-"): v for n, v in headers.items()})
            answer = connection.getresponse()
            text = answer.read().decode("utf-8", "replace")
            return answer.status, {name.lower(): value for name, value in answer.getheaders()}, text
        finally:
            connection.close()

    return send


@pytest.fixture
def site() -> Iterator[GatedSite]:
    links = "".join(f"<a href=/p/{n}>{n}</a>" for n in range(300))
    pages = {f"/p/{n}": Answer(f"<title>{n}</title>", after=0.2) for n in range(300)}
    with GatedSite({"/": links, **pages}) as made:
        yield made


def sign_in(ask: Ask, origin: str, token: str) -> str:
    status, headers, _ = ask("POST", "/login", urlencode({"token": token}), Origin=origin)
    assert status == 303, status
    assert "HttpOnly" in headers["set-cookie"] and "SameSite=strict" in headers["set-cookie"]
    return headers["set-cookie"].partition(";")[0]


def test_who_may_do_what(ask: Ask, origin: str, tokens: dict[str, str]) -> None:
    status, headers, _ = ask("GET", "/")
    assert (status, headers["location"]) == (303, "/login")
    status, _, text = ask("POST", "/login", "token=wrong", Origin=origin)
    assert status == 401 and 'data-testid="login-error"' in text
    assert ask("POST", "/login", urlencode({"token": tokens["p1"]}), Origin=origin)[0] == 403, "of a pipeline"
    assert ask("POST", "/login", urlencode({"token": tokens["boss"]}), Origin="http://evil.example")[0] == 403
    assert ask("GET", "/login", Host="evil.example")[0] == 421
    bearer = {"Host": "evil.example", "Authorization": f"Bearer {tokens['boss']}"}
    assert [ask("GET", path, **bearer)[0] for path in ("/v1/jobs", "/", "/captures")] == [200, 200, 200]
    assert ask("POST", "/jobs", "", Origin="http://evil.example", **bearer)[0] == 403

    boss, looker, adder = (sign_in(ask, origin, tokens[name]) for name in ("boss", "looker", "adder"))
    order = urlencode({"urls": "https://example.com/", "explanation": "<b>", "per-host": "2"})
    assert ask("POST", "/jobs", order, Origin=origin, Cookie=looker)[0] == 403
    status, headers, _ = ask("POST", "/jobs", order, Origin=origin, Cookie=boss)
    assert (status, headers["location"]) == (303, "/jobs/1?done=new")
    assert "&lt;b&gt;" in ask("GET", "/jobs/1", Cookie=looker)[2]
    for cookie, expected in ((looker, 403), (adder, 403)):
        assert ask("POST", "/jobs/1/abort", "", Origin=origin, Cookie=cookie)[0] == expected
    assert 'data-state="running"' in ask("GET", "/jobs/1", Cookie=looker)[2], "nothing of that changed anything"
    assert ask("POST", "/jobs", order, Origin=origin, Cookie=adder)[1]["location"] == "/jobs/2?done=new"
    assert ask("POST", "/jobs/2/pause", "", Origin=origin, Cookie=adder)[0] == 303, "its own"
    assert 'data-state="paused"' in ask("GET", "/jobs/2", Cookie=looker)[2]
    for path in ("/jobs/1/queue", "/jobs/1/hosts", "/jobs/1/ignores", "/jobs/1/log", "/pipelines", "/processes"):
        assert ask("GET", path, Cookie=looker)[0] == 200, path
    assert '<td data-label="Last seen">never</td>' in ask("GET", "/pipelines", Cookie=looker)[2]
    assert ask("GET", "/jobs/3", Cookie=looker)[0] == 404
    assert tokens["boss"] not in ask("GET", "/", Cookie=boss)[2]

    assert ask("POST", "/logout", "", Origin=origin, Cookie=boss)[0] == 303
    assert ask("GET", "/", Cookie=boss)[0] == 303, "the session is over"


@pytest.mark.long
def test_a_pipeline_at_work_is_seen_and_steered(
    muniment: Any,
    browser: Chromium,
    ask: Ask,
    origin: str,
    tokens: dict[str, str],
    site: GatedSite,
    tmp_path: Path,
) -> None:
    (tmp_path / "p1.token").write_text(tokens["p1"])
    muniment.start("pipeline", origin, "-o", tmp_path / "p1", "--token-file", tmp_path / "p1.token", "--allow-private")
    page = browser.page()
    page.goto(f"{origin}/login")
    page.run(f"{named('login-token')}.value = '{tokens['boss']}'; {named('login-submit')}.click()")
    page.wait(f"{named('connection')}?.dataset.state === 'live'")
    page.run(f"{named('new-job-url')}.value = '{site.url}'; {named('new-job-submit')}.click()")
    page.wait(f"Number({named('job-done')}?.firstChild.value) > 3")
    page.wait("[...document.querySelectorAll('[data-testid=log-line]')].some((one) => one.dataset.status === '200')")
    page.run("location.reload()")
    page.wait("document.querySelectorAll('[data-testid=plots] svg, [data-testid^=plot-] svg').length >= 3")
    assert page.run("document.querySelector('[data-testid=plot-status-table]').textContent.includes('2xx')")
    page.run(f"{named('setting-nice')}.value = '7'; {named('setting-max-slots')}.value = '1'")
    page.run(f"{named('settings-submit')}.click()")
    page.wait(f"{named('flash')} && {named('setting-nice')}.value + {named('setting-max-slots')}.value === '71'")
    page.goto(f"{origin}/jobs/1/why?url={site.url}")
    assert "captured: status 200; 1 try made" in page.run("document.querySelector('main').innerText")
    page.goto(f"{origin}/jobs/1")
    page.run(f"{named('action-pause')}.click()")
    page.wait(f"{named('job')}?.dataset.state === 'paused'")

    def quiet() -> bool:
        before = len(site.requests)
        page.run("new Promise((done) => setTimeout(done, 1000))")
        return len(site.requests) == before

    wait_until(quiet, "no request after the pause")
    page.goto(f"{origin}/jobs/1/hosts")
    done = page.run("Number(document.querySelector('[data-testid=host-row] [data-label=Done] data').value)")
    attempts = ask("GET", "/jobs/1/events.jsonl", Authorization=f"Bearer {tokens['looker']}")[2].splitlines()
    assert done == len(attempts) > 3 and "50,000" in page.run("document.querySelector('main').innerText")
    page.goto(f"{origin}/pipelines")
    shown = page.run(f"{named('pipeline')}.innerText")
    assert "live" in shown and " s ago" in shown
    check_for_everyone(page, origin)
    check_ends(ask, origin, tokens)
    page.goto(f"{origin}/jobs/1")
    page.run(f"{named('action-abort-confirm')}.click()")
    page.wait(f"{named('job')}?.dataset.state === 'aborted'")


def check_ends(ask: Ask, origin: str, tokens: dict[str, str]) -> None:
    """A worker of the pipeline is ended by who may, and another takes its place."""

    def workers() -> set[str]:
        text = ask("GET", "/v1/processes?type=worker&status=running", Authorization=f"Bearer {tokens['looker']}")[2]
        return {row["id"] for row in json.loads(text)["processes"]}

    wait_until(workers, "the pipeline reports its worker")
    [worker] = workers()
    for name in ("looker", "adder"):
        cookie = sign_in(ask, origin, tokens[name])
        assert ask("POST", f"/processes/{worker}/kill", "", Origin=origin, Cookie=cookie)[0] == 403
        assert ask("POST", f"/v1/processes/{worker}/kill", Authorization=f"Bearer {tokens[name]}")[0] == 403
    boss = sign_in(ask, origin, tokens["boss"])
    for nobody in ("1", "f" * 32, "x"):
        status, _, text = ask("POST", f"/processes/{nobody}/kill", "", Origin=origin, Cookie=boss)
        assert status == 404 and "muniment process kill" in text
    status, headers, text = ask("POST", f"/processes/{worker}/kill", "", Origin=origin, Cookie=boss)
    assert (status, headers.get("location")) == (303, f"/processes/{worker}?done=kill"), text
    wait_until(lambda: worker not in workers(), "it has ended")
    again = ask("POST", f"/v1/processes/{worker}/kill", Authorization=f"Bearer {tokens['boss']}")
    assert (again[0], "has ended already" in again[2]) == (422, True)


def check_for_everyone(page: BrowserPage, origin: str) -> None:
    """The pages that a server alone has, and those of its jobs: nothing serious for axe, nothing too wide."""
    checker = AXE.read_text()
    for theme, rules in THEMES.items():
        page.run(f"document.cookie = 'theme={theme}; path=/'")
        for path in ("/pipelines", "/captures", "/processes", "/jobs/1", "/jobs/1/hosts", "/jobs/1/results"):
            page.goto(f"{origin}{path}")
            page.run(f"{checker}; true")
            found = page.run(f"axe.run(document, {{runOnly: {rules}}}).then((told) => told.violations)")
            assert [(one["id"], one["nodes"][0]["html"]) for one in found] == [], (theme, path)


def test_archives_at_hand_are_searched_and_handed_out(
    muniment: Any, tokens: dict[str, str], site: GatedSite, tmp_path: Path
) -> None:
    archives, state = tmp_path / "archives", tmp_path / "kept"
    (archives / "of-another" / "1").mkdir(parents=True)
    (archives / "of-another" / "pipeline.place").write_text("0123456789abcdef\n")
    (archives / "of-another" / "1" / "tracker.place").write_text("http://127.0.0.1:9\n1\n")
    (tmp_path / "p1.token").write_text(tokens["p1"])
    command = ("serve", "--state", state, "--listen", "127.0.0.1:0", "--allow-private")
    server = muniment.start(*command, "--archives", archives)
    origin = str(server.stdout.readline().split()[1])
    ask = asking(origin)
    bearer = {"Authorization": f"Bearer {tokens['looker']}"}
    boss = sign_in(ask, origin, tokens["boss"])
    order = urlencode({"urls": f"{site.url}p/1 {site.url}p/2 {site.url}none"})
    assert ask("POST", "/jobs", order, Origin=origin, Cookie=boss)[0] == 303
    arguments = ("-o", archives / "p1", "--token-file", tmp_path / "p1.token", "--allow-private")
    done = muniment("pipeline", origin, *arguments, "--exit-when-idle", 1)
    assert done.code == 0, done.stderr

    def found(**wanted: object) -> list[dict[str, Any]]:
        status, _, text = ask("GET", f"/v1/captures?{urlencode(wanted)}", **bearer)
        assert status == 200, text
        return list(json.loads(text)["captures"])

    assert ask("GET", "/v1/captures")[0] == 401
    assert {row["url"] for row in found(q="/p/")} == {f"{site.url}p/1", f"{site.url}p/2"}
    assert {row["url"] for row in found(status="4xx", job=1)} >= {f"{site.url}none"}
    assert found(host="127.0.0.1", type="text/html", q="/p/1")[0]["job"] == 1
    assert not found(host="else.example") and not found(to="2020-01-01") and not found(error="timeout")
    assert ask("GET", "/v1/captures?from=yesterday", **bearer)[0] == 422

    [row] = found(q="/p/1")
    where = urlencode({"file": row["warc_file"], "offset": row["warc_offset"]})
    status, headers, text = ask("GET", f"/jobs/1/record?{where}", Cookie=boss)
    assert status == 200 and text.startswith("WARC/1.1") and "<title>1</title>" in text
    assert headers["content-disposition"].startswith("attachment")
    assert ask("GET", f"/jobs/1/raw?{where}", Cookie=boss)[2] == "<title>1</title>"
    assert ask("GET", f"/jobs/7/raw?{where}", Cookie=boss)[0] == 404
    assert 'data-testid="capture-view"' in ask("GET", "/captures?q=/p/1", Cookie=boss)[2]
    wanted = urlencode({"url": row["url"], "at": row["fetched_at"]})
    status, _, text = ask("POST", "/jobs/1/view", wanted, Origin=origin, Cookie=boss)
    assert status == 200, text
    address = re.search(r'data-testid="view-open" href="([^"]+)"', text)
    assert address is not None
    with urlopen(address[1], timeout=30) as answer:
        assert answer.status == 200 and b"replay-frame" in answer.read()

    server.send_signal(signal.SIGTERM)
    assert server.wait(30) == 0
    with pytest.raises(OSError):
        urlopen(address[1], timeout=5)

    # without them, attempts stand for captures, and there are no bytes
    origin = str(muniment.start(*command).stdout.readline().split()[1])
    ask = asking(origin)
    boss = sign_in(ask, origin, tokens["boss"])
    assert {row["url"] for row in found(q="/p/")} == {f"{site.url}p/1", f"{site.url}p/2"}
    assert {row["url"] for row in found(status="404")} >= {f"{site.url}none"}
    assert not found(host="else.example") and not found(q="%") and not found(to="2020-01-01")
    text = ask("GET", "/captures", Cookie=boss)[2]
    assert "no record" in text and "capture-view" not in text
    assert "--archives" in ask("GET", f"/jobs/1/record?{where}", Cookie=boss)[2]
    status, headers, text = ask("GET", "/jobs/1/events.jsonl", Cookie=boss)
    assert (status, headers["content-disposition"]) == (200, 'attachment; filename="job-1-events.jsonl"')
    assert {json.loads(line)["url"] for line in text.splitlines()} >= {f"{site.url}p/1", f"{site.url}none"}
    assert ask("GET", "/jobs/9/events.jsonl", Cookie=boss)[0] == 404 != ask("GET", "/jobs/1/events.jsonl")[0]


def test_archives_that_are_not_there_are_one_line(muniment: Any, tmp_path: Path) -> None:
    done = muniment("serve", "--state", tmp_path / "s", "--listen", "127.0.0.1:0", "--archives", tmp_path / "none")
    assert done.code == 2 and "is not a directory" in done.stderr and done.stderr.count("\n") == 1
