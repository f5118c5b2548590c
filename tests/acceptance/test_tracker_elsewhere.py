"""`--state DIR`: the tracker lies elsewhere, every command finds it there, and no second place is begun."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from crawled import complaint
from tests.support.gated_site import GatedSite

PACE = ("--no-robots", "--no-sitemaps", "--workers", 1, "--quiet")


def test_every_command_finds_a_tracker_that_lies_elsewhere(muniment: Callable[..., Any], tmp_path: Path) -> None:
    out, state = tmp_path / "out", tmp_path / "state"
    with GatedSite({"/": "a page"}) as site:
        command = ("crawl", site.url, "-o", out, *PACE)
        assert muniment(*command, "--state", state).code == 0
        assert not (out / "tracker.sqlite").exists()
        assert (state / "tracker.sqlite").exists()
        assert "captured" in muniment("why", site.url, "-o", out).stdout
        assert muniment("ignores", "list", "-o", out).code == 0
        assert "is finished" in complaint(muniment("set", "-o", out, "delay=5"))
        assert muniment(*command).code == 0, "the same crawl, though --state was left out"
        assert f"is in {state}: leave --state out" in complaint(muniment(*command, "--state", tmp_path / "other"))
        assert site.requests == ["/"]
        other = complaint(muniment("crawl", site.url, "-o", tmp_path / "out2", "--state", state, *PACE))
        assert "is the tracker of" in other


def test_a_tracker_inside_is_not_left_behind(muniment: Callable[..., Any], tmp_path: Path) -> None:
    out = tmp_path / "out"
    with GatedSite({"/": "a page"}) as site:
        command = ("crawl", site.url, "-o", out, *PACE)
        assert muniment(*command).code == 0
        assert "has its own tracker" in complaint(muniment(*command, "--state", tmp_path / "state"))
