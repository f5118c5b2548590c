"""The banner of `muniment replay` and what it asks, by answers and in Debian's Chromium."""

from __future__ import annotations

import http.client
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

import psutil
import pytest
from crawled import run_muniment, wait_until
from tests.support.chromium import BrowserPage, Chromium
from tests.support.gated_site import Answer, GatedSite
from tests.support.replay import Replay, Said, picture

pytestmark = pytest.mark.long  # its tests stay together

PNG = (("Content-Type", "image/png"),)
CLAIMS = """
const claim = (at, url, more) => top.postMessage({ muniment: 'page', at, url, frame: 'top', ...more }, '*');
claim('20260101000000', 'http://nowhere.test/<img src=x onerror=parent.hit=1>');
claim('<b>2026', location.href);
claim(7, { href: 'http://x.test/' }, { view: ['x'] });
claim('2026', 'http://x.test/../../../exact');
claim('2026', 'http://x.test/' + 'a'.repeat(100000));
top.postMessage(null, '*');
for (let number = 0; number < 1000; number += 1) claim('2026', 'http://nowhere.test/' + number);
"""
"""What a hostile page may say of itself."""
SITE: dict[str, Any] = {
    "/": "<!doctype html><title>Home</title><link rel=stylesheet href=/s.css><h1>Home</h1><img src=/red.png>"
    "<img id=ignored src=/ignored/a.png><img id=set srcset='/ignored/b.png 2x, /ignored/c.png 1x'>"
    "<script src=/kept-out/x.js></script><img id=broken src=http://127.0.0.1:1/failed.png><iframe src=/frame></iframe>"
    "<a id=next href=/next>next</a> <a id=never href=/ignored/page>never</a> <a id=picture href=/red.png>red</a> "
    "<a id=away href=/away>away</a><a href=/next/part></a>"
    "<script>fetch('/un' + 'seen')</script>",
    "/frame": "<p>framed</p><img id=inner src=/ignored/inner.png>",
    "/s.css": "h1 { background: url(/ignored/ground.png) }",
    "/next": "<title>Next</title><h1>Next</h1><a id=home href=/>home</a>",
    "/next/part": "<title>Part</title>part",
    "/away": Answer("", 302, (("Location", "/next"),)),
    "/red.png": Answer(picture(255, 0, 0), headers=PNG),
    "/robots.txt": Answer("User-agent: *\nDisallow: /kept-out\n", headers=(("Content-Type", "text/plain"),)),
}
TWICE = ("20240503120000000000", "20250503120000000000")
AXE = Path(__file__).parents[2] / ".axe" / "axe.min.js"
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]


def named(name: str) -> str:
    """The script that finds what has a name."""
    return f"document.querySelector('[data-testid={name}]')"


@dataclass
class Face:
    """Two archives that are replayed: a crawl, and what another tool has of two pages over the years."""

    cwd: Path
    url: str
    replay: Replay

    def open(self, browser: Chromium, path: str, width: int = 1280, height: int = 800) -> BrowserPage:
        page = browser.page(width, height)
        page.goto(self.replay.front + path)
        return page

    def home(self, browser: Chromium) -> BrowserPage:
        """The crawled page below its banner, when all that is missing is counted."""
        page = self.open(browser, f"/at/2999/{self.url}")
        page.wait(f"{named('replay-missing')}.dataset.count === '7'")
        return page

    def ask(self, path: str, **query: str) -> Any:
        return json.loads(self.replay.get(f"{path}?{urlencode(query)}").body)

    def send(self, path: str, fields: dict[str, str], **headers: str) -> Said:
        """What a form is answered with."""
        origin = urlsplit(self.replay.front)
        connection = http.client.HTTPConnection("127.0.0.1", origin.port or 0, timeout=60)
        given = {"Host": origin.netloc, "Content-Type": "application/x-www-form-urlencoded"}
        given |= {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request("POST", path, urlencode(fields), given)
        answer = connection.getresponse()
        said = Said(answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read())
        connection.close()
        return said


@pytest.fixture(scope="module")
def face(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Face]:
    cwd = tmp_path_factory.mktemp("face")
    write_years(cwd / "years.warc")
    with GatedSite(SITE) as site:
        options = ("--quiet", "--no-sitemaps", "--tries", "1", "--rounds", "0", "--ignore", "/ignored/")
        run_muniment(cwd, "crawl", site.url, "-o", "out", *options)
        url = site.url
    with Replay(cwd, "out", "years.warc") as replay:
        yield Face(cwd, url, replay)


def write_years(path: Path) -> None:
    """Three captures of one page, and a hundred of another."""
    few = [("2024-05-03T12:00:00Z", "200 OK"), ("2024-05-03T12:00:01Z", "404 Gone"), ("2025-05-03T12:00:00Z", "200 OK")]
    many = [
        (f"{year}-{month:02d}-{day:02d}T12:00:00Z", "200 OK" if day > 1 else "503 Busy")
        for year in (2023, 2024) for month in range(1, 13) for day in (1, 9, 17, 25)
    ]  # fmt: skip
    found = [("http://few.test/", *one) for one in few] + [("http://many.test/", *one) for one in many]
    path.write_bytes(b"".join(response(number, *one) for number, one in enumerate(found)))


def response(number: int, url: str, date: str, status: str) -> bytes:
    block = (
        f"HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\n\r\n<title>{date}</title><p>{date}".encode()
    )
    head = (
        f"WARC/1.1\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:uuid:00000000-0000-4000-8000-{number:012}>\r\n"
        f"WARC-Date: {date}\r\nWARC-Target-URI: {url}\r\nContent-Type: application/http;msgtype=response\r\n"
        f"Content-Length: {len(block)}\r\n\r\n"
    )
    return head.encode() + block + b"\r\n\r\n"


# -- by answers


def test_the_captures_of_a_url_are_listed(face: Face) -> None:
    assert face.ask("/times", url="http://few.test/") == {
        "url": "http://few.test/",
        "captures": [
            {"at": TWICE[0], "status": 200, "type": "text/html", "whole": True},
            {"at": "20240503120001000000", "status": 404, "type": "text/html", "whole": True},
            {"at": TWICE[1], "status": 200, "type": "text/html", "whole": True},
        ],
    }
    assert len(face.ask("/times", url="many.test")["captures"]) == 96
    assert face.ask("/times", url="http://none.test/")["captures"] == []
    assert face.ask("/times") == {"url": "", "captures": []}


def test_the_way_to_what_somebody_typed(face: Face) -> None:
    bare = face.url.removeprefix("http://")
    for typed, at, place in (
        ("http://few.test/", "2024", "/at/2024/http://few.test/"),
        ("few.test", TWICE[0], f"/at/{TWICE[0]}/http://few.test/"),
        (f" {bare}next ", "", f"/at/2999/{face.url}next"),
        ("few.test", "2024-05-03T12:00:00Z", "/at/20240503120000/http://few.test/"),
        ("other.test/a b", "", "/at/2999/http://other.test/a%20b"),
        ("http://other.test/\u00e4", "", "/at/2999/http://other.test/%C3%A4"),
        ("next", "", "/search?q=next"),
        ("red.png", "", "/search?q=red.png"),
        ("a\r\nX: y", "", "/search?q=a%0D%0AX%3A+y"),
        ("", "", "/"),
    ):
        said = face.replay.get(f"/go?{urlencode({'url': typed, 'at': at})}")
        assert (said.status, said.headers["location"]) == (303, place), typed
    assert face.replay.get("/go?url=few.test&at=soon").status == 400


def test_each_capture_is_reached_from_the_others(face: Face) -> None:
    def links(path: str) -> dict[str, str]:
        text = face.replay.get(path).text
        tags = [tag for tag in text.split("<a ") if "data-testid" in tag]
        return {tag.split('data-testid="')[1].split('"')[0]: tag.split('href="')[1].split('"')[0] for tag in tags}

    first = links("/at/2020/http://few.test/")
    assert "replay-previous" not in first
    middle = links(first["replay-next"])
    assert middle["replay-previous"] == f"/at/{TWICE[0]}/http://few.test/"
    last = links(middle["replay-next"])
    assert "replay-next" not in last and last["replay-previous"].startswith("/at/20240503120001")
    assert "replay-previous" not in links(middle["replay-previous"])


def test_the_front_has_no_icon_and_no_error_for_it(face: Face) -> None:
    assert face.replay.get("/favicon.ico").status == 204


def test_licences(face: Face) -> None:
    text = face.replay.get("/licences").text
    engine = face.replay.opened["engine"]
    assert f"{engine['name']} {engine['version']}" in text
    assert "AGPL-3.0-or-later" in text and "https://github.com/webrecorder/wabac.js" in text and "Apache-2.0" in text
    assert 'href="/licences"' in face.replay.get("/").text


def test_exact_browsers_are_opened_by_our_own_form_alone(face: Face) -> None:
    fields = {"url": face.url, "at": "2999"}
    for headers in (
        {},
        {"Origin": "null"},
        {"Origin": face.replay.content},
        {"Origin": "http://evil.test", "Sec_Fetch_Site": "same-origin"},
        {"Origin": face.replay.front, "Sec_Fetch_Site": "same-site"},
        {"Sec_Fetch_Site": "cross-site"},
    ):
        assert face.send("/exact", fields, **headers).status == 403, headers
    own = {"Origin": face.replay.front}
    assert face.send("/exact", {"url": "http://[", "at": "2026"}, **own).status == 400
    assert face.send("/exact", {"url": face.url, "at": "soon"}, **own).status == 400
    assert face.send("/exact", {"url": "x" * 70_000}, **own).status == 413
    assert face.send("/go", fields, **own).status == 405
    assert face.replay.get("/exact").status == 404


def test_without_a_chromium_it_says_how_to_get_one(face: Face, tmp_path: Path) -> None:
    with Replay(face.cwd, "years.warc", PATH="/nowhere") as replay:
        said = Face(tmp_path, "", replay).send("/exact", {"url": "few.test", "at": "2024"}, Origin=replay.front)
        assert (said.status, "apt install chromium" in said.text) == (409, True)


def test_an_exact_browser_is_a_process_like_others(face: Face, tmp_path: Path) -> None:
    program = tmp_path / "chromium"
    program.write_text(f'#!/bin/sh\nexec {shutil.which("chromium")} --headless=new --disable-gpu "$@"\n')
    program.chmod(0o755)
    state = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "XDG_STATE_HOME": str(tmp_path / "state")}

    def rows(status: str) -> list[dict[str, Any]]:
        command = [sys.executable, "-m", "muniment", "process", "list", "--json", "--status", status]
        said = subprocess.run(command, env={**os.environ, **state}, capture_output=True, text=True, check=True)
        return [row for row in json.loads(said.stdout) if "--exact" in row["cmd"]]

    with Replay(face.cwd, "years.warc", **state) as replay:
        form = {"url": "http://few.test/", "at": TWICE[0]}
        opened = Face(tmp_path, "", replay)
        for _ in range(2):
            said = opened.send("/exact", form, Origin="null", Sec_Fetch_Site="same-origin")
            assert (said.status, said.headers["location"]) == (303, f"/at/{TWICE[0]}/http://few.test/")
        wait_until(lambda: len(browsers(replay)) == 2, "two browsers run")
        assert f"/at/20240503120000/{form['url']}" in " ".join(browsers(replay)[0].cmdline())
        assert len(rows("running")) == 2
        browsers(replay)[0].terminate()  # as when the reader closes its window
        wait_until(lambda: len(rows("exited")) == 1, "its row has ended")
        below = psutil.Process(replay.process.pid).children(recursive=True)
        replay.end(signal.SIGKILL)
        assert psutil.wait_procs(below, 60)[1] == []


def browsers(replay: Replay) -> list[psutil.Process]:
    """The browsers, without the processes of each; a child that is forked just now has the words of its parent."""
    found = {}
    for one in psutil.Process(replay.process.pid).children(recursive=True):
        try:
            words = one.cmdline()
            if any(word.startswith("--user-data-dir=") for word in words) and "--type=" not in " ".join(words):
                found |= {one: one.ppid()} if "chromium" in one.exe() else {}
        except psutil.Error:  # it has ended meanwhile
            continue
    pids = {one.pid for one in found}
    return [one for one, parent in found.items() if parent not in pids]


# -- in the browser


def test_without_script_there_is_the_plain_banner(face: Face, browser: Chromium) -> None:
    page = browser.page(360, 740)
    page.without_script()
    page.goto(f"{face.replay.front}/at/2020/http://few.test/")
    ticks = page.run("[...document.querySelectorAll('[data-testid=replay-tick]')].map((one) => "
                     "[one.dataset.at, one.dataset.status, one.innerText.replace(/\\s+/g, ' ')])")  # fmt: skip
    assert [tick[:2] for tick in ticks] == [[TWICE[0], "200"], ["20240503120001000000", "404"], [TWICE[1], "200"]]
    assert ticks[1][2] == "2024-05-03 12:00:01 404", "told by text, not by colour"
    assert page.run(f"getComputedStyle({named('replay-missing')}.closest('div')).display") == "none"
    page.run(f"{named('replay-next')}.click()")
    page.wait("location.pathname.startsWith('/at/20240503120001') && document.readyState === 'complete'")
    assert page.run(f"{named('replay-kind')}.textContent") == "page, status 404"
    page.run(f"{named('replay-address')}.value = 'many.test'")
    page.run(f"{named('replay-go')}.click()")
    page.wait(
        "location.pathname === '/at/20240503120001000000/http://many.test/' && document.readyState === 'complete'"
    )
    assert page.run(f"{named('replay-time')}.textContent") == "2024-05-01 12:00:00 UTC"
    groups = page.run("[...document.querySelectorAll('[data-testid=replay-tick]')].map((one) => one.innerText)")
    assert len(groups) == 24 and groups[0].split() == ["2023-01", "3", "×", "200,", "1", "×", "503"]
    assert page.run("document.querySelectorAll('[aria-current]').length") == 1
    assert page.run("document.documentElement.scrollWidth") <= 360


def test_what_is_missing_is_counted_with_its_reason_and_outlined(face: Face, browser: Chromium) -> None:
    page = face.home(browser)
    rows = page.run("[...document.querySelectorAll('[data-testid=missing-row]')].map((one) => "
                    "[one.dataset.url, one.dataset.reason, one.textContent])")  # fmt: skip
    reasons = {url.removeprefix(face.url): (reason, text) for url, reason, text in rows}
    for name, reason, kind, word in (
        ("ignored/a.png", "skipped", "image", "ignore"),
        ("ignored/c.png", "skipped", "image", "ignore"),
        ("ignored/ground.png", "skipped", "image", "ignore"),
        ("ignored/inner.png", "skipped", "image", "ignore"),  # of the frame
        ("kept-out/x.js", "skipped", "script", "robots.txt"),
        ("http://127.0.0.1:1/failed.png", "failed", "image", "refused"),
        ("unseen", "never-seen", "fetch", ""),
    ):
        told = reasons[name]
        assert (told[0], kind in told[1], word in told[1]) == (reason, True, True), told
    told = face.ask("/missing", view=f"2999/{face.url}")["missing"]
    assert {(row["url"], row["as"], row["reason"]) for row in told} >= {
        (f"{face.url}kept-out/x.js", "script", "skipped")
    }
    page.run(f"{named('replay-outline')}.click()")
    assert page.run(f"{named('replay-outline')}.getAttribute('aria-pressed')") == "true"
    frame = in_frame(page)
    marked = "[...document.querySelectorAll('[data-muniment-missing]')].map((one) => one.id).filter(Boolean)"
    frame.wait(f"{marked}.join(' ').startsWith('ignored set broken')")
    assert frame.run("document.getElementById('ignored').dataset.munimentMissing") == "skipped"
    assert frame.run("getComputedStyle(document.getElementById('ignored')).outlineStyle") == "dashed"
    inner = "document.querySelector('iframe').contentDocument"
    frame.wait(f"{inner}.getElementById('inner').dataset.munimentMissing === 'skipped'")
    assert frame.run("document.querySelectorAll('a[data-muniment-missing]').length") == 0, (
        "no page that is not asked for"
    )
    page.run(f"{named('replay-outline')}.click()")
    frame.wait(f"{marked}.length === 0 && {inner}.querySelectorAll('[data-muniment-missing]').length === 0")
    assert frame.run("document.adoptedStyleSheets.length") == 0


def test_the_banner_follows_the_frame(face: Face, browser: Chromium) -> None:
    page = face.home(browser)

    def shown(url: str, kind: str) -> None:
        want = json.dumps([face.url + url, kind])
        page.wait(f"JSON.stringify([{named('replay-url')}.textContent, {named('replay-kind')}.textContent]) === "
                  f"JSON.stringify({want})")  # fmt: skip

    def click(name: str) -> None:
        in_frame(page).run(f"document.getElementById('{name}').click()")

    click("next")
    shown("next", "page")
    page.wait(f"{named('replay-missing')}.dataset.count === '0'")
    assert page.run(f"{named('replay-exact')}.form.elements.url.value") == f"{face.url}next"
    in_frame(page, "Next").run("history.pushState(0, '', '/next/part')")
    shown("next/part", "page")
    in_frame(page, "Next").run("history.pushState(0, '', '/next/unknown')")
    page.wait(f"{named('replay-note')}?.textContent.includes('another address')")
    shown("next", "page")
    page.goto(f"{face.replay.front}/at/2999/{face.url}")
    in_frame(page)
    click("away")
    shown("next", "page")
    in_frame(page, "Next").run("document.getElementById('home').click()")
    shown("", "page")
    click("picture")
    shown("red.png", "image")
    page.run("history.back()")
    shown("", "page")
    click("never")
    page.wait("!!document.querySelector('.banner.unknown')")
    assert page.run("location.pathname") == f"/at/2999/{face.url}", "the window's own address stays"


def test_what_a_page_claims_is_believed_only_if_the_archive_has_it(face: Face, browser: Chromium) -> None:
    page = browser.page()
    page._call("Network.enable")
    page.goto(f"{face.replay.front}/at/2999/{face.url}next")
    in_frame(page, "Next").run(CLAIMS)
    page.wait(f"!!{named('replay-note')}")
    page.run("new Promise((over) => setTimeout(over, 1500))")
    assert page.run(f"{named('replay-url')}.textContent").startswith(face.url)
    assert "nowhere" not in page.run("document.querySelector('.banner').outerHTML")
    assert page.run("[window.hit ?? 0, document.querySelectorAll('.banner img, .banner script').length]") == [0, 0]
    asked = [
        event["params"]["request"]["url"] for event in browser.events if event["method"] == "Network.requestWillBeSent"
    ]
    assert len([url for url in asked if "nowhere.test" in url]) < 12, "claims are looked up a few at a time"


def test_nothing_keeps_anybody_from_using_it(face: Face, browser: Chromium) -> None:
    checker = AXE.read_text()
    paths = ("/", "/search?q=few", "/at/*/http://few.test/", "/at/2026/http://none.test/", "/licences", "/nowhere",
             "/at/2024/http://few.test/", "/at/2024/http://many.test/", f"/at/2999/{face.url}")  # fmt: skip
    page = browser.page(1280, 800)
    for theme, rules in (("light", RULES), ("dark", ["color-contrast"])):
        page._call("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": theme}]})
        for path in paths:
            page.goto(face.replay.front + path)
            if path == paths[-1]:
                page.wait(f"{named('replay-missing')}.dataset.count === '7'")
                page.run("document.querySelector('details').open = true")
                page.run(f"{named('replay-outline')}.click()")
            page.run(f"{checker}; true")
            found = page.run(
                f"axe.run(document, {{runOnly: {json.dumps(rules)}, iframes: false}})"
                ".then((told) => [told.passes.length, told.violations])"
            )
            serious = [(one["id"], one["nodes"][0]["html"]) for one in found[1]]
            assert found[0] > 0 and serious == [], (theme, path)


def test_all_of_it_by_keyboard_on_a_phone(face: Face, browser: Chromium) -> None:
    page = face.open(browser, f"/at/2024/{quote('http://few.test/')}", 360, 740)
    page.wait(f"{named('replay-missing')}.textContent === 'Nothing missing'")
    reached = []
    wanted = ["replay-front", "replay-missing", "replay-exact", "replay-captures", "replay-next", "replay-tick",
              "replay-tick", "replay-tick", "replay-address", "replay-go", "raw", "record"]  # fmt: skip
    for _ in wanted:
        press(page, "Tab", 9)
        reached.append(page.run("document.activeElement.dataset.testid ?? document.activeElement.textContent"))
        assert page.run("getComputedStyle(document.activeElement).outlineStyle") != "none", " ".join(reached)
    assert reached == wanted
    page.run(f"{named('replay-missing')}.focus()")
    press(page, "Enter", 13)
    page.wait("document.querySelector('details').open")
    assert page.run("document.documentElement.scrollWidth") <= 360
    press(page, "Escape", 27)
    assert page.run(f"!document.querySelector('details').open && document.activeElement === {named('replay-missing')}")


def in_frame(page: BrowserPage, title: str = "Home") -> BrowserPage:
    """The archived page, once its worker shows it."""
    frame = page.frame("mp_/")
    frame.wait(f"document.title === '{title}' && document.readyState === 'complete'")
    return frame


def press(page: BrowserPage, key: str, code: int) -> None:
    """A key that browsers act upon by its code."""
    pressed = {"key": key, "code": key, "windowsVirtualKeyCode": code}
    text = {"text": "\r"} if key == "Enter" else {}
    page._call("Input.dispatchKeyEvent", {"type": "keyDown", **pressed, **text})
    page._call("Input.dispatchKeyEvent", {"type": "keyUp", **pressed})


def test_the_banner_says_when_the_replay_has_ended(face: Face, browser: Chromium) -> None:
    with Replay(face.cwd, "years.warc") as replay:
        page = Face(face.cwd, "", replay).open(browser, "/at/2024/http://few.test/")
        frame = in_frame(page, "2024-05-03T12:00:00Z")
        replay.end()
        frame.run("history.pushState(0, '', '?x')")
        page.wait(f"{named('replay-note')}?.textContent.startsWith('The replay has ended')")
