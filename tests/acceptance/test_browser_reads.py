"""What the browser engine reads: routes in fragments, answers without a document, odd types and codings."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from tests.support.gated_site import Answer, GatedSite

from forked import Forked

LAUNCH, PATIENCE_S = Forked, 180
OPTIONS = (
    "--browser", "--allow-private", "--no-sitemaps", "--no-robots", "--behaviors", "none", "--screenshots", "none",
)  # fmt: skip
HTML = ("Content-Type", "text/html; charset=utf-8")
SCRIPT = (("Content-Type", "text/javascript"),)
APP = """
const show = async () => {
  const route = location.hash.replace(/^#!?\\//, '') || 'home';
  document.title = route;
  const data = await (await fetch('/data?' + route)).text();
  document.getElementById('root').innerHTML = `<h1>${route}</h1><p>${data}</p>`
    + '<a href="#/">home</a> <a href="#/about">about</a> <a href="#!/team?a=1">team</a> <a href="#part">part</a>';
};
addEventListener('hashchange', show);
addEventListener('DOMContentLoaded', show);
"""
SHELL = "<!doctype html><script src=/app.js></script><div id=root></div>"
FILLED = "<!doctype html><script>document.write('<a href=/%s>x</a>')</script>"
PAGES: dict[str, Any] = {
    "/app/": SHELL,
    "/app.js": Answer(APP, headers=SCRIPT),
    **{f"/data?{route}": "d" for route in ("home", "start", "about", "team?a=1")},
    "/odd": "<link rel=stylesheet href=/s.css><a href=/empty>e</a><a href=/untyped>u</a><a href=/twice>t</a>"
    "<a href=/coded>c</a><a href=/plain>p</a><a href=/leaves>l</a>",
    "/s.css": Answer(
        "body { background: url(s.png) }", headers=(("Content-Type", "text/css"), ("Content-Encoding", "utf-8"))
    ),
    "/s.png": Answer("x", headers=(("Content-Type", "image/png"),)),
    "/empty": Answer("", 204, (HTML,)),
    "/untyped": Answer(FILLED % "by-untyped", headers=()),
    "/twice": Answer(FILLED % "by-twice", headers=(("Content-Type", "text/plain"), HTML, ("Content-Type", "nonsense"))),
    "/coded": Answer(FILLED % "by-coded", headers=(HTML, ("Content-Encoding", "utf-8"))),
    "/plain": Answer(FILLED % "no", headers=(HTML, ("Content-Type", "text/plain"))),
    "/leaves": "<!doctype html><script>location = '/nothing'</script>stays",
    "/nothing": Answer("", 204, ()),
    **{f"/by-{name}": "x" for name in ("untyped", "twice", "coded")},
}


@pytest.fixture
def site() -> Iterator[GatedSite]:
    with GatedSite(PAGES) as made:
        yield made


def rows(out: Path) -> list[dict[str, Any]]:
    return pq.read_table(out / "captures.parquet").to_pylist()


def test_each_route_of_a_fragment_is_a_page(muniment, site, tmp_path):
    out, saved = tmp_path / "out", tmp_path / "saved"
    done = muniment("crawl", f"{site.url}app/#/start", "-o", out, *OPTIONS, "--json")
    assert done.code == 0, done.stderr
    assert json.loads(done.stdout)["pages"] == 4, "the start URL, two routes, and the document"
    asked = site.counts()
    assert {path: asked[path] for path in asked if "data" in path} == {
        "/data?start": 1, "/data?about": 1, "/data?team?a=1": 1, "/data?home": 1,
    }  # fmt: skip
    found = rows(out)
    assert [row["url"] for row in found if "#" in row["url"]] == []
    mine = [row for row in found if row["url"] == f"{site.url}app/"]
    assert sorted(row["found_as"] for row in mine) == ["a", "fragment-route", "fragment-route", "start"]
    assert len({row["page_id"] for row in mine}) == 4
    for route, title in (("#/about", "about"), ("#!/team?a=1", "team?a=1")):
        url = f"{site.url}app/{route}"
        assert "captured" in muniment("why", url, "-o", out).stdout
        told = json.loads(muniment("results", url, "-o", out, "--save", saved, "--json").stdout)
        assert (told["url"], told["title"], told["final_url"]) == (url, title, url)
        assert title in (saved / "text.txt").read_text()
        assert json.loads((saved / "pageinfo.json").read_text())["url"] == url
    assert muniment("check", out).code == 0
    assert muniment("crawl", f"{site.url}app/#/start", "-o", out, *OPTIONS).code == 0
    assert site.counts() == asked


def test_a_redirect_keeps_the_route_and_without_a_browser_there_is_none(muniment, site, tmp_path):
    site.pages["/"] = Answer("", 302, (("Location", "/app/"),))
    done = muniment("crawl", f"{site.url}#/about", "-o", tmp_path / "kept", *OPTIONS, "--level", "0")
    assert done.code == 0, done.stderr
    assert site.counts()["/data?about"] == 1
    done = muniment("crawl", f"{site.url}app/#/about", "-o", tmp_path / "plain", *OPTIONS[1:4], "--json")
    assert json.loads(done.stdout)["pages"] == 1


def test_answers_without_a_document_and_of_odd_types(muniment, site, tmp_path):
    out = tmp_path / "out"
    done = muniment("crawl", f"{site.url}odd", "-o", out, *OPTIONS, "--tries", "3", "--json")
    assert done.code == 0, done.stderr
    told = json.loads(done.stdout)
    assert (told["failed"], told["queued"]) == ({}, 0)
    found = {row["url"].removeprefix(site.url): row for row in rows(out)}
    asked = site.counts()
    for path, status in (("empty", 204), ("nothing", 204)):
        assert asked[f"/{path}"] == 1
        assert (found[path]["status"], found[path]["error"], found[path]["attempt"]) == (status, "", 1)
    assert {f"by-{name}" for name in ("untyped", "twice", "coded")} <= set(found)
    assert "no" not in found and found["s.png"]["engine"] == "browser"
    shown = {row["url"].removeprefix(f"urn:pageinfo:{site.url}") for row in rows(out) if "pageinfo" in row["url"]}
    assert {"odd", "untyped", "twice", "coded", "leaves"} <= shown
    assert not shown & {"empty", "plain"}
    assert muniment("check", out).code == 0
