"""What a run had to leave out, another takes up when it is told to, also in a finished job; and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from crawled import run_muniment
from tests.support.gated_site import GatedSite
from tests.support.nginx import closed_port
from warc_reading import captures

QUIET = ("-o", "out", "--quiet", "--rounds", 0)


def captured(out: Path) -> set[str]:
    return {row["url"] for row in captures(out) if row["status"] == 200 and not row["url"].endswith("/robots.txt")}


def begun(command: str, url: str) -> tuple[object, ...]:
    """How the job is begun: a crawl of a site, or a fetch of the list that is here."""
    return ("crawl", url, *QUIET, "--no-sitemaps") if command == "crawl" else ("fetch", "list.txt", *QUIET)


@pytest.mark.parametrize("command", ["crawl", "fetch"])
def test_a_host_that_was_given_up_is_asked_again_when_that_is_asked_for(
    muniment: Callable[..., Any], tmp_path: Path, command: str
) -> None:
    port = closed_port()
    urls = [f"http://127.0.0.9:{port}/p{number}" for number in range(8)]
    links = "".join(f"<a href='{url}'>x</a>" for url in urls)
    with GatedSite({"/": links}) as site:
        (tmp_path / "list.txt").write_text("\n".join([site.url, *urls]))
        given = (*begun(command, site.url), "--no-robots")
        run_muniment(tmp_path, *given)
        assert captured(tmp_path / "out") == {site.url}
        with GatedSite({f"/p{number}": "back" for number in range(8)}, address="127.0.0.9", port=port) as back:
            run_muniment(tmp_path, *given)
            assert back.requests == []
            run_muniment(tmp_path, *given, "--retry-failed")
            assert captured(tmp_path / "out") == {site.url, *urls}
            assert (site.requests, len(back.requests)) == (["/"], 8), "nothing that was captured is asked for again"
            run_muniment(tmp_path, *given, "--retry-failed")
            assert len(back.requests) == 8, "nothing is left"
    assert muniment("check", "out").code == 0


@pytest.mark.parametrize("command", ["crawl", "fetch"])
def test_without_robots_what_it_had_kept_out_is_taken(
    muniment: Callable[..., Any], tmp_path: Path, command: str
) -> None:
    pages = {"/": "<a href=/private>x</a>", "/private": "secret", "/robots.txt": "User-agent: *\nDisallow: /private"}
    with GatedSite(pages) as site:
        (tmp_path / "list.txt").write_text(f"{site.url}\n{site.url}private\n")
        given = begun(command, site.url)
        run_muniment(tmp_path, *given, "--robots")
        assert captured(tmp_path / "out") == {site.url}
        run_muniment(tmp_path, *given, "--robots")
        assert site.counts()["/private"] == 0
        run_muniment(tmp_path, *given, "--no-robots")
        assert captured(tmp_path / "out") == {site.url, f"{site.url}private"}
        assert site.counts() == {"/robots.txt": 1, "/": 1, "/private": 1}
    assert muniment("check", "out").code == 0
