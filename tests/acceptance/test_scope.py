"""What a crawl takes and what it leaves out: two small hosts show every rule of the contract's scope."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from crawled import run_muniment, wait_until
from tests.support.gated_site import Answer, GatedSite
from warc_reading import captures

PACE = ("--no-robots", "--no-sitemaps", "--tries", 1, "--workers", 1, "--quiet")
REQUISITES = {
    f"home/{name}" for name in ("a.png", "s.js", "v.mp4", "m.json", "fav.ico", "x2.png", "bg.png", "style.css")
}
CHAIN = {f"home/chain{number}.css" for number in range(2, 6)}


def redirect(to: str, status: int = 301) -> Answer:
    return Answer("moved", status, (("Location", to), ("Content-Type", "text/html")))


def link(*urls: str) -> str:
    return "".join(f'<a href="{url}">{url}</a>' for url in urls)


def home_pages(away: str) -> dict[str, str | Answer]:
    """The site: below /docs/ it starts, one link leads away to another host."""
    return {
        "/docs/": "<img src=/a.png srcset='/x2.png 2x'><script src=/s.js></script><video src=/v.mp4></video>"
        "<link rel=stylesheet href=/style.css><link rel=manifest href=/m.json><link rel=icon href=/fav.ico>"
        "<div style='background: url(/bg.png)'></div><iframe src=/docs/frame></iframe><object data=/docs/both></object>"
        f"<noscript>{link('/docs/noscript')}</noscript><noframes>{link('/docs/noframes')}</noframes>"
        + link("/docs/one", "/up", "/docs/moved", f"{away}near", f"{away}go-home", "mailto:me@example.com"),
        "/style.css": "@import '/chain2.css';",
        **{f"/chain{number}.css": f"@import url(chain{number + 1}.css);" for number in range(2, 9)},
        "/docs/frame": link("/docs/of-frame"),
        "/docs/of-frame": "on",
        "/docs/noscript": "n",
        "/docs/noframes": "n",
        "/docs/both": link("/docs/of-both"),
        "/docs/of-both": link("/docs/both"),
        "/docs/one": link("/docs/two", "/docs/both"),
        "/docs/two": link("/docs/three"),
        "/docs/three": "the end",
        "/docs/moved": redirect("/docs/moved-again", 302),
        "/docs/moved-again": redirect("/docs/target", 308),
        "/docs/target": link("/docs/of-target"),
        "/docs/of-target": "t",
        "/up": link("/docs/of-up"),
        "/docs/of-up": "u",
        "/docs/back": "b",
        **{f"/{name}": "requisite" for name in ("a.png", "x2.png", "s.js", "v.mp4", "m.json", "fav.ico", "bg.png")},
    }


AWAY_PAGES: dict[str, str | Answer] = {
    "/near": f"<img src=/near.png><iframe src=/frame></iframe>{link('/far')}",
    "/near.png": "p",
    "/frame": f"<img src=/of-frame.png>{link('/of-frame')}",
    "/of-frame.png": "p",
    "/far": "far away",
    "/of-frame": "far away",
}
DOCS = {"", "one", "two", "three", "frame", "of-frame", "noscript", "noframes", "both", "of-both", "of-up", "back"}
MOVED = {"moved", "moved-again", "target", "of-target"}
ON_SITE = {f"home/docs/{name}" for name in DOCS | MOVED} | {"home/up"}
OFFSITE = {"away/near", "away/go-home"}
AWAY_REQUISITES = {"away/near.png", "away/frame", "away/of-frame.png"}


class Hosts:
    """Two hosts, and a short way to say which URLs of them were captured."""

    def __init__(self, home: GatedSite, away: GatedSite) -> None:
        self.home, self.away = home, away

    @property
    def start(self) -> str:
        return f"{self.home.url}docs/"

    def short(self, url: str) -> str:
        return url.replace(self.home.url, "home/").replace(self.away.url, "away/")

    def long(self, short: str) -> str:
        return short.replace("home/", self.home.url).replace("away/", self.away.url)

    def captured(self, out: Path) -> set[str]:
        """All that has a row, each once."""
        counted = Counter(self.short(row["url"]) for row in captures(out))
        assert set(counted.values()) <= {1}, counted
        return set(counted)


@pytest.fixture(scope="module")
def hosts() -> Iterator[Hosts]:
    with GatedSite(AWAY_PAGES, address="127.0.0.2") as away, GatedSite(home_pages(away.url)) as home:
        away.pages["/go-home"] = redirect(f"{home.url}docs/back")
        yield Hosts(home, away)


@pytest.fixture
def take(hosts: Hosts, tmp_path: Path) -> Callable[..., set[str]]:
    """`take("--level", 1)` crawls the site and returns the URLs that were captured."""

    def crawl(*options: object) -> set[str]:
        run_muniment(tmp_path, "crawl", hosts.start, "-o", "out", *PACE, *options)
        return hosts.captured(tmp_path / "out")

    return crawl


# -- options


@pytest.fixture(scope="module")
def whole(hosts: Hosts, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A crawl with two ignore patterns, for all tests that only look at it."""
    cwd = tmp_path_factory.mktemp("whole")
    ignored = ("--ignore", r"/docs/three$", "--ignore", r"^http://{primary_netloc}:\d+/v\.mp4")
    run_muniment(cwd, "crawl", hosts.start, "-o", "out", *PACE, *ignored)
    return cwd / "out"


def test_a_site_is_taken_with_its_requisites_and_pages_one_link_away(hosts: Hosts, whole: Path) -> None:
    ignored = {"home/docs/three", "home/v.mp4"}
    expected = ON_SITE | REQUISITES | CHAIN | OFFSITE | AWAY_REQUISITES
    assert hosts.captured(whole) == expected - ignored


def test_requisites_are_followed_five_hops_through_style_sheets(hosts: Hosts, whole: Path) -> None:
    sheets = {url for url in hosts.captured(whole) if "chain" in url}
    assert sheets == {"home/chain2.css", "home/chain3.css", "home/chain4.css", "home/chain5.css"}


def test_rows_say_how_a_page_was_found(hosts: Hosts, whole: Path) -> None:
    rows = {hosts.short(row["url"]): row for row in captures(whole)}
    found = {url: (rows[url]["found_as"], rows[url]["depth"]) for url in rows}
    assert found["home/docs/"] == ("start", 0)
    assert found["home/docs/one"] == ("a", 1)
    assert found["home/docs/frame"] == ("iframe", 1)
    assert found["home/chain3.css"] == ("css-import", -1)
    assert found["home/bg.png"] == ("css-url", -1)
    assert found["home/docs/target"] == ("redirect", 1)
    assert rows["home/docs/moved"]["redirect_to"] == hosts.long("home/docs/moved-again")
    assert rows["home/docs/target"]["redirect_to"] == ""


def test_level_counts_links_but_neither_redirects_nor_requisites(take: Callable[..., set[str]]) -> None:
    one = {"", "one", "frame", "noscript", "noframes", "both", "moved", "moved-again", "target", "back"}
    expected = {f"home/docs/{name}" for name in one} | {"home/up"}
    assert take("--level", 1) == expected | REQUISITES | CHAIN | OFFSITE | AWAY_REQUISITES


def test_level_0_and_page_only_take_the_start_page_with_its_requisites(take: Callable[..., set[str]]) -> None:
    assert take("--page-only") == {"home/docs/", "home/docs/frame", "home/docs/both"} | REQUISITES | CHAIN


def test_no_parent_keeps_to_the_directory(take: Callable[..., set[str]]) -> None:
    """What lies above is another site, one link away: captured, not followed."""
    taken = take("--no-parent")
    assert taken == (ON_SITE - {"home/docs/of-up"}) | REQUISITES | CHAIN | OFFSITE | AWAY_REQUISITES


def test_no_offsite_links_leaves_other_hosts_alone_but_for_requisites(
    hosts: Hosts, take: Callable[..., set[str]]
) -> None:
    hosts.home.pages["/docs/noframes"] = f"<img src='{hosts.away.url}near.png'>"
    try:
        assert take("--no-offsite-links") == (ON_SITE - {"home/docs/back"}) | REQUISITES | CHAIN | {"away/near.png"}
    finally:
        hosts.home.pages["/docs/noframes"] = "n"


def test_include_takes_matching_pages_and_the_requisites_of_these(take: Callable[..., set[str]]) -> None:
    taken = take("--include", r"/docs/(one|two|moved)$", "--include", "/near$")
    pages = {"home/docs/", "home/docs/one", "home/docs/two", "home/docs/moved", "away/near"}
    # Frames and objects are requisites first, and requisites are exempt; their links are not.
    frames = {"home/docs/frame", "home/docs/both"} | AWAY_REQUISITES
    assert taken == pages | frames | REQUISITES | CHAIN


def test_ignore_holds_for_links_requisites_and_redirect_targets(take: Callable[..., set[str]]) -> None:
    ignored = (
        "--ignore",
        r"^http://(?!{primary_netloc})",
        "--ignore",
        r"\.png$",
        "--ignore",
        "moved-again",
        "--ignore",
        "/up",
    )
    gone = {"moved-again", "target", "of-target", "of-up", "back"}
    pages = ON_SITE - {f"home/docs/{name}" for name in gone} - {"home/up"}
    assert take(*ignored) == pages | CHAIN | {url for url in REQUISITES if not url.endswith(".png")}


def test_an_ignored_start_url_is_not_asked_for(hosts: Hosts, muniment: Callable[..., Any], tmp_path: Path) -> None:
    before = hosts.home.counts()
    done = muniment("crawl", hosts.start, "-o", tmp_path / "out", *PACE, "--ignore", "docs")
    assert done.code == 4
    assert hosts.home.counts() == before


# -- what a page turns out to be later


def test_the_host_that_a_start_url_redirects_to_is_the_site(tmp_path: Path) -> None:
    away = GatedSite({"/": link("/a"), "/a": link("/b"), "/b": "b"}, address="127.0.0.2")
    with away, GatedSite({"/": redirect(away.url)}) as home:
        run_muniment(tmp_path, "crawl", home.url, "-o", "out", *PACE)
        taken = Hosts(home, away).captured(tmp_path / "out")
    assert taken == {"home/", "away/", "away/a", "away/b"}


def test_pages_taken_as_offsite_are_followed_once_their_host_joins_the_site(tmp_path: Path) -> None:
    away = GatedSite({"/": "", "/near": link("/a"), "/a": link("/b"), "/b": "b"}, address="127.0.0.2")
    with away, GatedSite({"/": link(f"{away.url}near"), "/jump": redirect(away.url)}, held=["/jump"]) as home:
        command = ("crawl", home.url, f"{home.url}jump", "-o", "out", *PACE)
        with ThreadPoolExecutor() as pool:
            crawl = pool.submit(run_muniment, tmp_path, *command)
            away.wait_for("/near")
            told = tmp_path / "out" / "crawl.jsonl"
            wait_until(lambda: f'{away.url}near"' in told.read_text(), "the offsite page's capture")
            home.release("/jump")
            crawl.result()
        taken = {Hosts(home, away).short(row["url"]) for row in captures(tmp_path / "out")}
    assert taken == {"home/", "home/jump", "away/", "away/near", "away/a", "away/b"}


def test_a_shorter_path_found_later_opens_what_lies_behind(tmp_path: Path) -> None:
    """`/deep` is found 3 links away and its children are too far; then a slow page shows it to be 2 away."""
    pages = {
        "/": link("/a", "/slow"),
        "/a": link("/b"),
        "/b": link("/deep"),
        "/deep": link("/child"),
        "/child": link("/too-far"),
        "/slow": link("/deep"),
        "/too-far": "never",
    }
    with GatedSite(pages, held=["/slow"]) as site:
        with ThreadPoolExecutor() as pool:
            crawl = pool.submit(run_muniment, tmp_path, "crawl", site.url, "-o", "out", *PACE, "--level", 3)
            site.wait_for("/deep", "/slow")
            told = tmp_path / "out" / "crawl.jsonl"
            wait_until(lambda: f'{site.url}deep"' in told.read_text(), "the deep page's capture")
            assert "/child" not in site.requests
            site.release()
            crawl.result()
        assert site.counts() == Counter({"/", "/a", "/b", "/deep", "/slow", "/child"})


# -- asking about it afterwards


WHY = {
    "home/docs/one": ("captured", "status 200"),
    "home/docs/moved": ("captured", "status 302"),
    "home/docs/three": ("skipped", r"/docs/three$"),
    "home/v.mp4": ("skipped", r"v\.mp4"),
    "away/far": ("never seen", "no page whose links are followed leads to it"),
    "home/chain6.css": ("out of scope", "more than 5 requisite hops away"),
    "home/docs/nowhere": ("never seen", "no page whose links are followed leads to it"),
}


@pytest.mark.parametrize("short", WHY)
def test_why_says_what_became_of_a_url(short: str, hosts: Hosts, whole: Path, muniment: Callable[..., Any]) -> None:
    verdict, words = WHY[short]
    url = hosts.long(short)
    told = muniment("why", url, "-o", whole, "--json")
    assert (told.code, told.stderr) == (0, "")
    found = json.loads(told.stdout)
    assert (found["url"], found["verdict"]) == (url, verdict)
    assert words in found["text"]
    rows = [row for row in captures(whole) if row["url"] == url]
    assert [place["warc_offset"] for place in found["places"]] == [row["warc_offset"] for row in rows]


def test_why_tells_people_too(hosts: Hosts, whole: Path, muniment: Callable[..., Any]) -> None:
    told = muniment("why", hosts.long("home/docs/of-target"), "-o", whole)
    assert (told.code, told.stderr) == (0, "")
    first, verdict, origin, attempt = told.stdout.splitlines()
    assert first == hosts.long("home/docs/of-target")
    assert verdict.startswith("  captured: status 200 at ")
    assert origin == f"  found as a on {hosts.long('home/docs/target')}, 2 links from the start"
    assert attempt.startswith("  try 1 at ")


def test_inspect_counts_what_is_there(hosts: Hosts, whole: Path, muniment: Callable[..., Any]) -> None:
    found = json.loads(muniment("inspect", whole, "--json").stdout)
    rows = captures(whole)
    assert (found["rows"], found["complete"]) == (len(rows), sum(not row["error"] for row in rows))
    assert found["payload_bytes"] == sum(row["body_length"] for row in rows)
    assert found["stored_bytes"] == sum(row["warc_length"] for row in rows)
    assert dict(found["statuses"]) == Counter(str(row["status"]) for row in rows)
    assert {host["host"]: host["captures"] for host in found["hosts"]} == Counter(row["host"] for row in rows)
    assert dict(found["types"]) == Counter(row["content_type"].partition(";")[0] for row in rows)
