"""One directory, one truth: whatever is moved away between runs or during one, nothing is overwritten or lost."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from crawled import wait_until

from muniment.testing.gated_site import GatedSite

PAGES = [f"/p{number}.html" for number in range(8)]
PACE = ("--no-robots", "--no-sitemaps", "--tries", 1, "--rounds", 0, "--no-offsite-links", "--workers", 1)


@pytest.fixture
def site() -> Iterator[GatedSite]:
    links = "".join(f"<a href={path}>a</a>" for path in PAGES)
    with GatedSite({"/": links, **{path: f"this is {path} " * 99 for path in PAGES}}, held=PAGES[-1:]) as served:
        yield served


def events(path: Path) -> list[str]:
    return [json.loads(line)["event"] for line in path.read_text().splitlines()]


def test_a_log_that_is_moved_away_lets_no_second_run_in(
    muniment: Callable[..., Any], site: GatedSite, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    log, moved = out / "crawl.jsonl", tmp_path / "moved"
    process = muniment.start("crawl", site.url, "-o", out, *PACE, "--quiet")
    wait_until(lambda: log.exists() and events(log).count("capture") == len(PAGES), "all but the page that is held")
    log.rename(moved)
    second = muniment("crawl", site.url, "-o", out, *PACE)
    assert second.code == 2
    assert "is in use by another run" in second.stderr
    assert muniment("check", out, "--repair").code == 2
    assert not log.exists(), "what was refused made nothing"
    site.release()
    _, said = process.communicate(timeout=30)
    assert process.returncode == 0
    assert said.count("\n") == 1
    assert "was moved away: the run writes a new one" in said
    assert events(moved)[:1] == ["start"]
    assert events(log) == ["capture", "worker", "finish"]
    assert muniment("check", out).code == 0
