"""`muniment replay --exact` in Debian's Chromium: original URLs and bytes, and no way out but the archive."""

from __future__ import annotations

import http.client
import os
import shutil
import signal
import stat
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest
from crawled import complaint, run_muniment
from tests.support.chromium import Chromium
from tests.support.gated_site import Answer, GatedSite
from tests.support.media import MARKUP, PAGES, check_media
from tests.support.png import rgb_at
from tests.support.replay import HOSTILE, Replay, Said, picture, tone

pytestmark = pytest.mark.long  # its tests stay together

GBK = "<title>\u6863\u6848</title><p id=text>\u4e2d\u6587\u9875\u9762</p>".encode("gbk")
PNG = (("Content-Type", "image/png"),)
SITE: dict[str, Any] = {
    **PAGES,
    "/": "<!doctype html><title>Home</title><link rel=stylesheet href=/s.css><h1 id=text>Hello</h1>"
    "<img id=red src=/red.png><img id=set srcset='/blue.png 1x' src=/none.png><iframe src=/frame></iframe>"
    "<video id=tone src=/tone.wav preload=auto></video>" + MARKUP + "<a id=gbk href=/gbk>gbk</a><a href=/hostile>h</a>"
    "<a href=/loop>l</a><a href=/empty>e</a><a href='/q?b=2&a=1'>q</a><a href=/cut>c</a>"
    "<script>document.title = location.href + ' ' + top.location.pathname</script>",
    "/s.css": "h1 { color: rgb(0, 128, 0) }",
    "/red.png": Answer(picture(255, 0, 0), headers=PNG),
    "/blue.png": Answer(picture(0, 0, 255), headers=PNG),
    "/frame": "<p id=text>framed</p>",
    "/tone.wav": Answer(tone(4), headers=(("Content-Type", "audio/wav"),)),
    "/gbk": Answer(GBK, headers=(("Content-Type", "text/html; charset=gbk"),)),
    "/hostile": HOSTILE,
    "/loop": Answer("", 302, (("Location", "/loop2"),)),
    "/loop2": Answer("", 302, (("Location", "/loop"),)),
    "/empty": Answer("", headers=(("Content-Type", "text/html"), ("Cache-Control", "max-age=99"))),
    "/q?b=2&a=1": "<p id=text>a query</p>",
}
QUIET = ("--quiet", "--no-robots", "--no-sitemaps")


@dataclass
class Exact:
    """A crawl that is replayed exactly."""

    cwd: Path
    url: str
    replay: Replay

    def get(self, url: str, *, method: str = "GET", **headers: str) -> Said:
        """What the proxy answers."""
        host, _, port = str(self.replay.opened["proxy"]).partition(":")
        with closing(http.client.HTTPConnection(host, int(port), timeout=60)) as connection:
            connection.request(method, url, headers={name.replace("_", "-"): value for name, value in headers.items()})
            answer = connection.getresponse()
            told = {name.lower(): value for name, value in answer.getheaders()}
            return Said(answer.status, told, answer.read())


@pytest.fixture(scope="module")
def exact(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Exact]:
    cwd = tmp_path_factory.mktemp("exact")
    with GatedSite(SITE) as site:
        run_muniment(cwd, "crawl", site.url, "-o", "out", *QUIET)
        site.requests.clear()
        with Replay(cwd, "out", "--exact") as replay:
            yield Exact(cwd, site.url, replay)
        assert site.requests == [], "the site itself was asked"


@pytest.fixture(scope="module")
def canary() -> Iterator[GatedSite]:
    with GatedSite({}) as site:
        yield site
        assert site.requests == [], "something went past the proxy"


@pytest.fixture(scope="module")
def browser(exact: Exact, canary: GatedSite) -> Iterator[Chromium]:
    """A Chromium whose every name is the canary, were it not for the proxy."""
    opened = exact.replay.opened
    flags = (
        f"--proxy-server=http://{opened['proxy']}", "--proxy-bypass-list=<-loopback>",
        f"--ignore-certificate-errors-spki-list={opened['spki']}", "--disable-quic",
        "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
        "--webrtc-ip-handling-policy=disable_non_proxied_udp",
    )  # fmt: skip
    with Chromium(*flags, names=f"MAP * {canary.url.split('/')[2]}, EXCLUDE 127.0.0.1") as chromium:
        yield chromium


def test_a_page_has_its_own_address_and_bytes(exact: Exact, browser: Chromium) -> None:
    page = browser.page()
    page.goto(f"{exact.replay.front}/")
    page.wait("!!document.querySelector('[data-testid=replay-front]')")
    page.run("[...document.links].find((one) => one.pathname.startsWith('/at/')).click()")
    page.wait(f"location.href === '{exact.url}' && document.readyState === 'complete'")
    assert page.run("document.title") == f"{exact.url} /", "scripts see their own location"
    assert page.run("document.getElementById('text').textContent") == "Hello"
    assert page.run("getComputedStyle(document.getElementById('text')).color") == "rgb(0, 128, 0)"
    page.wait("[...document.images].every((one) => one.complete && one.naturalWidth === 40)")
    assert page.wait("document.querySelector('iframe').contentDocument.body.innerText.trim()") == "framed"
    for name, colour in (("red", (255, 0, 0)), ("set", (0, 0, 255))):
        x, y = page.run(f"(() => {{ const at = {name}.getBoundingClientRect(); return [at.x + 20, at.y + 20] }})()")
        assert rgb_at(page.screenshot(), int(x), int(y)) == colour, name
    page.run("tone.currentTime = 3")
    page.wait("tone.readyState >= 3 && !tone.seeking && tone.duration === 4 && tone.currentTime === 3")
    check_media(page, page.screenshot)
    page.run("document.getElementById('gbk').click()")
    assert page.wait("document.title === '\u6863\u6848' && text.textContent") == "\u4e2d\u6587\u9875\u9762"
    page.goto(exact.url.replace("http://", "https://"))
    assert page.run("[location.protocol, text.textContent]") == ["https:", "Hello"], "TLS ends at the proxy"
    page.goto("http://no.test/nowhere")
    assert page.run("!!document.querySelector('[data-testid=not-archived]')")


def test_a_hostile_page_reaches_nothing(exact: Exact, browser: Chromium, canary: GatedSite) -> None:
    page = browser.page()
    page.goto(f"{exact.url}hostile")
    tried = page.wait("window.over")
    assert len(tried) > 15
    front = exact.replay.front
    for ask in (
        f"fetch('{front}/search').then((r) => r.text(), () => 'held')",
        f"fetch('{front}/at/2020/{exact.url}', {{mode: 'no-cors'}}).then((r) => r.type + r.status, () => 'held')",
        f"new Promise((told) => {{ const one = document.createElement('iframe'); one.src = '{front}/';"
        "one.onload = () => { try { told(one.contentDocument.body.innerHTML) } catch { told('held') } };"
        "document.body.append(one) })",
    ):
        assert page.run(ask) in {"held", "opaque0"}, ask
    ways = page.run("Object.keys(ways)")
    for way in ways:
        tab = browser.page()
        tab.goto(f"{exact.url}hostile")
        tab.wait("window.over")
        tab.run(f"void leave('{way}')")
        tab.wait("window.over === undefined || window.stayed")
    time.sleep(0.5)  # what was begun has gone its way
    assert canary.requests == []


def test_answers_of_the_proxy(exact: Exact) -> None:
    get, url = exact.get, exact.url
    page = get(url)
    assert (page.status, page.text) == (200, SITE["/"])
    assert page.headers["memento-datetime"].endswith("GMT")
    body = SITE["/tone.wav"].body
    for asked, status, start, stop in (
        ("bytes=10-19", 206, 10, 20), ("bytes=32000-", 206, 32000, len(body)), ("bytes=-4", 206, -4, None),
        ("bytes=5-999999", 206, 5, None), ("bytes=9-3", 200, 0, None), ("lines=1-2", 200, 0, None),
        ("bytes=0-1,5-6", 200, 0, None),
    ):  # fmt: skip
        part = get(f"{url}tone.wav", Range=asked)
        assert (part.status, part.body) == (status, body[start:stop]), asked
    beyond = get(f"{url}tone.wav", Range="bytes=999999-")
    assert (beyond.status, beyond.headers["content-range"]) == (416, f"bytes */{len(body)}")
    empty = get(f"{url}empty")
    assert (empty.status, empty.body, empty.headers["cache-control"]) == (200, b"", "no-store")
    assert get(url, method="HEAD").headers["content-length"] == str(len(SITE["/"]))
    assert get(f"{url}loop", Accept="text/html").status == 508
    assert "a query" in get(f"{url}q?a=1&b=2&_=5").text
    missing = get(f"{url}nowhere", Accept="text/html")
    assert (missing.status, "not-archived" in missing.text) == (404, True)
    assert "never seen" in missing.text
    assert get(f"{url}nowhere").text == "Not in this archive.\n"
    allowed = get(f"{url}q?b=2&a=1", Origin="http://other.test").headers
    assert allowed["access-control-allow-origin"] == "http://other.test"
    asked = get(url, method="OPTIONS", Origin="http://o.test", Access_Control_Request_Headers="x-a")
    assert (asked.status, asked.headers["access-control-allow-headers"]) == (204, "x-a")


def test_the_front_is_for_the_reader_alone(exact: Exact) -> None:
    get, front = exact.get, exact.replay.front
    for site in ("cross-site", "same-site", ""):
        assert get(f"{front}/", Sec_Fetch_Site=site).status == 403
    assert get(f"{front}/", Sec_Fetch_Site="none").status == 200
    assert get(f"{front}/", method="POST", Sec_Fetch_Site="none").status == 403
    sent = get(f"{front}/at/2026/{exact.url}gbk", Sec_Fetch_Site="same-origin")
    assert (sent.status, sent.headers["location"]) == (302, f"{exact.url}gbk")
    loose = get(f"{front}/at/2026/{exact.url}q?a=1&b=2&_=7", Sec_Fetch_Site="same-origin")
    assert (loose.status, "differs in the order" in loose.text) == (200, True), "there is no banner to say it later"
    assert f'href="{exact.url}q?b=2&amp;a=1"' in loose.text
    assert get(f"{front}/raw/2026/{exact.url}gbk", Sec_Fetch_Site="same-origin").body == GBK
    # another browser, which has no proxy, is not led to the live site
    assert exact.replay.get(f"/at/2026/{exact.url}").status == 404
    assert exact.replay.get("/", Host="evil.test").status == 421


def test_the_time_chosen_on_the_front_holds(tmp_path: Path) -> None:

    with GatedSite({"/": "<p>first words</p>"}) as site:
        run_muniment(tmp_path, "crawl", site.url, "-o", "one", *QUIET)
        time.sleep(1.1)
        site.pages["/"] = "<p>later words</p>"
        run_muniment(tmp_path, "crawl", site.url, "-o", "two", *QUIET)
    with Replay(tmp_path, "one", "two", "--exact") as replay:
        exact = Exact(tmp_path, site.url, replay)
        assert "later" in exact.get(site.url).text
        assert "the newest" in exact.get(f"{replay.front}/", Sec_Fetch_Site="none").text
        exact.get(f"{replay.front}/at/2020/{site.url}", Sec_Fetch_Site="none")
        assert "first" in exact.get(site.url).text
        assert "nearest to 20" in exact.get(f"{replay.front}/", Sec_Fetch_Site="none").text
        exact.get(f"{replay.front}/at/2999/{site.url}", Sec_Fetch_Site="none")
        assert "later" in exact.get(site.url).text
    with Replay(tmp_path, "one", "two", "--exact", "--url", site.url, "--at", "2020") as replay:
        assert replay.opened["url"] == f"{replay.front}/at/20200101000000/{site.url}"
        assert "first" in Exact(tmp_path, site.url, replay).get(site.url).text


def chromium_without_window(place: Path) -> dict[str, str]:
    """An environment in which the browser is Debian's, without a window."""
    program = place / "chromium"
    program.write_text(f'#!/bin/sh\nexec {shutil.which("chromium")} --headless=new --disable-gpu "$@"\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return {"PATH": f"{place}:{os.environ['PATH']}"}


def test_its_own_browser_opens_the_page_and_ends_with_it(exact: Exact, tmp_path: Path) -> None:
    given = chromium_without_window(tmp_path)
    for number in (signal.SIGTERM, signal.SIGKILL):
        replay = Replay(exact.cwd, "out", "--exact", "--url", exact.url, browser=True, **given)
        below = children(replay, "--user-data-dir=")
        everything = psutil.Process(replay.process.pid).children(recursive=True)
        profile = next(one for one in below[0].cmdline() if one.startswith("--user-data-dir=")).partition("=")[2]
        assert "muniment-replay-" in profile
        assert f"--proxy-server=http://{replay.opened['proxy']}" in below[0].cmdline()
        code = replay.end(number)
        _, alive = psutil.wait_procs(everything, 60)
        assert not alive, alive
        if number == signal.SIGTERM:
            assert code == 0
            assert not Path(profile).exists()
    replay = Replay(exact.cwd, "out", "--exact", browser=True, **given)
    first = children(replay, "--user-data-dir=")[0]
    first.terminate()  # as when the reader closes its window
    assert replay.process.wait(60) == 0
    replay.end()


def children(replay: Replay, word: str) -> list[psutil.Process]:
    end = time.monotonic() + 60
    while True:
        below = psutil.Process(replay.process.pid).children(recursive=True)
        if found := [one for one in below if is_chromium(one, word)]:
            return found
        assert time.monotonic() < end, "no browser was started"
        time.sleep(0.1)


def is_chromium(process: psutil.Process, word: str) -> bool:
    try:
        return word in " ".join(process.cmdline()) and "chromium" in process.exe()
    except psutil.Error:  # it has ended meanwhile
        return False


def test_without_a_browser_there_is_one_line(muniment: Any, exact: Exact, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    done = muniment("replay", exact.cwd / "out", "--exact")
    assert done.code == 2, done
    assert "apt install chromium" in complaint(done)
