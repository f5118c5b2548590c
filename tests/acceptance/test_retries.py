"""Failures that may pass are tried again, each answer is kept, and what fails for good says why."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from crawled import run_muniment, wait_until
from tests.support.gated_site import Answer, GatedSite
from tests.support.nginx import closed_port
from warc_reading import captures

BROKEN, BUSY = Answer("come back later", 500), Answer("come back later", 503)
PACE = ("--no-robots", "--no-sitemaps", "--quiet", "--tries", 3, "--rounds", 0)


def test_tries_are_rows_and_the_last_one_decides(muniment: Callable[..., Any], tmp_path: Path) -> None:
    dead = f"http://127.0.0.1:{closed_port()}/"
    pages = {
        "/": f"<a href=flaky>1</a><a href=broken>2</a><a href=never>3</a><a href={dead}>4</a>",
        "/flaky": [BROKEN, BROKEN, Answer("<a href=/behind>here</a>")],
        "/broken": BROKEN,
        "/never": Answer("not made", 501),
        "/behind": "reached",
    }
    with GatedSite(pages) as site:
        run_muniment(tmp_path, "crawl", site.url, "-o", "out", *PACE)
        assert dict(site.counts()) == {"/": 1, "/flaky": 3, "/broken": 3, "/never": 1, "/behind": 1}

        def of(path: str) -> list[tuple[int, int, str]]:
            rows = [row for row in captures(tmp_path / "out") if row["url"] == f"{site.url}{path}"]
            return [(row["attempt"], row["status"], row["error"]) for row in sorted(rows, key=lambda r: r["attempt"])]

        assert of("flaky") == [(1, 500, ""), (2, 500, ""), (3, 200, "")]
        assert of("broken") == [(1, 500, ""), (2, 500, ""), (3, 500, "")]
        assert of("never") == [(1, 501, "")]
        assert of("behind") == [(1, 200, "")]
        why = json.loads(muniment("why", f"{site.url}flaky", "-o", "out", "--json").stdout)
    assert why["verdict"] == "captured"
    assert [tried["status"] for tried in why["page"]["attempts"]] == [500, 500, 200]
    # A host that refuses is tried as often, but only the last try has a row.
    [row] = [row for row in captures(tmp_path / "out") if row["url"] == dead]
    assert (row["attempt"], row["status"], row["warc_file"]) == (3, 0, "")
    assert row["error"].startswith("refused: ")
    assert json.loads(muniment("why", dead, "-o", "out", "--json").stdout)["verdict"] == "failed"
    assert muniment("check", "out").code == 0


def test_a_host_that_answers_in_the_end_is_owed_no_patience_by_the_next_run(tmp_path: Path) -> None:
    """Its last page may be the last of the run: that it answered is kept all the same."""
    with GatedSite({"/": [BUSY, BUSY, Answer("at last")]}) as site:
        run_muniment(tmp_path, "crawl", site.url, "-o", "out", *PACE)
    with closing(sqlite3.connect(tmp_path / "out" / "tracker.sqlite")) as tracker:
        assert tracker.execute("SELECT wait_until, wait_reason, strikes FROM hosts").fetchall() == [(0, "", 0)]


HASTY = (
    "from muniment.rules.hosts import politeness as p\n"
    "p._FIRST_MS = p._LAST_MS = 20\n"
    "from muniment.cli import main\n"
    "main()"
)
"""The command line, but for waiting a hundredth of the time for a host that throttles."""


def test_a_site_that_says_503_for_a_long_time_loses_no_page(tmp_path: Path) -> None:
    """It says so without a Retry-After, to more requests than one page would be worth, before all is well."""
    answers = [BUSY] * 120
    any_page = lambda _: answers.pop() if answers else Answer("<p>well")  # noqa: E731
    names = [f"p{number}" for number in range(40)]
    links = "".join(f"<a href={name}>x</a>" for name in names)
    with GatedSite({"/": links, **{f"/{name}": any_page for name in names}}) as site:
        crawl = ("crawl", site.url, "-o", "out", *PACE[:3], "--tries", "1", "--rounds", "0", "--workers", "1")
        subprocess.run([sys.executable, "-c", HASTY, *crawl], cwd=tmp_path, check=True, timeout=60)
    assert not answers
    good = {row["url"] for row in captures(tmp_path / "out") if row["status"] == 200}
    assert good == {site.url, *(f"{site.url}{name}" for name in names)}


def pauses(out: Path) -> list[str]:
    """What `crawl.jsonl` says that was waited for."""
    path = out / "crawl.jsonl"
    events = map(json.loads, path.read_text().splitlines() if path.exists() else ())
    return [event["reason"] for event in events if event["event"] == "pause"]


def test_a_run_that_is_resumed_between_two_rounds_says_what_it_waits_for(
    muniment: Callable[..., Any], tmp_path: Path
) -> None:
    """On its display as well, which says what `crawl.jsonl` does."""
    waited = "a later round for 1 page"
    with GatedSite({"/": "<a href=broken>1</a>", "/broken": BROKEN}) as site:
        crawl = ("crawl", site.url, "-o", "out", "--no-robots", "--no-sitemaps", "--tries", 1, "--workers", 1)
        for run in (1, 2):
            process = muniment.start(*crawl)  # type: ignore[attr-defined]
            wait_until(lambda n=run: pauses(tmp_path / "out") == [waited] * n, f"the word of run {run}")
            process.kill()
            process.communicate()
        assert site.counts()["/broken"] == 1, "it was not due"
