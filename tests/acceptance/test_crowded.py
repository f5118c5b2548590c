"""A page with more links than are followed says so, wherever somebody may look for what is missing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.support.gated_site import GatedSite

from muniment.extract.link_collector import MOST_LINKS

QUIET = ("--no-robots", "--no-sitemaps", "--ignore", "/n[0-9]", "--workers", 1)


@pytest.fixture
def site():
    listing = "".join(f"<a href=/n{number}>" for number in range(MOST_LINKS + 1_500)) + "<a href=/>"
    with GatedSite({"/": "<a href=/list>", "/list": listing, "/few": "<a href=/n1>"}) as served:
        yield served


def test_links_that_are_dropped_are_told(muniment, site: GatedSite, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = muniment("crawl", f"{site.url}list", f"{site.url}few", "-o", out, *QUIET)
    assert done.code == 0, done.stderr
    # the last anchor is one of them: whether it leads anywhere new, nobody has looked
    told = "1 page has too many links: about 1,501 are not followed"
    assert told in done.stderr
    events = [json.loads(line) for line in (out / "crawl.jsonl").read_text().splitlines()]
    drops = [event for event in events if event["event"] == "drop"]
    assert [(drop["url"], drop["links"]) for drop in drops] == [(f"{site.url}list", 1_501)]
    assert told in muniment("inspect", out).stdout
    found = json.loads(muniment("inspect", out, "--json").stdout)
    assert found["crowded"] == {"pages": 1, "links_dropped": 1_501}
    why = muniment("why", f"{site.url}list", "-o", out)
    assert "it has too many links: about 1,501 are not followed" in why.stdout
    assert "too many" not in muniment("why", f"{site.url}few", "-o", out).stdout
