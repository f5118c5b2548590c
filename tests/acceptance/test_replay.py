"""`muniment replay`, by its answers and in Debian's Chromium: pages are shown, and nothing gets out."""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest
from crawled import complaint, run_muniment
from tests.support.chromium import BrowserPage, Chromium
from tests.support.gated_site import Answer, GatedSite
from tests.support.media import MARKUP, PAGES, check_media
from tests.support.png import rgb_at
from tests.support.replay import HOSTILE, Replay, picture, tone
from tests.support.wpull_warc import write_wpull_warc
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

from muniment.replay.wabac import find_wabac

pytestmark = pytest.mark.long  # its tests stay together

GBK = "<title>\u6863\u6848</title><p id=text>\u4e2d\u6587\u9875\u9762</p>".encode("gbk")
WORDS = "<title>Packed</title><p id=text>packed words</p>" * 20
JS = (("Content-Type", "text/javascript"),)
SITE: dict[str, Any] = {
    **PAGES,
    "/": "<!doctype html><title>Home</title><link rel=stylesheet href=/s.css><h1 id=text>Hello</h1>"
    "<img id=red src=/red.png><img id=set srcset='/blue.png 1x' src=/none.png><iframe src=/frame></iframe>"
    "<audio id=tone src=/tone.wav preload=auto></audio>" + MARKUP + "<a id=gbk href=/gbk>gbk</a><a href=/packed>p</a>"
    "<a href=/hostile>h</a><a href=/loop>l</a><a href=/module>m</a><a href=/inline>i</a>"
    "<a href=/js/part.js>1</a><a href=/js/more.js>2</a><a href=/js/late.js>3</a><a href=/away>a</a>"
    "<a href='/q?b=2&a=1&_=123'>q</a><a href=/empty>e</a>"
    "<a href='/x?<script>alert(1)</script>'>x</a>",
    "/s.css": "h1 { color: rgb(0, 128, 0) } body { background: rgb(250, 250, 200) }",
    "/red.png": Answer(picture(255, 0, 0), headers=(("Content-Type", "image/png"),)),
    "/blue.png": Answer(picture(0, 0, 255), headers=(("Content-Type", "image/png"),)),
    "/frame": "<p id=text>framed</p>",
    "/tone.wav": Answer(tone(4), headers=(("Content-Type", "audio/wav"), ("Accept-Ranges", "bytes"))),
    "/gbk": Answer(GBK, headers=(("Content-Type", "text/html; charset=gbk"),)),
    "/packed": Answer(
        gzip.compress(WORDS.encode()), headers=(("Content-Type", "text/html"), ("Content-Encoding", "gzip"))
    ),
    "/hostile": HOSTILE,
    "/module": "<title>before</title><p id=text>no module</p><script type=module src=/js/app.js></script>",
    "/inline": "<title>before</title><p id=text>no module</p>"
    '<script type="importmap">{"imports": {"mapped": "/js/late.js"}}</script>'
    "<script type=module>import { word } from '/js/part.js'; import more from './js/more.js';\n"
    "import { word as third } from 'mapped'; text.textContent = word + more + third</script>",
    "/js/app.js": Answer(
        gzip.compress(
            b'import{word}from"./part.js";import more from "/js/more.js"\n'
            b'const late = await import("/js/late.js");'
            b'document.getElementById("text").textContent = word + more + late.word + location.pathname.slice(-7);'
        ),
        headers=(("Content-Type", "text/javascript"), ("Content-Encoding", "gzip")),
    ),
    "/js/part.js": Answer("export const word = 'one';", headers=JS),
    "/js/more.js": Answer("export default 'two';", headers=JS),
    "/js/late.js": Answer("export const word = 'three';", headers=JS),
    "/loop": Answer("", 302, (("Location", "/loop2"),)),
    "/loop2": Answer("", 302, (("Location", "/loop"),)),
    "/away": Answer("", 302, (("Location", "/gbk"),)),
    "/q?b=2&a=1&_=123": "<p id=text>a query</p>",
    "/empty": Answer(
        "", headers=(("Content-Type", "text/html"), ("Refresh", "0;url=http://x.test/"), ("Set-Cookie", "a=b"))
    ),
    "/x?%3Cscript%3Ealert(1)%3C/script%3E": "<title><script>alert(2)</script></title>odd",
}
BUILT = (
    "[document.querySelector('iframe').outerHTML, document.head.querySelectorAll('script, base').length, "
    "...[...document.querySelectorAll('header, header > *, main, body > script')].map((one) => one.localName + one.id)]"
)
"""The parts of the front's page, of which some have texts that follow what the frame shows."""
PACKAGE_OF_PY_WACZ = Path(__file__).parents[1] / "support" / "py-wacz.wacz"
"""What `wacz create` of py-wacz 0.6.0 made of two pages that warcio wrote."""
QUIET = ("--quiet", "--no-robots", "--no-sitemaps")


@dataclass
class Shown:
    """A crawl that is replayed."""

    cwd: Path
    site: GatedSite
    replay: Replay

    @property
    def url(self) -> str:
        return self.site.url

    def at(self, path: str) -> str:
        return f"/at/2026/{self.url}{path}"


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shown]:
    cwd = tmp_path_factory.mktemp("replay")
    with GatedSite(SITE) as site:
        run_muniment(cwd, "crawl", site.url, "-o", "out", *QUIET)
        site.requests.clear()
        with Replay(cwd, "out") as replay:
            yield Shown(cwd, site, replay)
        assert site.requests == [], "the site itself was asked"


@pytest.fixture(scope="module")
def canary() -> Iterator[GatedSite]:
    with GatedSite({}) as site:
        yield site
        assert site.requests == [], "an archived page has reached another host"


@pytest.fixture(scope="module")
def browser(canary: GatedSite) -> Iterator[Chromium]:
    there = canary.url.split("/")[2]
    with Chromium(names=f"MAP * {there}, EXCLUDE 127.0.0.1, EXCLUDE localhost, EXCLUDE *.localhost") as chromium:
        yield chromium


def test_a_page_is_shown_as_it_was(shown: Shown, browser: Chromium) -> None:
    page = browser.page()
    page.goto(shown.replay.front + shown.at(""))
    assert page.run("document.querySelector('[data-testid=replay-url]').textContent") == shown.url
    frame = page.frame("mp_/")
    assert frame.wait("document.getElementById('text').textContent") == "Hello"
    assert frame.wait("getComputedStyle(document.getElementById('text')).color === 'rgb(0, 128, 0)'")
    frame.wait("[...document.images].every((one) => one.complete && one.naturalWidth === 40)")
    assert frame.wait("document.querySelector('iframe').contentDocument.body.innerText.trim()") == "framed"
    for name, colour in (("red", (255, 0, 0)), ("set", (0, 0, 255))):
        x, y = frame.run(f"(() => {{ const at = {name}.getBoundingClientRect(); return [at.x + 20, at.y + 20] }})()")
        top = page.run("document.querySelector('iframe').getBoundingClientRect().y")
        assert rgb_at(page.screenshot(), int(x), int(y + top)) == colour, name
    frame.run("tone.currentTime = 3")
    frame.wait("tone.readyState >= 3 && !tone.seeking && tone.duration === 4 && tone.currentTime === 3")
    check_media(frame, page.screenshot, int(top))
    frame.run("document.getElementById('gbk').click()")
    assert (
        frame.wait("document.title === '\u6863\u6848' && document.getElementById('text').textContent")
        == "\u4e2d\u6587\u9875\u9762"
    )


def test_more_requests_at_once_than_threads_are_answered(shown: Shown) -> None:
    address = shown.at("red.png").replace("/2026/", "/2026im_/")
    with ThreadPoolExecutor(32) as pool:
        asked = [pool.submit(shown.replay.get, address, archived=True) for _ in range(64)]
        assert {one.result().status for one in asked} == {200}


def test_modules_run_and_import_each_other(shown: Shown, browser: Chromium) -> None:
    page = browser.page()
    page.goto(f"{shown.replay.front}{shown.at('module')}")
    frame = page.frame(shown.replay.content)
    assert frame.wait("text.textContent !== 'no module' && text.textContent") == "onetwothree/module"


def test_modules_in_a_page_run_and_import_others(shown: Shown, browser: Chromium) -> None:
    page = browser.page()
    page.goto(f"{shown.replay.front}{shown.at('inline')}")
    frame = page.frame(shown.replay.content)
    assert frame.wait("text.textContent !== 'no module' && text.textContent") == "onetwothree"


def test_a_hostile_page_changes_nothing_outside_its_frame(shown: Shown, browser: Chromium, canary: GatedSite) -> None:
    address = shown.replay.front + shown.at("hostile")
    page, ways, frame = open_hostile(browser, address)
    tried = frame.wait("window.over")
    assert len(tried) > 15
    assert not [one for one in tried if one in {"registered", "front read", "read the front"}], tried
    tabs = [page, *(open_hostile(browser, address)[0] for _ in ways[1:])]
    frames = [tab.frame("mp_/") for tab in tabs]
    banners = [tab.run(BUILT) for tab in tabs]
    for way, one in zip(ways, frames, strict=True):
        one.run(f"void leave('{way}')")
    for one in frames:
        gone_or_held(one)
    for way, tab, banner in zip(ways, tabs, banners, strict=True):
        assert tab.run("location.href") == address, way
        assert tab.run(BUILT) == banner, way
    pages = [one for one in browser.call("Target.getTargets")["targetInfos"] if one["type"] == "page"]
    assert all(one["url"].startswith((shown.replay.front, "about:blank")) for one in pages), pages
    assert canary.requests == []


def open_hostile(browser: Chromium, address: str) -> tuple[BrowserPage, list[str], BrowserPage]:
    page = browser.page()
    page.goto(address)
    frame = page.frame("mp_/")
    frame.wait("window.over")
    return page, frame.run("Object.keys(ways)"), frame


def gone_or_held(frame: BrowserPage) -> None:
    """The page has tried to leave: its frame was navigated, or it is there still after a while of its own."""
    with contextlib.suppress(AssertionError):
        while frame.run("!!window.over && !window.stayed"):
            time.sleep(0.05)


def test_the_front_works_without_script(shown: Shown, browser: Chromium) -> None:
    page = browser.page(360, 740)
    page.without_script()
    page.goto(shown.replay.front + "/")
    assert page.run("document.documentElement.scrollWidth") <= 360
    page.run("document.querySelector('[data-testid=search-input]').value = 'packed'")
    page.run("document.querySelector('[data-testid=search-submit]').click()")
    page.wait("location.pathname === '/search' && document.readyState === 'complete'")
    found = page.run("[...document.querySelectorAll('[data-testid=search-result]')].map((one) => one.innerText)")
    assert len(found) == 1
    assert page.run("document.documentElement.scrollWidth") <= 360
    page.run("document.querySelector('[data-testid=capture-view]').click()")
    page.wait("!!document.querySelector('[data-testid=replay-frame]') && document.readyState === 'complete'")
    assert page.run("document.documentElement.scrollWidth") <= 360


def test_bytes_are_those_of_the_records(shown: Shown) -> None:
    get = shown.replay.get
    raw = get(f"/raw/2026/{shown.url}packed")
    assert raw.body == SITE["/packed"].body
    assert (raw.headers["content-disposition"][:11], raw.headers.get("content-encoding")) == ("attachment;", None)
    record = get(f"/record/2026/{shown.url}packed").body
    warc = next((shown.cwd / "out").glob("*.warc.gz")).read_bytes()
    assert gzip.decompress(warc).count(record) == 1
    assert record.startswith(b"WARC/1.1\r\n")
    for said in (raw, get(f"/record/2026/{shown.url}gbk")):
        assert said.headers["content-security-policy"].startswith("sandbox")
    assert get(f"/at/2026id_/{shown.url}packed", archived=True).text == WORDS


def test_policy_hosts_and_origins(shown: Shown) -> None:
    get, front, content = shown.replay.get, shown.replay.front, shown.replay.content
    assert front.split(":")[1] != content.split(":")[1], "another host name"
    for path, archived in (
        ("/", False),
        (shown.at(""), False),
        (shown.at(""), True),
        ("/at/2026/http://no.test/", True),
    ):
        said = get(path, archived=archived)
        assert said.headers["x-content-type-options"] == "nosniff"
        assert said.headers["referrer-policy"] == "no-referrer"
        policy = said.headers["content-security-policy"]
        assert ("frame-src " + content in policy) != archived
        assert not {"set-cookie", "refresh", "clear-site-data"} & said.headers.keys()
        wrong = get(path, archived=archived, Host="evil.test")
        assert (wrong.status, "Hello" in wrong.text) == (421, False)
    empty = get(shown.at("empty"), archived=True)
    assert empty.status == 200
    assert not {"set-cookie", "refresh"} & empty.headers.keys()
    assert get("/", archived=True).status == 404, "the front is not on the origin of archived pages"
    assert get("/search", archived=True).status == 404
    window = get(shown.at(""), archived=True, Sec_Fetch_Dest="document")
    assert (window.status, window.headers["location"]) == (302, front + shown.at(""))
    for kind in ("document", "iframe", "frame"):
        for modifier in ("id_", "dl_", "js_", "wkrf_"):
            address = shown.at("").replace("/2026/", f"/2026{modifier}/")
            assert get(address, archived=True, Sec_Fetch_Dest=kind, Sec_Fetch_Mode="navigate").status == 404
    for modifier in ("", "mp_", "if_", "fr_"):
        address = shown.at("").replace("/2026/", f"/2026{modifier}/")
        starting = get(address, archived=True, Sec_Fetch_Dest="iframe", Sec_Fetch_Mode="navigate")
        assert (starting.status, 'data-testid="no-worker"' in starting.text) == (200, True)
    for path in ("/at/2026sw_/http://x/", "/sw.js?x=1", "/wabac.js", "/start.js"):
        assert get(path, archived=True, Service_Worker="script").status == 403
    worker = get("/sw.js", archived=True, Service_Worker="script")
    own = "default-src 'none'; script-src 'self'; connect-src 'self'"
    assert (worker.status, worker.headers["content-security-policy"]) == (200, own)
    question = shown.at("").replace("/at/", "/raw/")
    assert get(question, archived=True).status == 404
    assert get(question, archived=True, Sec_Fetch_Dest="empty").headers["x-redirect-status"] == "200"
    memento = get(shown.at(""), archived=True).headers
    assert 'rel="original"' in memento["link"]
    assert memento["memento-datetime"].endswith("GMT")


def test_choosing(shown: Shown) -> None:
    get = shown.replay.get
    assert "Hello" in get(f"/at/19990101/{shown.url}", archived=True).text
    other = get(shown.at("").replace("http://", "https://"), archived=True)
    assert "Hello" in other.text, "http and https are one for looking up"
    loose = get(f"/at/2026/{shown.url}q?_=999&a=1&b=2")
    assert (loose.status, "replay-note" in loose.text) == (200, True)
    assert "a query" in get(f"/at/2026/{shown.url}q?_=999&a=1&b=2", archived=True).text
    assert get(f"/at/2026/{shown.url}q?_=999&a=1&b=3").status == 404
    away = get(shown.at("away"), archived=True)
    assert (away.status, away.headers["location"].endswith(f"{shown.url}gbk")) == (302, True)
    for archived in (False, True):
        loop = get(shown.at("loop"), archived=archived)
        assert (loop.status, "circle" in loop.text) == (508, True)
        missing = get(f"/at/2026/http://other.test:{shown.url.rsplit(':', 1)[1]}packed", archived=archived)
        assert (missing.status, 'data-testid="not-archived"' in missing.text) == (404, True)
        assert f"{shown.url}packed" in missing.text, "the same path on another host"
    assert "never seen" in get(shown.at("nowhere")).text, "what the crawl knows"
    listed = get(f"/at/*/{shown.url}gbk")
    assert (listed.status, listed.text.count('data-testid="search-result"')) == (200, 1)


def test_nothing_of_strangers_is_markup(shown: Shown) -> None:
    for path in ("/search?q=x%3F", "/search?q=%3Cscript%3E", "/at/2026/http://no.test/%22%3E%3Cscript%3Ealert(1)%3C/script%3E",
                 f"/at/2026/{shown.url}x?%3Cscript%3Ealert(1)%3C/script%3E", "/%3Cscript%3E"):  # fmt: skip
        own = '<script src="/banner.js" type="module"></script>'
        assert "<script" not in shown.replay.get(path).text.replace(own, ""), path
    search = shown.replay.get("/search?q=GBK&status=2&type=html&from=2020&to=2099")
    assert search.text.count('data-testid="search-result"') == 1
    assert shown.replay.get("/search?status=404&to=2001").text.count('data-testid="search-result"') == 0


@pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning"
)  # warcio leaves its files to the collector
def test_packages_and_warcs_of_other_tools(shown: Shown, tmp_path: Path) -> None:
    out = str(shown.cwd / "out")
    run_muniment(tmp_path, "export", out, "--wacz", "ours.wacz", "--quiet")
    foreign(tmp_path / "foreign.warc.gz", packed=True)
    foreign(tmp_path / "plain.warc", packed=False)
    (tmp_path / "one.warc.gz").write_bytes(gzip.compress((tmp_path / "plain.warc").read_bytes()))
    with Replay(tmp_path, "ours.wacz", "foreign.warc.gz") as replay:
        assert "Hello" in replay.get(shown.at(""), archived=True).text
        assert replay.get(f"/raw/2026/{shown.url}packed").body == SITE["/packed"].body
        said = replay.get("/at/20200102030405/http://foreign.test/again", archived=True)
        assert (said.status, "foreign words" in said.text) == (200, True), "a revisit of another URL"
        assert replay.end() == 0
    for name in ("plain.warc", "one.warc.gz"):
        with Replay(tmp_path, name) as replay:
            assert "foreign words" in replay.get("/at/2020/http://foreign.test/", archived=True).text, name
            lost = replay.get("/at/2020/http://foreign.test/lost", archived=True)
            assert (lost.status, "http://gone.test/" in lost.text) == (404, True), "it says what is missing"


def test_packages_and_warcs_of_py_wacz_and_of_archivebot(tmp_path: Path) -> None:
    write_wpull_warc(tmp_path / "bot.warc.gz")
    with Replay(tmp_path, PACKAGE_OF_PY_WACZ, "bot.warc.gz") as replay:
        page = replay.get("/at/2020/http://packed.test/", archived=True)
        assert (page.status, "packed words" in page.text) == (200, True)
        assert "rgb(0, 128, 0)" in replay.get("/at/2020cs_/http://packed.test/s.css", archived=True).text
        for path, words in (
            ("", "bot words"),
            ("again", "bot words"),
            ("packed", "packed words"),
            ("a%20b?q=%C3%A4", "odd"),
        ):
            said = replay.get(f"/at/2016/http://bot.test/{path}", archived=True)
            assert (said.status, words in said.text) == (200, True), (path, said.text)
            assert said.headers["memento-datetime"].startswith("Wed, 04 May 2016 03:02:0")
        assert replay.get("/raw/2016/http://bot.test/packed").body[:2] == b"\x1f\x8b"
        listed = replay.get("/search?q=bot.test").text
        assert listed.count('data-testid="search-result"') == 4, "neither its log nor what FTP gave"
        assert "incomplete" not in listed, "its revisits are whole"


def foreign(path: Path, *, packed: bool) -> None:
    """A WARC file as warcio writes it, with revisits."""
    head = StatusAndHeaders("200 OK", [("Content-Type", "text/html")], protocol="HTTP/1.1")
    body = b"<title>Foreign</title><p>foreign words</p>"
    date, later = "2020-01-02T03:04:05Z", "2020-01-02T03:04:06Z"
    with path.open("wb") as file:
        from io import BytesIO

        writer = WARCWriter(file, gzip=packed)
        record = writer.create_warc_record(
            "http://foreign.test/", "response", BytesIO(body), http_headers=head, warc_headers_dict={"WARC-Date": date}
        )
        writer.write_record(record)
        digest = record.rec_headers.get_header("WARC-Payload-Digest")
        for url, earlier, known in (
            ("again", "http://foreign.test/", digest),
            ("lost", "http://gone.test/", "sha1:" + "A" * 32),
        ):
            given = {"WARC-Date": later}
            writer.write_record(
                writer.create_revisit_record(f"http://foreign.test/{url}", known, earlier, date, head, given)
            )


def test_running_crawls_and_two_at_once(muniment: Any, shown: Shown, tmp_path: Path) -> None:
    pages = {"/": "<a href=/a>a</a><a href=/b>b</a>", "/a": "<p>first words</p>", "/b": "<p>later words</p>"}
    with GatedSite(pages, held={"/b"}) as site:
        crawl = muniment.start("crawl", site.url, "-o", "run", *QUIET, "--per-host", "1")
        site.wait_for("/b")
        with Replay(tmp_path, "run") as replay:
            assert "first words" in replay.get(f"/at/2026/{site.url}a", archived=True).text
            assert "Hello" in shown.replay.get(shown.at(""), archived=True).text, "beside another replay"
            assert replay.get(f"/at/2026/{site.url}b", archived=True).status == 404
            site.release()
            assert crawl.wait(60) == 0
            end = time.monotonic() + 30
            while (later := replay.get(f"/at/2026/{site.url}b", archived=True)).status != 200:
                assert time.monotonic() < end
            assert "later words" in later.text


def test_a_kill_leaves_no_process_and_no_home_is_needed(shown: Shown, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o500)
    given = {"HOME": str(home), "XDG_STATE_HOME": str(home / "state"), "XDG_DATA_HOME": str(home / "data")}
    replay = Replay(tmp_path, shown.cwd / "out", "--url", shown.url, "--at", "2026-01-01T00:00:00Z", **given)
    assert replay.opened["url"] == f"{replay.front}/at/20260101000000/{shown.url}"
    assert replay.opened["pid"] == replay.process.pid
    assert psutil.Process(replay.process.pid).children(recursive=True) == [], "no rewriter runs beside it"
    replay.end(signal.SIGKILL)


def test_a_signal_before_it_answers_ends_it(shown: Shown, tmp_path: Path) -> None:
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    command = [sys.executable, "-m", "muniment", "replay", str(shown.cwd / "out"), "--no-open", "--json"]
    for way, number, wait in ((), signal.SIGTERM, 0.0), ((), signal.SIGINT, 0.5), (("--exact",), signal.SIGTERM, 0.1):
        replay = subprocess.Popen(
            [*command, *way],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "TMPDIR": str(temporary)},
        )
        while not list(temporary.glob("muniment-replay-*")):
            assert replay.poll() is None
            time.sleep(0.005)
        time.sleep(wait)
        below = psutil.Process(replay.pid).children(recursive=True)
        replay.send_signal(number)
        assert (replay.communicate(timeout=60)[1], replay.returncode) == (b"", 0), way
        assert psutil.wait_procs(below, 60)[1] == []
        assert list(temporary.iterdir()) == []


def test_what_the_crawl_knows_of_a_page_that_is_missing(muniment: Any, tmp_path: Path) -> None:
    robots = Answer("User-agent: *\nDisallow: /kept-out\n", headers=(("Content-Type", "text/plain"),))
    away = "http://127.0.0.1:1/refused"
    links = "".join(f"<a href={to}>x</a>" for to in ("/ignored/1", "/kept-out", away, "/deep"))
    pages = {"/": links, "/robots.txt": robots, "/ignored/1": "x", "/kept-out": "x", "/deep": "<a href=/deeper>x</a>"}
    with GatedSite(pages) as site:
        options = ("--ignore", "/ignored/", "--level", "1", "--tries", "1", "--rounds", "0")
        assert muniment("crawl", site.url, "-o", "out", "--quiet", "--no-sitemaps", *options).code in {0, 4}
    with Replay(tmp_path, "out") as replay:
        for url, said in (
            (f"{site.url}ignored/1", "ignored"), (f"{site.url}kept-out", "robots"), (away, "fail"),
            (f"{site.url}deeper", "out of scope"),
        ):  # fmt: skip
            missing = replay.get(f"/at/2026/{url}")
            told = missing.text.partition("What the crawl knows of it")[2]
            assert (missing.status, said in told) == (404, True), (url, told)


def test_wrong_use_is_one_line(muniment: Any, shown: Shown, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "text").write_text("words")
    whole = tmp_path / "whole.wacz"
    run_muniment(tmp_path, "export", shown.cwd / "out", "--wacz", whole, "--quiet")
    (tmp_path / "cut.wacz").write_bytes(whole.read_bytes()[:-200])
    wabac = find_wabac()
    (tmp_path / "cut.js").write_bytes(wabac.script[:-20])
    (tmp_path / "old.js").write_bytes(wabac.script.replace(wabac.version.encode(), b"2.26.9", 1))
    port = shown.replay.front.rsplit(":", 1)[1]
    out = shown.cwd / "out"
    for arguments, said in (
        (("empty",), "no captures"),
        (("text",), "neither"),
        (("cut.wacz",), "not a whole WACZ"),
        (("missing",), "does not exist"),
        (("*.none",), "matches no"),
        ((out, "--port", port), "choose another with --port"),
        ((out, "--url", "http://["), "not a URL"),
        ((out, "--at", "soon"), "not a time"),
        ((out, "--wabac", "text"), "text is not wabac.js"),
        ((out, "--wabac", "none.js"), "none.js cannot be read"),
        ((out, "--wabac", "cut.js"), "cut.js is cut"),
        ((out, "--wabac", "old.js"), "old.js is wabac.js 2.26.9"),
    ):
        done = muniment("replay", *arguments, "--no-open")
        assert done.code == 2, (arguments, done)
        assert said in complaint(done), (arguments, done.stderr)
    assert "cut.js is cut" in complaint(muniment("replay", out, "--no-open", MUNIMENT_WABAC="cut.js"))
    done = muniment("replay", "empty", "--no-open", "--json")
    assert "error" in json.loads(done.stderr)
    assert list((tmp_path / "empty").iterdir()) == []
