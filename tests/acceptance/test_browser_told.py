"""What is said of pages in browsers: by the display, the summary and `why`; and what `set` changes while they run."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.script_site import ScriptSite, script_site

from forked import Forked

PLAIN = ("--allow-private", "--tries", "1", "--rounds", "0", "--no-sitemaps")
QUICK = (*PLAIN, "--browser", "--behaviors", "none", "--screenshots", "none")
WORDS = b"word " * 60
LAUNCH, PATIENCE_S = Forked, 180


@pytest.fixture
def site() -> Iterator[ScriptSite]:
    with script_site() as served:
        yield served


def wait_for(what: Any, seconds: float = 60.0) -> Any:
    end = time.monotonic() + seconds
    while not (found := what()):
        assert time.monotonic() < end
        time.sleep(0.05)
    return found


def polled(site: ScriptSite, seconds: float = 0.8) -> set[str]:
    """The pages that ask now and again, as far as they do so within this time."""
    before = dict(site.asked)
    time.sleep(seconds)
    return {asked for asked, count in site.asked.items() if "/poll" in asked and count > before.get(asked, 0)}


def test_the_summary_counts_pages_and_browsers(muniment: Any, site: ScriptSite, tmp_path: Path) -> None:
    site.files["/eats.html"] = (
        "text/html",
        b"<script>const all = []; setInterval(() => all.push(new Array(2e6).fill(1.5)), 50);"
        b"setInterval(() => fetch('/data.json'), 200)</script>",
    )
    # it seems settled when the machine is busy, and is held open then
    script = tmp_path / "stay.js"
    script.write_text("if (location.pathname === '/eats.html') await new Promise(() => {}); 1")
    starts, most = (f"{site.base}/", f"{site.base}/eats.html"), ("--browser-memory", "400MiB", "--custom-js", script)
    done = muniment("crawl", *starts, "-o", tmp_path / "out", *QUICK, "--level", "0", *most)
    assert done.code == 0, done.stderr
    assert re.search(r"Rendered in a browser: 1 page, 1 failed, \d browsers? replaced", done.stderr), done.stderr


def test_without_a_browser_the_summary_says_how_many_pages_need_one(
    muniment: Any, site: ScriptSite, tmp_path: Path
) -> None:
    site.files["/"] = ("text/html", b"<a href=/app.html>a</a><a href=/two.html>b</a><a href=/red.svg>c</a>" + WORDS)
    site.files["/app.html"] = ("text/html", b"<script src=/app.js></script><div id=root></div><a href=/>x</a>" + WORDS)
    done = muniment("crawl", f"{site.base}/", "-o", tmp_path / "out", *PLAIN)
    assert done.code == 0, done.stderr
    assert "About 1 page needs a browser to be whole: --engine auto renders such" in done.stderr
    assert "Rendered" not in done.stderr


def test_why_says_why_a_page_was_rendered_or_not(muniment: Any, site: ScriptSite, tmp_path: Path) -> None:
    out = tmp_path / "out"
    site.files["/two.html"] = ("text/html", b"<!doctype html><script>1</script><p>%b<a href=/x>x</a>" % WORDS)
    site.files["/notes.txt"] = ("text/plain", b"notes")
    starts = [f"{site.base}/{path}" for path in ("", "two.html", "notes.txt", "gone.html")]
    done = muniment("crawl", *starts, "-o", out, *QUICK[:-5], "--engine", "auto", "--level", "0")
    assert done.code == 0, done.stderr
    said = {url.removeprefix(f"{site.base}/"): muniment("why", url, "-o", out) for url in starts}
    assert "  rendered: it has an empty element that scripts fill\n" in said[""].stdout
    assert "  not rendered: it needs no browser\n" in said["two.html"].stdout
    assert "  not rendered: it is text/plain\n" in said["notes.txt"].stdout
    assert "  not rendered: its status is 404\n" in said["gone.html"].stdout
    told = json.loads(muniment("why", f"{site.base}/", "-o", out, "--json").stdout)
    assert told["rendering"] == "rendered: it has an empty element that scripts fill"
    other = tmp_path / "other"
    assert muniment("crawl", starts[0], "-o", other, *QUICK, "--level", "0").code == 0
    assert "  rendered: every page is\n" in muniment("why", starts[0], "-o", other).stdout


def test_a_document_that_a_script_leads_to_is_captured_with_its_page(
    muniment: Any, site: ScriptSite, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    site.files["/"] = ("text/html", b"<script>location.href = '/home.html'</script>")
    site.files["/home.html"] = ("text/html", b"<a href=/two.html>two</a>" + WORDS)
    site.files["/two.html"] = ("text/html", b"<title>two</title><a href=/home.html>home</a>" + WORDS)
    done = muniment("crawl", f"{site.base}/", "-o", out, *QUICK)
    assert done.code == 0, done.stderr
    assert "3 pages captured, 0 missing, 0 failed" in done.stderr
    assert [site.asked[f"GET /{path}"] for path in ("", "home.html", "two.html")] == [1, 1, 1]
    assert json.loads(muniment("results", f"{site.base}/", "-o", out, "--json").stdout)["final_url"].endswith(
        "/home.html"
    )
    assert "captured: status 200" in muniment("why", f"{site.base}/home.html", "-o", out).stdout
    assert muniment("check", out).code == 0


def test_pages_are_read_as_a_visitor_sees_them(muniment: Any, site: ScriptSite, tmp_path: Path) -> None:
    """Below 400 any answer is a page; shadow roots have text; a download does not start; the refused has its type."""
    out, link = tmp_path / "out", "Object.assign(document.createElement('a'), {href: '%s', download: ''})"
    page = f"""<p>seen</p><div id=host></div><a id=shown href=/shown.zip download>get</a><script>
    document.getElementById('host').attachShadow({{mode: 'open'}}).innerHTML = '<style>p {{ }}</style><p>in shadow</p>';
    document.getElementById('shown').click(); {link % "/loose.zip"}.click(); fetch('/ignored/x').catch(() => 0);
    fetch('/red.svg');</script>"""
    site.files["/"] = ("text/html", page.encode())
    site.statuses["/"] = 300
    done = muniment("crawl", f"{site.base}/", "-o", out, *QUICK, "--level", "0", "--ignore", "/ignored/")
    assert done.code == 0, done.stderr
    saved = tmp_path / "saved"
    found = json.loads(muniment("results", f"{site.base}/", "-o", out, "--save", saved, "--json").stdout)
    assert {f"{site.base}/shown.zip", f"{site.base}/loose.zip"} <= set(found["outlinks"])
    assert not [asked for asked in site.asked if asked.endswith(".zip")]
    assert (saved / "text.txt").read_text().split("\n")[-1] == "in shadow"
    assert "p { }" not in (saved / "text.txt").read_text()
    info = json.loads((saved / "pageinfo.json").read_text())
    assert info["status"] == 300
    refused = info["urls"][f"{site.base}/ignored/x"]
    assert (refused["type"], refused["error"]) == ("fetch", "ignored")
    assert "asked for by an open page" in muniment("why", f"{site.base}/red.svg", "-o", out).stdout


@pytest.mark.long
def test_set_changes_tabs_and_times_of_a_running_crawl(muniment: Any, site: ScriptSite, tmp_path: Path) -> None:
    out = tmp_path / "out"
    links = b"".join(b"<a href=/p%d.html>p</a>" % number for number in range(12))
    site.files["/"] = ("text/html", links + WORDS)
    for number in range(12):
        asks = b"<script>setInterval(() => fetch('/poll?%d'), 150)</script>" % number
        # it grows for as long as it is scrolled
        grows = b"<script>onscroll = () => document.body.append(document.createElement('pre'))</script>"
        site.files[f"/p{number}.html"] = ("text/html", asks + grows + b"<div style='height: 9999px'>")
    site.files["/poll"] = ("text/plain", b"1")
    options = (*QUICK[:-4], "--behaviors", "scroll", "--screenshots", "none")
    times = ("--tabs", "1", "--page-time", "40", "--behavior-time", "30")
    running = muniment.start("crawl", f"{site.base}/", "-o", out, *options, *times)
    wait_for(lambda: polled(site))
    assert len(polled(site)) == 1
    assert muniment("set", "tabs=3", "-o", out).code == 0
    wait_for(lambda: len(polled(site)) == 3)
    assert muniment("set", "behavior-time=0.5", "page-time=2", "-o", out).code == 0
    # those that were open stay for their time; each of the others ends within two seconds
    _, said = running.communicate(timeout=150)
    assert running.returncode == 0, said
    assert "Rendered in a browser: 13 pages, 0 failed" in said
    assert re.search(r"; [123] tabs?, the oldest for \d+ s \((load|behaviors|records)\): http://127", said), said
    polls = {asked: count for asked, count in site.asked.items() if "/poll" in asked}
    short = [count for count in polls.values() if count <= 5 / 0.15]
    assert len(polls) == 12
    assert len(short) >= 9, polls
    changes = [json.loads(line) for line in (out / "crawl.jsonl").read_text().splitlines() if '"change"' in line]
    assert {"tabs", "page-time", "behavior-time"} <= {one["what"] for one in changes}
