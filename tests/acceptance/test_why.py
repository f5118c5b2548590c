"""`muniment why` names what kept a page out."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from crawled import complaint, run_muniment
from tests.support.gated_site import Answer, GatedSite
from tests.support.raw_server import Close, RawServer, Send

TEXT = (("Content-Type", "text/plain"),)
ROBOTS = "User-agent: *\nDisallow: /\n\nUser-agent: muniment\nDisallow: /private/  # not yet\nAllow: /private/open\n"


def test_the_line_of_robots_txt_is_named(muniment: Callable[..., Any], tmp_path: Path) -> None:
    start = "<a href=/private/x>x</a><a href=/private/open>x</a>"
    with GatedSite({"/": start, "/private/open": "", "/robots.txt": Answer(ROBOTS, headers=TEXT)}) as site:
        run_muniment(tmp_path, "crawl", site.url, "-o", "out", "--no-sitemaps", "--quiet")
        assert site.counts() == {"/robots.txt": 1, "/": 1, "/private/open": 1}
    robots_url = f"{site.url}robots.txt"
    told = json.loads(muniment("why", f"{site.url}private/x", "-o", "out", "--json").stdout)
    assert told["verdict"] == "skipped"
    assert told["text"] == (
        f"robots: robots.txt disallows it: line 5 of {robots_url} is `Disallow: /private/  # not yet`, "
        "under `User-agent: muniment` in line 4"
    )
    line = {"line": 5, "text": "Disallow: /private/  # not yet", "agent_line": 4, "agent_text": "User-agent: muniment"}
    assert told["robots"] == {"url": robots_url, "line": line}
    assert told["text"] in muniment("why", f"{site.url}private/x", "-o", "out").stdout


def test_the_line_of_a_robots_txt_that_is_oddly_written(muniment: Callable[..., Any], tmp_path: Path) -> None:
    odd = Answer("user agent *\ndissallow /x\n", headers=TEXT)
    with GatedSite({"/": "<a href=/x>x</a>", "/robots.txt": odd}) as site:
        run_muniment(tmp_path, "crawl", site.url, "-o", "out", "--no-sitemaps", "--quiet")
    told = json.loads(muniment("why", f"{site.url}x", "-o", "out", "--json").stdout)
    assert told["text"].endswith("robots.txt is `dissallow /x`, under `user agent *` in line 1")
    assert told["robots"]["line"]["line"] == 2


def why(muniment: Callable[..., Any], url: str) -> tuple[str, str]:
    told = json.loads(muniment("why", url, "-o", "out", "--json").stdout)
    return told["verdict"], told["text"]


def test_the_line_of_a_group_that_names_a_version(muniment: Callable[..., Any], tmp_path: Path) -> None:
    ours = Answer("User-agent: Muniment/0.1.0\nDisallow: /x\n\nUser-agent: *\nDisallow: /y\n", headers=TEXT)
    with GatedSite({"/": "<a href=/x>x</a><a href=/y>y</a>", "/robots.txt": ours, "/y": "y"}) as site:
        run_muniment(tmp_path, "crawl", site.url, "-o", "out", "--no-sitemaps", "--quiet")
        assert site.counts() == {"/robots.txt": 1, "/": 1, "/y": 1}
    _, text = why(muniment, f"{site.url}x")
    assert text.endswith("is `Disallow: /x`, under `User-agent: Muniment/0.1.0` in line 1")


def test_a_robots_txt_is_known_without_being_a_page(muniment: Callable[..., Any], tmp_path: Path) -> None:
    robots = Answer("", 301, (("Location", "/rules.txt"), ("Content-Length", "0")))
    with GatedSite({"/": "start", "/robots.txt": robots, "/rules.txt": "# none"}) as site:
        run_muniment(tmp_path, "crawl", site.url, "-o", "out", "--no-sitemaps", "--quiet")
        origin = site.url.rstrip("/")
    verdict, text = why(muniment, f"{origin}/robots.txt")
    assert verdict == "captured"
    assert text.startswith("status 301 at 20")
    assert "response record in muniment-00000.warc.gz" in text
    assert text.endswith(f"; the rules of {origin} come from it")
    verdict, text = why(muniment, f"{origin}/rules.txt")
    assert (verdict, text.startswith("status 200 at 20")) == ("captured", True)
    assert why(muniment, f"{origin}/else") == ("never seen", "no page whose links are followed leads to it")


def test_a_robots_txt_that_fails_is_told_as_what_failed(muniment: Callable[..., Any], tmp_path: Path) -> None:
    cut = (Send(b"HTTP/1.1 200 OK\r\nContent-"), Close())
    with RawServer({"/robots.txt": cut}) as site:
        done = muniment("crawl", site.url("/"), "-o", "out", "--no-sitemaps", "--quiet", "--tries", 1, "--rounds", 0)
        assert done.code == 4
        assert {entry.path for entry in site.log} == {"/robots.txt"}
        url = site.url("/")
    said = "cut: robots.txt: connection closed before the end of the header block"
    assert why(muniment, url) == ("failed", said)
    events = [json.loads(line) for line in (tmp_path / "out" / "crawl.jsonl").read_text().splitlines()]
    assert [event["reason"] for event in events if event["event"] == "fail"] == [said]


def test_a_pattern_that_is_added_between_two_runs_is_told(muniment: Callable[..., Any], tmp_path: Path) -> None:
    with GatedSite({"/": "<a href=/a>a</a><a href=/b>b</a>"}) as site:
        crawl = ("crawl", site.url, "-o", "out", "--quiet", "--no-robots", "--no-sitemaps", "--max-pages")
        assert muniment(*crawl, 1).code == 3
        assert muniment("ignores", "add", "-o", "out", "/a$", "--quiet").code == 0
        assert why(muniment, f"{site.url}a") == ("queued", "will be skipped when its turn comes: ignore: /a$")
        assert why(muniment, f"{site.url}b")[1] == "waits for its turn"
        run_muniment(tmp_path, *crawl, 9)
        assert why(muniment, f"{site.url}a") == ("skipped", "ignore: /a$")


def test_a_url_without_its_scheme_is_met_with_a_hint(muniment: Callable[..., Any], tmp_path: Path) -> None:
    for text, meant in [("a.example:8080/x", "http"), ("a.example:443/x", "https"), ("a.example/x:1", "https")]:
        assert f"did you mean {meant}://{text}?" in complaint(muniment("why", text, "-o", tmp_path))


def test_a_run_with_nothing_left_starts_no_worker(muniment: Callable[..., Any], tmp_path: Path) -> None:
    with GatedSite({"/": "<a href=/a>a</a>", "/a": "a"}) as site:
        crawl = ("crawl", site.url, "-o", "out", "--quiet", "--no-robots", "--no-sitemaps", "--max-pages")
        assert muniment(*crawl, 1).code == 3
        assert muniment("ignores", "add", "-o", "out", "/a$", "--quiet").code == 0
        before = (tmp_path / "out" / "crawl.jsonl").read_text().count("\n")
        run_muniment(tmp_path, *crawl, 9)
        assert site.counts() == {"/": 1}
    lines = (tmp_path / "out" / "crawl.jsonl").read_text().splitlines()[before:]
    assert [json.loads(line)["event"] for line in lines] == ["start", "finish"]


def test_a_path_is_looked_for_on_the_start_hosts_and_all_that_lead_to_it_are_named(
    muniment: Callable[..., Any], tmp_path: Path
) -> None:
    pages = {"/": "<a href=/a>x</a><a href=/b>x</a>", "/a": "<a href=/b?x=1>x</a>", "/b": "<img src='/b?x=1'>"}
    with GatedSite({"/": "x"}) as other, GatedSite({**pages, "/b?x=1": "x"}, address="127.0.0.2") as site:
        run_muniment(tmp_path, "crawl", other.url, site.url, "-o", "out", "--no-sitemaps", "--no-robots", "--quiet")
    told = muniment("why", "/b?x=1", "-o", "out").stdout
    assert told.startswith(f"{site.url}b?x=1\n  captured: ")
    assert f"  led to by 2 pages:\n    {site.url}a (a)\n    {site.url}b (img)\n" in told
    assert "led to by" not in muniment("why", "/a", "-o", "out").stdout, "that page was named already"
    assert why(muniment, "/nowhere") == ("never seen", "no page whose links are followed leads to it")
    assert muniment("why", "/nowhere", "-o", "out").stdout.startswith(f"{other.url}nowhere\n")
    parents = json.loads(muniment("why", "/b?x=1", "-o", "out", "--json").stdout)["parents"]
    assert parents == {
        "count": 2, "first": [{"url": f"{site.url}a", "found_as": "a"}, {"url": f"{site.url}b", "found_as": "img"}],
    }  # fmt: skip
    (tmp_path / "list").write_text(f"{site.url}\n")
    run_muniment(tmp_path, "fetch", "list", "-o", "fetched", "--quiet", code=4)
    done = muniment("why", "/b", "-o", "fetched")
    assert (done.code, "give the whole URL" in done.stderr) == (2, True), done.stderr
