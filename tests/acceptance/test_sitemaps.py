"""Sitemaps of a site, from robots.txt and from their usual place, as a crawl takes them."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from crawled import run_muniment
from tests.support.gated_site import Answer, GatedSite
from warc_reading import captures

PACE = ("--tries", 1, "--workers", 1, "--quiet")
XML = (("Content-Type", "application/xml"),)
TEXT = (("Content-Type", "text/plain"),)


def urlset(*urls: str) -> str:
    return f"<?xml version='1.0'?><urlset>{''.join(f'<url><loc>{url}</loc></url>' for url in urls)}</urlset>"


def link(*urls: str) -> str:
    return "".join(f"<a href='{url}'>x</a>" for url in urls)


@pytest.fixture(scope="module")
def site() -> Iterator[GatedSite]:
    """Nothing links to what its sitemaps list; robots.txt names an index, and the usual place has moved."""
    with GatedSite({}) as made:
        base = made.url
        index = "".join(f"<sitemap><loc>{base}{name}</loc></sitemap>" for name in ("packed.xml.gz", "list.txt"))
        made.pages |= {
            "/": link("/linked", "/map-for-people.xml"),
            "/linked": "l",
            "/robots.txt": Answer(f"User-agent: *\nDisallow: /private\nSitemap: {base}index.xml\n", headers=TEXT),
            "/index.xml": Answer(f"<sitemapindex>{index}</sitemapindex>", headers=XML),
            "/packed.xml.gz": Answer(
                gzip.compress(urlset(f"{base}packed", f"{base}private").encode()),
                headers=(("Content-Type", "application/gzip"),),
            ),
            "/list.txt": Answer(f"{base}in-text\n{base}docs/deep\n", headers=TEXT),
            "/sitemap.xml": Answer("", 301, (("Location", "/moved.xml"),)),
            "/moved.xml": Answer(urlset(f"{base}usual", f"{base}linked"), headers=XML),
            "/map-for-people.xml": Answer(urlset(f"{base}of-people"), headers=XML),
            "/of-people": "p",
            "/packed": link("/of-packed"),
            "/of-packed": link("/of-of-packed"),
            "/of-of-packed": "o",
            "/usual": "u",
            "/in-text": "t",
            "/private": "p",
            "/docs/": link("/docs/linked"),
            "/docs/linked": "l",
            "/docs/deep": "d",
            "/docs/sitemap.xml": Answer(urlset(f"{base}docs/own"), headers=XML),
            "/docs/own": "o",
        }
        yield made


SITEMAPS = {"index.xml", "packed.xml.gz", "list.txt", "sitemap.xml", "moved.xml"}
LISTED = {"packed", "in-text", "docs/deep", "usual"}
LINKED = {"", "linked", "map-for-people.xml"}
FARTHER = {"of-people", "of-packed", "of-of-packed"}


@pytest.fixture
def take(site: GatedSite, tmp_path: Path) -> Callable[..., dict[str, dict[str, Any]]]:
    """`take("--level", 1)` crawls the site and returns its rows by path."""

    def crawl(*options: object, start: str = "") -> dict[str, dict[str, Any]]:
        run_muniment(tmp_path, "crawl", f"{site.url}{start}", "-o", "out", *PACE, *options)
        return {row["url"].removeprefix(site.url): row for row in captures(tmp_path / "out")}

    return crawl


def test_what_sitemaps_list_is_taken_and_followed(take: Callable[..., Any]) -> None:
    rows = take()
    assert set(rows) == SITEMAPS | LISTED | LINKED | FARTHER | {"robots.txt"}
    said = {path: (rows[path]["found_as"], rows[path]["depth"]) for path in rows}
    assert {said[path] for path in SITEMAPS} == {("sitemap", -1)}
    assert {said[path] for path in LISTED} == {("sitemap-url", 1)}
    assert said["linked"] == ("a", 1)
    assert said["of-people"] == ("link", 2)


def test_what_a_sitemap_lists_is_one_hop_away_however_deep_the_sitemap(take: Callable[..., Any]) -> None:
    assert set(take("--level", 1)) == SITEMAPS | LISTED | LINKED | {"robots.txt"}


@pytest.mark.parametrize("option", [("--no-sitemaps",), ("--page-only",), ("--level", 0)])
def test_a_crawl_that_reads_no_sitemaps(take: Callable[..., Any], option: tuple[object, ...]) -> None:
    taken = {"", "robots.txt"} | (LINKED | {"of-people"} if option == ("--no-sitemaps",) else set())
    assert set(take(*option)) == taken


def test_without_robots_robots_txt_still_names_sitemaps(take: Callable[..., Any]) -> None:
    rows = take("--no-robots")
    assert set(rows) == SITEMAPS | LISTED | LINKED | FARTHER | {"robots.txt", "private"}
    assert rows["robots.txt"]["found_as"] == "robots"


def test_no_parent_reads_the_sitemaps_of_the_directory(take: Callable[..., Any]) -> None:
    rows = take("--no-parent", start="docs/")
    assert set(rows) == {"docs/", "docs/linked", "docs/own", "docs/sitemap.xml", "robots.txt"}


def test_sitemaps_are_no_pages_of_a_limit(tmp_path: Path, site: GatedSite) -> None:
    command = ("crawl", f"{site.url}docs/", "-o", "few", *PACE, "--max-pages", 1)
    with pytest.raises(AssertionError, match=r"^3:"):
        run_muniment(tmp_path, *command)


def test_include_keeps_sitemaps_and_chooses_from_them(take: Callable[..., Any]) -> None:
    assert set(take("--include", "/docs/")) == SITEMAPS | {"", "docs/deep", "robots.txt"}


def test_a_site_without_sitemaps_has_two_rows_more(tmp_path: Path) -> None:
    with GatedSite({"/": "x"}) as bare:
        run_muniment(tmp_path, "crawl", bare.url, "-o", "out", *PACE)
        assert bare.counts() == {"/": 1, "/robots.txt": 1, "/sitemap.xml": 1}
    finished = json.loads((tmp_path / "out" / "crawl.jsonl").read_text().splitlines()[-1])
    assert (finished["reason"], finished["failed"]) == ("finished", 0)


def test_a_sitemap_of_another_host_is_read(tmp_path: Path) -> None:
    with GatedSite({}, address="127.0.0.2") as away, GatedSite({"/": "x", "/hidden": "h"}) as home:
        away.pages["/s.xml"] = Answer(urlset(f"{home.url}hidden"), headers=XML)
        home.pages["/robots.txt"] = Answer(f"Sitemap: {away.url}s.xml", headers=TEXT)
        run_muniment(tmp_path, "crawl", home.url, "-o", "out", *PACE, "--no-offsite-links")
        assert home.counts()["/hidden"] == 1


def test_a_bomb_of_a_sitemap_does_no_harm(tmp_path: Path) -> None:
    bomb = gzip.compress(gzip.compress(b"<urlset>" + b"<!-- -->" * 25_000_000, 1), 1)
    entities = "<!DOCTYPE x [" + "".join(f"<!ENTITY e{n} '{f'&e{n - 1};' * 10}'>" for n in range(30)) + "]>"
    pages = {
        "/": "x",
        "/sitemap.xml": Answer(f"{entities}<urlset><loc>&e29;</loc><loc>/kept</loc></urlset>", headers=XML),
        "/robots.txt": Answer("Sitemap: /bomb.gz", headers=TEXT),
        "/bomb.gz": Answer(bomb, headers=(("Content-Encoding", "gzip"), ("Content-Type", "application/gzip"))),
        "/kept": "k",
    }
    with GatedSite(pages) as site:
        run_muniment(tmp_path, "crawl", site.url, "-o", "out", *PACE)
        assert site.counts()["/kept"] == 1


def test_files_for_robots_under_odd_types_and_codings(tmp_path: Path) -> None:
    """As PHP sends them: of a wrong type, with a coding that is none, a notice before the declaration."""
    notice = "<br />\n<b>Notice</b>:  Undefined index: lang in <b>/srv/map.php</b> on line <b>3</b><br />\n"
    html = ("Content-Type", "text/html; charset=UTF-8")
    robots = gzip.compress(b"User-agent: *\nDisallow: /private\nSitemap: /map.php\n")
    pages = {
        "/": "x",
        "/robots.txt": Answer(robots, headers=(html, ("Content-Encoding", "gzip"), ("Content-Encoding", "utf-8"))),
        "/map.php": Answer(notice + urlset("/kept", "/private"), headers=(html, ("Content-Encoding", "none"))),
        "/kept": "k",
        "/private": "p",
    }
    with GatedSite(pages) as site:
        run_muniment(tmp_path, "crawl", site.url, "-o", "out", *PACE)
        assert site.counts() == dict.fromkeys(("/", "/robots.txt", "/map.php", "/sitemap.xml", "/kept"), 1)
