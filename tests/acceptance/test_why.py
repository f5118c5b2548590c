"""`muniment why` names what kept a page out."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from crawled import run_muniment

from muniment.testing.gated_site import Answer, GatedSite

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


def test_a_robots_txt_that_only_the_parser_understands_is_named_without_a_line(
    muniment: Callable[..., Any], tmp_path: Path
) -> None:
    odd = Answer("user agent *\ndissallow /x\n", headers=TEXT)
    with GatedSite({"/": "<a href=/x>x</a>", "/robots.txt": odd}) as site:
        run_muniment(tmp_path, "crawl", site.url, "-o", "out", "--no-sitemaps", "--quiet")
    told = json.loads(muniment("why", f"{site.url}x", "-o", "out", "--json").stdout)
    assert told["text"] == f"robots: robots.txt disallows it ({site.url}robots.txt)"
    assert told["robots"] == {"url": f"{site.url}robots.txt", "line": None}
