"""Guards: a crawl of a site without end ends by itself, and one whose pages look alike loses nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest
from crawled import wait_until
from tests.support.endless_site import EndlessSite, View, archive, calendar, forum, gallery, loop, shop

GUARDS = ("--guards", "loops,barren,duplicates")


def captured(out: Path) -> set[str]:
    """Paths and queries of what was captured."""
    rows = duckdb.read_parquet(str(out / "captures.parquet")).filter("status = 200").select("url").fetchall()
    return {"/" + url.split("/", 3)[3] for (url,) in rows}


def in_force(muniment: Callable[..., Any], out: Path) -> list[dict[str, Any]]:
    """What is set aside."""
    patterns = json.loads(muniment("ignores", "list", "-o", out, "--json").stdout)
    return [one for one in patterns if one["set"] == "trap"]


@pytest.mark.parametrize(
    ("view", "pages"),
    [(shop, 510), (gallery, 240), (archive, 451)],
    ids=["shop", "gallery", "archive"],
)
def test_pages_that_look_alike_are_all_kept(
    muniment: Callable[..., Any], tmp_path: Path, view: View, pages: int
) -> None:
    with EndlessSite(view) as site:
        done = muniment("crawl", site.url, "-o", tmp_path / "a", "--no-sitemaps", "--json", *GUARDS)
        assert done.code == 0, done.stderr
        assert len(captured(tmp_path / "a") - {"/robots.txt"}) == pages
        assert in_force(muniment, tmp_path / "a") == []


def test_a_calendar_without_end_ends(muniment: Callable[..., Any], tmp_path: Path) -> None:
    out = tmp_path / "a"
    with EndlessSite(calendar) as site:
        done = muniment("crawl", site.url, "-o", out, "--no-sitemaps", *GUARDS)
        assert done.code == 0, done.stderr
        kept = captured(out)
        assert len([path for path in kept if path.startswith("/article/")]) == 10
        assert len([path for path in kept if path.startswith("/calendar")]) < 130
        shapes = {one["shape"]: one for one in in_force(muniment, out)}
        assert "127.0.0.1/calendar?month" in shapes
        assert {one["guard"] for one in shapes.values()} == {"barren"}
        events = [json.loads(line) for line in (out / "crawl.jsonl").read_text().splitlines()]
        changes = [one for one in events if one["event"] == "change" and one["what"] == "trap"]
        assert {one["who"] for one in changes} == {"muniment"}
        assert {one["to"] for one in changes} >= {one["re"] for one in shapes.values()}
        told = [one["reason"] for one in events if one["event"] == "skip"]
        assert len(told) == len(set(told)) == len(changes)
        assert told[0].startswith("trap: barren: 127.0.0.1/calendar?")


def test_what_was_set_aside_stays_so_after_a_kill(muniment: Callable[..., Any], tmp_path: Path) -> None:
    out = tmp_path / "a"
    with EndlessSite(calendar) as site:
        command = ("crawl", site.url, "-o", out, "--no-sitemaps", "--quiet", *GUARDS)
        for asked in (40, 80):
            started = muniment.start(*command)
            wait_until(lambda least=asked, run=started: len(site.requests) >= least or run.poll() is not None, "pages")
            started.kill()
            started.wait(30)
        done = muniment(*command)
        assert done.code == 0, done.stderr
        kept = [path for path in captured(out) if path.startswith("/calendar")]
        assert len(kept) < 160, "budgets do not start anew"
        assert "127.0.0.1/calendar?month" in {one["shape"] for one in in_force(muniment, out)}
        assert muniment("check", out).code == 0
        asked = len(site.requests)
        assert muniment(*command).code == 0
        assert len(site.requests) == asked


def test_what_was_set_aside_goes_on_when_its_pattern_is_removed(muniment: Callable[..., Any], tmp_path: Path) -> None:
    out = tmp_path / "a"
    with EndlessSite(calendar) as site:
        command = ("crawl", site.url, "-o", out, "--no-sitemaps", *GUARDS)
        assert muniment(*command).code == 0
        before = len(site.requests)
        traps = {one["shape"]: one for one in in_force(muniment, out)}
        aside = traps["127.0.0.1/calendar?month"]
        assert aside["skipped"] > 0
        done = muniment("ignores", "remove", "-o", out, aside["re"])
        assert done.code == 0, done.stderr
        assert "127.0.0.1/calendar?month" not in {one["shape"] for one in in_force(muniment, out)}
        assert muniment(*command, "--max-pages", "600").code == 3
        asked = [path for path in site.requests[before:] if path.startswith("/calendar?month=") and "day" not in path]
        assert len(asked) > 100


def test_paths_that_repeat_themselves_are_set_aside(muniment: Callable[..., Any], tmp_path: Path) -> None:
    out = tmp_path / "a"
    with EndlessSite(loop) as site:
        done = muniment("crawl", site.url, "-o", out, "--no-sitemaps", "--guards", "loops")
        assert done.code == 0, done.stderr
        assert len(site.requests) < 20
        assert [one["guard"] for one in in_force(muniment, out)] == ["loops"]


def test_a_forum_in_all_orders(muniment: Callable[..., Any], tmp_path: Path) -> None:
    out = tmp_path / "a"
    with EndlessSite(forum) as site:
        done = muniment("crawl", site.url, "-o", out, "--no-sitemaps", *GUARDS)
        assert done.code == 0, done.stderr
        kept = captured(out)
        assert {f"/topic?t={number}" for number in range(30)} <= kept
        assert len([path for path in kept if "sort=" in path]) < 80
        assert {one["shape"] for one in in_force(muniment, out)} == {"127.0.0.1/topic?days&order&sort&t"}


def test_without_guards_nothing_is_set_aside(muniment: Callable[..., Any], tmp_path: Path) -> None:
    out = tmp_path / "a"
    with EndlessSite(calendar) as site:
        done = muniment("crawl", site.url, "-o", out, "--no-sitemaps", "--max-pages", "300")
        assert done.code == 3
        assert in_force(muniment, out) == []


def test_why_names_the_guard_and_the_last_barren_pages(muniment: Callable[..., Any], tmp_path: Path) -> None:
    out = tmp_path / "a"
    with EndlessSite(calendar) as site:
        assert muniment("crawl", site.url, "-o", out, "--no-sitemaps", *GUARDS).code == 0
        events = [json.loads(line) for line in (out / "crawl.jsonl").read_text().splitlines()]
        skipped = next(one for one in events if one["event"] == "skip")
        told = json.loads(muniment("why", skipped["url"], "-o", out, "--json").stdout)
        assert told["verdict"] == "skipped"
        assert told["trap"]["guard"] == "barren"
        assert f"trap: barren: {told['trap']['shape']}" == skipped["reason"]
        assert len(told["trap"]["barren"]) == 3


def test_a_guard_that_is_not_known_is_named(muniment: Callable[..., Any], tmp_path: Path) -> None:
    done = muniment("crawl", "http://127.0.0.1:9/", "-o", tmp_path / "a", "--guards", "lops")
    assert done.code == 2
    assert "did you mean loops" in done.stderr
