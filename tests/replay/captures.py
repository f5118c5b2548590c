"""Captures of the sites: each is served, crawled by the browser engine, and looked at while it is still there."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.replay.sites.table import Site
from tests.replay.views import HEIGHT, TEXT, WIDTH, View, Watch
from tests.support.chromium import BrowserPage, Chromium
from tests.support.firefox import Firefox
from tests.support.nginx import Nginx
from tests.support.replay import Replay

__all__ = ["FLAGS", "Captured", "Looked", "capture", "exactly", "in_the_page", "live", "texts_in_firefox"]

FLAGS = ("--enable-unsafe-swiftshader", "--force-prefers-reduced-motion")
"""Of Chromium: three dimensions without a graphics card, and as little motion as a page can do with."""
_TYPES = """types {
    text/html html; text/css css; text/plain txt; text/xml xml; text/javascript js mjs; application/json json map ipynb;
    application/wasm wasm; application/manifest+json webmanifest; text/markdown md; text/vtt vtt;
    image/png png; image/svg+xml svg; image/x-icon ico; font/woff2 woff2; font/woff woff; font/ttf ttf;
    application/vnd.apple.mpegurl m3u8; video/mp2t ts; model/obj obj;
}
location / { %s }"""
_CRAWL = (
    "--browser", "--allow-private", "--tries", "1", "--rounds", "0", "--no-sitemaps", "--no-robots",
    "--no-offsite-links", "--viewport", f"{WIDTH}x{HEIGHT}", "--screenshots", "none", "--render", "none", "--quiet",
)  # fmt: skip
_STEP = """if (location.pathname + location.search === %s) {
  const shown = async (words) => {
    for (let at = 0; at < 600 && !(%s).includes(words); at += 1) await new Promise((done) => setTimeout(done, 50));
  };
  await shown(%s);
  %s;
  await shown(%s);
}"""
"""The step of a site as a script for the crawl."""
_OVER_THE_BANNER = f"""const over = new CSSStyleSheet();
over.replaceSync('iframe {{ position: fixed; inset: 0; z-index: 9; width: {WIDTH}px; height: {HEIGHT}px; border: 0 }}');
document.adoptedStyleSheets = [over];"""
"""The frame of a replay in the place and size of a live page."""


@dataclass(frozen=True)
class Looked:
    """The two views of a site."""

    first: View
    second: View


@dataclass(frozen=True)
class Captured:
    """A crawl of a site whose server is there only when it is asked for."""

    site: Site
    cwd: Path
    root: Path
    port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}{self.site.start}"

    def served(self) -> Nginx:
        """The server of the site, on the port where it was crawled."""
        return Nginx(self.root, ports=(self.port,), server=_TYPES % self.site.server)


def capture(site: Site, cwd: Path) -> Captured:
    """Serve a site and crawl it."""
    root = site.root()
    with Nginx(root, server=_TYPES % site.server) as server:
        captured = Captured(site, cwd, root, server.ports[0])
        base = server.url.rstrip("/")
        starts = [base + page for page in (site.start, *site.pages)]
        options: list[object] = [*_CRAWL, *site.options]
        if site.step_is_captured:
            script = cwd / "step.js"
            script.write_text(_step(site))
            options += ["--custom-js", script]
        command = [sys.executable, "-m", "muniment", "crawl", *starts, "-o", "out", *options]
        done = subprocess.run(list(map(str, command)), cwd=cwd, capture_output=True, text=True, check=False)
        assert done.returncode in {0, 4}, done.stderr
    return captured


def _step(site: Site) -> str:
    first, then = (json.dumps(words) for words in (site.shows, site.then_shows))
    return _STEP % (json.dumps(site.start), TEXT, first, site.step, then)


def live(captured: Captured, browser: Chromium) -> Looked:
    """The views of the site itself."""
    with captured.served(), browser.fresh():
        page = browser.page(WIDTH, HEIGHT)
        return _look(captured.site, browser, page, lambda: _top(browser, page, captured.url))


def exactly(captured: Captured, browser: Chromium) -> Looked:
    """The views in an exact replay."""
    with Replay(captured.cwd, "out", "--exact", "--url", captured.url) as replay:
        proxied = {"proxyServer": replay.opened["proxy"], "proxyBypassList": "<-loopback>"}
        with browser.fresh(**proxied):
            page = browser.page(WIDTH, HEIGHT)
            return _look(captured.site, browser, page, lambda: _top(browser, page, captured.url))


def in_the_page(captured: Captured, browser: Chromium) -> Looked:
    """The views below the banner of a replay."""
    with Replay(captured.cwd, "out", "--url", captured.url) as replay, browser.fresh():
        page = browser.page(WIDTH, HEIGHT)
        browser.call("Page.addScriptToEvaluateOnNewDocument", {"source": _OVER_THE_BANNER}, page.session)
        return _look(captured.site, browser, page, lambda: _framed(browser, page, replay))


def _look(site: Site, browser: Chromium, page: BrowserPage, opened: Callable[[], Watch]) -> Looked:
    browser.call("Emulation.setFocusEmulationEnabled", {"enabled": True}, page.session)
    watch = opened()
    first = watch.view(site.shows)
    watch.do(site.step)
    return Looked(first, watch.view(site.then_shows))


def _top(browser: Chromium, page: BrowserPage, url: str) -> Watch:
    page.goto(url)
    return Watch(browser, page, page)


def _framed(browser: Chromium, page: BrowserPage, replay: Replay) -> Watch:
    page.goto(replay.opened["url"])
    return Watch(browser, page, page.frame("/at/"))


def texts_in_firefox(captured: Captured) -> tuple[str, str]:
    """The text of the first view in Firefox, live and below the banner of a replay."""
    words = f"{TEXT}.includes({json.dumps(captured.site.shows)})"
    with Firefox(WIDTH, HEIGHT) as browser:
        with captured.served():
            browser.goto(captured.url)
            was = _settled(browser, words)
        with Replay(captured.cwd, "out", "--url", captured.url) as replay:
            browser.goto(replay.opened["url"])
            browser.enter_frame()
            return was, _settled(browser, words)


def _settled(browser: Firefox, words: str) -> str:
    """The text once it has these words and is the same three times."""
    browser.wait(words)
    last, same = "", 0
    while same < 3:
        time.sleep(0.5)
        text = str(browser.run(TEXT))
        same, last = (same + 1 if text == last else 0), text
    return last
