"""Where links hide, and what keeps them from being followed: small sites, crawled through the command line."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from crawled import run_muniment
from warc_reading import captures

from muniment.testing.gated_site import Answer, GatedSite

PACE = ("--no-robots", "--no-sitemaps", "--tries", 1, "--workers", 1, "--quiet")
HEX = "0123456789abcdef0123456789abcdef"
HTML = ("Content-Type", "text/html; charset=utf-8")
Pages = dict[str, Any]


def link(*urls: str) -> str:
    return "".join(f"<a href='{url}'>x</a>" for url in urls)


def crawled(site: GatedSite, cwd: Path, *options: object, start: str = "") -> dict[str, dict[str, Any]]:
    """Rows by path; what lies on another host by its URL."""
    run_muniment(cwd, "crawl", f"{site.url}{start}", "-o", "out", *PACE, *options)
    return {row["url"].removeprefix(site.url): row for row in captures(cwd / "out")}


class TestSessionIds:
    """A server that writes a new number into every link of every answer."""

    @pytest.fixture
    def site(self) -> Iterator[GatedSite]:
        with _Visits({"/": "", "/a": "", "/b": "", "/java": ""}) as site:
            yield site

    def test_each_page_is_taken_once(self, site: GatedSite, tmp_path: Path) -> None:
        rows = crawled(site, tmp_path)
        assert len(rows) == 4
        assert {url.partition(";")[0].partition("?")[0] for url in rows} == {"", "a", "b", "java"}
        taken = next(url for url in rows if url.startswith("a?"))
        assert taken.startswith("a?x=1&PHPSESSID=")

    def test_why_knows_a_page_by_any_session(
        self, site: GatedSite, muniment: Callable[..., Any], tmp_path: Path
    ) -> None:
        rows = crawled(site, tmp_path)
        taken = next(url for url in rows if url.startswith("a?"))
        told = json.loads(muniment("why", f"{site.url}a?x=1&PHPSESSID={HEX}", "-o", tmp_path / "out", "--json").stdout)
        assert told["verdict"] == "captured"
        assert told["text"].startswith(f"as {site.url}{taken}, which differs in its session id alone: status 200")
        assert len(told["places"]) == 1

    def test_a_redirect_to_the_same_page_with_a_session_is_followed(self, tmp_path: Path) -> None:
        moved = Answer("", 302, (("Location", f"/?PHPSESSID={HEX}"),))
        pages: Pages = {
            "/": moved,
            f"/?PHPSESSID={HEX}": link(f"/?PHPSESSID={HEX}", f"/a?PHPSESSID={HEX}"),
            f"/a?PHPSESSID={HEX}": "a",
        }
        with GatedSite(pages) as site:
            assert set(crawled(site, tmp_path)) == {"", f"?PHPSESSID={HEX}", f"a?PHPSESSID={HEX}"}


class _Visits(GatedSite):
    """Every answer links to all pages under a session id of its own."""

    _number = 0
    _counting = threading.Lock()

    def answer(self, path: str) -> Answer:
        with self._counting:
            self._number += 1
            visit = f"{self._number:032x}"
        page = path.partition("?")[0].partition(";")[0]
        super().answer(path)
        if page not in self.pages:
            return Answer("", 404)
        links = link(*(f"{name}?x=1&PHPSESSID={visit}" for name in ("/a", "/b")), f"/java;jsessionid={visit}")
        return Answer(links + link(f"/?PHPSESSID={visit}"))


class TestWishes:
    """Pages that ask robots for something, which are heard when the operator says so."""

    @pytest.fixture
    def site(self) -> Iterator[GatedSite]:
        def asks(words: str) -> tuple[tuple[str, str], ...]:
            return (HTML, ("X-Robots-Tag", words))

        pages: Pages = {
            "/": link("/head", "/meta", "/other", "/named", "/moved"),
            "/head": Answer(link("/of-head") + "<img src=/head.png>", headers=asks("noarchive, nofollow")),
            "/meta": "<meta name=Robots content='NOARCHIVE, none'><img src=/meta.png>" + link("/of-meta"),
            "/other": Answer(link("/of-other"), headers=asks("otherbot: noarchive, nofollow")),
            "/named": "<meta name=muniment content=noarchive>" + link("/of-named"),
            "/moved": Answer("", 302, (("Location", "/target"), ("X-Robots-Tag", "noarchive"))),
            **dict.fromkeys(("/of-head", "/of-meta", "/of-other", "/of-named", "/target"), "x"),
            **dict.fromkeys(("/head.png", "/meta.png"), "x"),
        }
        with GatedSite(pages) as site:
            yield site

    ALL = frozenset(
        {"", "head", "meta", "other", "named", "moved", "of-head", "of-meta", "of-other", "of-named", "target"}
        | {"head.png", "meta.png"}
    )

    def test_they_are_not_heard_without_an_option(self, site: GatedSite, tmp_path: Path) -> None:
        assert set(crawled(site, tmp_path)) == self.ALL

    def test_nofollow_takes_the_page_and_its_requisites(self, site: GatedSite, tmp_path: Path) -> None:
        assert set(crawled(site, tmp_path, "--nofollow")) == self.ALL - {"of-head", "of-meta"}

    def test_noarchive_keeps_nothing_of_the_page_and_follows_it(
        self, site: GatedSite, muniment: Callable[..., Any], tmp_path: Path
    ) -> None:
        rows = crawled(site, tmp_path, "--noarchive")
        unkept = {"head", "meta", "named", "moved"}
        assert set(rows) == self.ALL - unkept
        for path in unkept:
            told = json.loads(muniment("why", f"{site.url}{path}", "-o", tmp_path / "out", "--json").stdout)
            assert (told["verdict"], told["text"]) == ("skipped", "noarchive: the page asks robots not to keep it")
        skipped = {
            event["url"].removeprefix(site.url)
            for line in (tmp_path / "out" / "crawl.jsonl").read_text().splitlines()
            if (event := json.loads(line))["event"] == "skip"
        }
        assert skipped == unkept


class TestUrls:
    """Addresses that are odd, broken or too long."""

    def test_a_url_that_is_too_long_is_refused_with_a_reason(
        self, muniment: Callable[..., Any], tmp_path: Path
    ) -> None:
        with GatedSite({}) as site:
            fits = f"{site.url}{'y' * (8000 - len(site.url))}"
            site.pages["/"] = link("/a", f"{fits}y", fits, "/b")
            rows = crawled(site, tmp_path)
            assert {url for url in rows if len(url) < 9} == {"", "a", "b"}
            assert len(rows) == 4
            told = json.loads(muniment("why", f"{fits}y", "-o", tmp_path / "out", "--json").stdout)
            expected = "url: 8001 characters are more than 8000, which servers refuse"
            assert (told["verdict"], told["text"]) == ("skipped", expected)

    def test_a_start_url_that_is_too_long_is_refused(self, muniment: Callable[..., Any], tmp_path: Path) -> None:
        told = muniment("crawl", f"http://site.example/{'y' * 8000}", "-o", tmp_path / "out")
        assert (told.code, told.stdout) == (2, "")
        assert told.stderr.endswith("has 8020 characters; at most 8000 are asked for\n")
        assert len(told.stderr) < 200

    def test_what_links_write_is_asked_for_as_a_browser_would(self, tmp_path: Path) -> None:
        odd = {
            "/q?b=2&a=1": "order kept",
            "/x//y": "slashes kept",
            "/%C3%A9": "path in UTF-8",
            "/a%20b?c%20d": "spaces",
            "/%7Euser/%zz": "percent signs stay as written",
            "/d/e": "dots",
            "/back": "backslash",
            "/tab": "tab",
        }
        bad = [
            "http://",
            "http://[::1",
            "https://exa mple/",
            "http://a:99999/",
            "//",
            "javascript:1",
        ]
        written = ["q?b=2&a=1", "x//y", "é", " a b?c d ", "%7Euser/%zz", "d/./f/../e", r"\back", "t\tab", *bad, "last"]
        with GatedSite({"/": link(*written), "/last": "l", **odd}) as site:
            rows = crawled(site, tmp_path, "--no-offsite-links")
        assert {f"/{url}" for url in rows} == {"/", "/last", *odd}
        assert {row["status"] for row in rows.values()} == {200}

    def test_a_host_in_other_letters_is_asked_in_punycode(self, muniment: Callable[..., Any], tmp_path: Path) -> None:
        with GatedSite({"/": link("http://bücher.invalid/ü")}) as site:
            rows = crawled(site, tmp_path)
        assert rows["http://xn--bcher-kva.invalid/%C3%BC"]["error"].startswith("dns: ")
