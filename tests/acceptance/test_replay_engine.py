"""What wabac.js leaves to be mended, seen in Chromium: modules, workers, cookies, listeners, frames, the end."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from crawled import run_muniment
from tests.support.chromium import BrowserPage, Chromium
from tests.support.gated_site import Answer, GatedSite
from tests.support.replay import Replay

pytestmark = pytest.mark.long

_NO_SUBDOMAINS = "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost"
JS = (("Content-Type", "text/javascript"),)
HOME = """<!doctype html><title>Home</title><h1 id=text>Hello</h1>
<script>
  var seen = { bare: location.pathname };
  addEventListener("message", (event) => { seen.message = event.data; });
  postMessage("a message", "*");
  document.cookie = "kept=1; path=/";
  document.cookie = "gone=1";
  document.cookie = "gone=; max-age=0";
  seen.cookie = document.cookie;
</script>
<script type=importmap>{"imports": {"once": "./once.js", "parts/": "./"}}</script>
<script type=module>const top = 1; seen.inline = [import.meta.url, top, location.pathname];</script>
<script type=module src=/module.js></script>
<a href=/teapot>x</a><a href=/moved>y</a><a href=/picture>z</a>"""
MODULE = """import once from "once"; import again from "./once.js";
const parent = 2; export function self() {}
seen.module = [import.meta.url, location.pathname, once === again];
const said = (name, worker) => { worker.onmessage = ({ data }) => { seen[name] = data; }; };
const blob = (text) => URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
said("worker", new Worker("/worker.js"));
said("moduleWorker", new Worker(new URL("./module_worker.js", import.meta.url), { type: "module" }));
said("blobWorker", new Worker(blob("postMessage(location.origin)")));
said("blobImport", new Worker(blob(`importScripts("${new URL("./imported.js", import.meta.url)}")`)));
said("blobModule", new Worker(blob("postMessage(location.origin)"), { type: "module" }));
const late = document.createElement("script");
late.type = "module";
late.textContent = 'import once from "./once.js"; seen.late = [location.pathname, typeof once];';
document.head.append(late);
seen.dynamic = (await import("./once.js")).default === once;
seen.byBeginning = (await import("parts/once.js")).default === once;
"""
SITE: dict[str, Any] = {
    "/": HOME,
    "/module.js": Answer(MODULE, headers=JS),
    "/once.js": Answer("export default {}", headers=JS),
    "/worker.js": Answer("postMessage([location.href, self.location.origin])", headers=JS),
    "/imported.js": Answer("postMessage('imported')", headers=JS),
    "/module_worker.js": Answer("import './once.js'; postMessage([location.href])", headers=JS),
    "/teapot": Answer("<p id=text>short and stout</p>", 418, (("Content-Type", "text/html"),)),
    "/moved": Answer("", 302, (("Location", "/teapot"),)),
    "/picture": Answer(
        "<svg xmlns='http://www.w3.org/2000/svg'><script>document.documentElement.id = 'ran'</script></svg>",
        headers=(("Content-Type", "image/svg+xml"),),
    ),
}


@dataclass
class Shown:
    """A crawl by browsers that is replayed."""

    cwd: Path
    url: str
    replay: Replay

    def open(self, browser: Chromium, path: str = "") -> BrowserPage:
        page = browser.page()
        page.goto(f"{self.replay.front}/at/2026/{self.url}{path}")
        return page.frame("mp_/")


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shown]:
    cwd = tmp_path_factory.mktemp("engine")
    with GatedSite(SITE) as site:
        run_muniment(cwd, "crawl", site.url, "-o", "out", "--browser", "--quiet", "--no-robots", "--no-sitemaps")
        url = site.url
    with Replay(cwd, "out") as replay:
        yield Shown(cwd, url, replay)


def test_scripts_see_their_site(shown: Shown, browser: Chromium) -> None:
    page = browser.page()
    page.goto(f"{shown.replay.front}/at/2026/{shown.url}")
    frame = page.frame("mp_/")
    frame.wait("Object.keys(seen).length >= 13", 30)
    time.sleep(1)  # the banner looks a while after the page has loaded
    assert page.run("document.querySelector('[data-testid=replay-url]').textContent") == shown.url
    url, origin = shown.url, shown.url.rstrip("/")
    assert frame.run("seen") == {
        "bare": "/",
        "message": "a message",
        "cookie": "kept=1",
        "inline": [url, 1, "/"],
        "module": [f"{url}module.js", "/", True],
        "late": ["/", "object"],
        "dynamic": True,
        "byBeginning": True,
        "worker": [f"{url}worker.js", origin],
        "moduleWorker": [f"{url}module_worker.js"],
        "blobWorker": origin,
        "blobImport": "imported",
        "blobModule": origin,
    }


def test_pages_of_any_status_and_recorded_redirects_are_shown(shown: Shown, browser: Chromium) -> None:
    frame = shown.open(browser, "moved")
    assert frame.wait("document.getElementById('text')?.textContent") == "short and stout"
    assert frame.run("performance.getEntriesByType('navigation')[0].responseStatus") == 418
    assert frame.run("location.href").endswith(f"/{shown.url}teapot")


def test_a_picture_in_a_frame_runs_no_script(shown: Shown, browser: Chromium) -> None:
    frame = shown.open(browser, "picture")
    frame.wait("document.documentElement.localName === 'svg' && document.readyState === 'complete'")
    assert frame.run("document.documentElement.id") == ""


def test_a_page_whose_replay_is_over_clears_what_it_stored(shown: Shown, browser: Chromium, tmp_path: Path) -> None:
    first = Replay(shown.cwd, "out")
    page = browser.page()
    page.goto(f"{first.front}/at/2026/{shown.url}")
    frame = page.frame("mp_/")
    frame.wait("Object.keys(seen).length >= 13", 30)
    frame.run("localStorage.setItem('a', '1')")
    first.end(signal.SIGKILL)
    with Replay(shown.cwd, "out", "--port", first.front.rsplit(":", 1)[1]) as second:
        frame.run("void document.querySelector('a').click()")
        frame.wait("document.querySelector('h1')?.textContent === 'This replay has ended'")
        assert frame.run("localStorage.length") == 0
        frame.wait("navigator.serviceWorker.getRegistrations().then((all) => all.length === 0)")
        page.goto(f"{second.front}/at/2026/{shown.url}")
        assert page.frame(second.content).wait("document.getElementById('text')?.textContent") == "Hello"


def test_a_browser_without_service_workers_says_so(shown: Shown) -> None:
    with Chromium("--disable-features=IsolateOrigins,site-per-process", "--disable-site-isolation-trials") as browser:
        page = browser.page()
        page.before_documents("delete Navigator.prototype.serviceWorker")  # frames of this process, too
        page.goto(f"{shown.replay.front}/at/2026/{shown.url}")
        end = time.monotonic() + 60
        while "needs a service worker" not in (text := page.frame_text()):
            assert time.monotonic() < end, text
    assert "muniment replay PATH --exact" in text
    assert f"{shown.replay.front}/raw/2026" in text


def test_a_browser_that_resolves_no_names_below_localhost_uses_that_name(shown: Shown) -> None:
    with Replay(shown.cwd, "out") as replay, Chromium(names=_NO_SUBDOMAINS) as browser:
        page = browser.page()
        page.goto(f"{replay.front}/at/2026/{shown.url}")
        frame = page.frame("//localhost:")
        assert frame.wait("document.getElementById('text')?.textContent") == "Hello"
