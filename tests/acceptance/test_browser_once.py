"""What browsers and the engine ask for, each once: what a page brought along, what failed in it, what it offers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.logging_site import LoggingSite, plain
from tests.support.script_site import ScriptSite, script_site

from forked import Forked

PLAIN = (
    "--allow-private",
    "--tries",
    "1",
    "--rounds",
    "0",
    "--no-sitemaps",
    "--behaviors",
    "none",
    "--screenshots",
    "none",
)
QUICK = (*PLAIN, "--browser")
AUTO = (*PLAIN, "--engine", "auto")
WORDS = b"word " * 60
SHARED = b"<link rel=stylesheet href=/a.css><script src=/a.js></script><img src=/red.svg>"
LAUNCH, PATIENCE_S = Forked, 180


@pytest.fixture
def site() -> Iterator[ScriptSite]:
    with script_site() as served:
        yield served


def asked_for(site: ScriptSite, *paths: str) -> dict[str, int]:
    return {path: site.asked[f"GET {path}"] for path in paths}


@pytest.mark.parametrize("workers", ["1", "2"])
def test_the_engine_does_not_ask_for_what_a_browser_got_for_another_page(
    muniment: Any, site: ScriptSite, tmp_path: Path, workers: str
) -> None:
    out = tmp_path / "out"
    for path, kind in (("/a.css", "text/css"), ("/a.js", "text/javascript"), ("/frame.html", "text/html")):
        site.files[path] = (kind, b" ")
    # only the first page is rendered; the others come once it is done
    site.files["/"] = (
        "text/html",
        SHARED + b"<iframe src=/frame.html></iframe><div id=app></div><a href=/p0.html>p</a>",
    )
    for number in range(4):
        links = b"<a href=/p%d.html>p</a><a href=/red.svg>whole</a>" % (number + 1)
        site.files[f"/p{number}.html"] = ("text/html", SHARED + links + WORDS)
    site.files["/p4.html"] = ("text/html", b"<a href=/frame.html>its own page</a>" + WORDS)
    command = ("crawl", f"{site.base}/", "-o", out, *AUTO, "--workers", workers)
    assert muniment(*command).code == 0
    assert asked_for(site, "/a.css", "/a.js", "/red.svg") == {"/a.css": 1, "/a.js": 1, "/red.svg": 1}
    # a page links to the document of the frame, so it is a page of the crawl, too, and has its links
    assert asked_for(site, "/p4.html", "/frame.html") == {"/p4.html": 1, "/frame.html": 2}
    assert "asked for by a browser" in muniment("why", f"{site.base}/a.css", "-o", out).stdout
    assert muniment("check", out).code == 0


def test_what_failed_in_a_browser_is_tried_again_by_the_engine(muniment: Any, tmp_path: Path) -> None:
    page = plain(b"<img src=/busy.png><img src=/gone.png><img src=/cut.png>", "text/html")
    cut = b"HTTP/1.1 200 OK\r\nContent-Type: image/png\r\nContent-Length: 99\r\nConnection: close\r\n\r\nhalf"
    busy, gone = (b"HTTP/1.1 %b\r\nContent-Length: 0\r\n\r\n" % status for status in (b"500 Busy", b"404 Gone"))
    with LoggingSite({"/page": page, "/busy.png": busy, "/gone.png": gone, "/cut.png": cut}) as site:
        muniment("crawl", site.url("/page"), "-o", tmp_path / "out", *QUICK, "--tries", "2")
    # once by the browser; then by the engine what another try may better, twice
    paths = ("/busy.png", "/gone.png", "/cut.png")
    assert {path: len(site.asked(path)) for path in paths} == {"/busy.png": 3, "/gone.png": 1, "/cut.png": 3}


def test_a_page_that_scripts_fetched_ahead_is_a_page_of_the_crawl(
    muniment: Any, site: ScriptSite, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    ahead = b"<link rel=prefetch href=/one.html><script>fetch('/two.html')</script>"
    site.files["/"] = ("text/html", ahead + b"<a href=/one.html>1</a><a href=/two.html>2</a>" + WORDS)
    site.files["/one.html"] = ("text/html", b"<a href=/three.html>3</a>" + WORDS)
    site.files["/two.html"] = ("text/html", b"<a href=/four.html>4</a>" + WORDS)
    site.files |= {f"/{name}.html": ("text/html", WORDS) for name in ("three", "four")}
    done = muniment("crawl", f"{site.base}/", "-o", out, *QUICK)
    assert done.code == 0, done.stderr
    assert asked_for(site, "/three.html", "/four.html") == {"/three.html": 1, "/four.html": 1}


def test_a_document_that_waited_is_captured_with_the_page_that_leads_to_it(
    muniment: Any, site: ScriptSite, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    others = [f"/p{number}.html" for number in range(12)]
    links = "".join(f"<a href={path}>p</a>" for path in ["/gate.html", *others, "/home.html"])
    site.files["/"] = ("text/html", links.encode() + WORDS)
    site.files["/gate.html"] = ("text/html", b"<script>location.href = '/home.html'</script>")
    site.files |= dict.fromkeys(others, ("text/html", WORDS))
    site.files["/home.html"] = ("text/html", b"<a href=/two.html>two</a>" + WORDS)
    done = muniment("crawl", f"{site.base}/", "-o", out, *QUICK, "--tabs", "1", "--workers", "1", "--per-host", "1")
    assert done.code == 0, done.stderr
    paths = ("/", "/gate.html", *others, "/home.html", "/two.html")
    assert asked_for(site, *paths) == dict.fromkeys(paths, 1)
    assert f"{len(paths)} pages captured, 0 missing" in done.stderr


def test_images_that_foreign_style_sheets_offer_are_fetched(muniment: Any, site: ScriptSite, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with script_site() as other:
        sets = b"@media all { p { background: image-set('1x.png' 1x, url(2x.png) 2x) } }"
        other.files["/deep/a.css"] = ("text/css", b"@import 'b.css'; i { background: url(unused.png) } " + sets)
        other.files["/deep/b.css"] = (
            "text/css",
            b"b { background: -webkit-image-set(url(/i1.png) 1x, url(/i2.png) 2x) }",
        )
        for path in ("/deep/1x.png", "/deep/2x.png", "/i1.png", "/i2.png", "/deep/unused.png"):
            other.files[path] = ("image/svg+xml", site.files["/red.svg"][1])
        page = f"<link rel=stylesheet href={other.base.replace('127.0.0.1', 'localhost')}/deep/a.css><p>a<b>b</b></p>"
        site.files["/"] = ("text/html", page.encode())
        assert muniment("crawl", f"{site.base}/", "-o", out, *QUICK).code == 0
        paths = ("/deep/a.css", "/deep/b.css", "/deep/1x.png", "/deep/2x.png", "/i1.png", "/i2.png", "/deep/unused.png")
        assert asked_for(other, *paths) == dict.fromkeys(paths, 1) | {"/deep/unused.png": 0}
    assert muniment("check", out).code == 0
