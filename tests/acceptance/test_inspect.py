"""`inspect` over patterns, several directories, files, and directories that are running or were killed."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from crawled import complaint, run_muniment, wait_until
from tests.support.gated_site import Answer, GatedSite

PAGES = {"/": "<a href=/a>a</a> <a href=/b>b</a>", "/a": "<p>a", "/b": "<p>b"}
QUIET = ("--no-robots", "--no-sitemaps", "--quiet")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Three finished crawls of three pages each, one with a name that looks like a pattern."""
    cwd = tmp_path_factory.mktemp("inspected")
    with GatedSite(PAGES) as site:
        for name in ("one", "two", "a[1]"):
            run_muniment(cwd, "crawl", site.url, "-o", f"runs/{name}", *QUIET)
    (cwd / "runs" / "notes.txt").write_text("no index")
    yield cwd / "runs"


def inspected(muniment: Callable[..., Any], *paths: object) -> dict[str, Any]:
    done = muniment("inspect", *paths, "--json")
    assert (done.code, done.stderr) == (0, ""), done
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize(
    ("patterns", "rows"),
    [
        (["one"], 3),
        (["one", "two"], 6),
        (["one", "one/", "one/captures.parquet"], 3),
        (["*"], 9),
        (["*/captures.parquet"], 9),
        (["**/*.parquet"], 9),
        (["t*", "one"], 6),
        (["a[1]"], 3),
        (["a[[]1]/captures.parquet"], 3),
    ],
)
def test_each_capture_counts_once(muniment: Callable[..., Any], runs: Path, patterns: list[str], rows: int) -> None:
    found = inspected(muniment, *(f"{runs}/{pattern}" for pattern in patterns))
    assert (found["rows"], found["complete"], found["all_hosts"], found["silent_hosts"]) == (rows, rows, 1, [])
    assert sum(span["captures"] for span in found["speed"]) == rows


@pytest.mark.parametrize("how", [signal.SIGKILL, None])
def test_a_running_and_a_killed_directory(
    muniment: Callable[..., Any], tmp_path: Path, runs: Path, how: signal.Signals | None
) -> None:
    with GatedSite({**PAGES, "/a": "<a href=/held>held</a>", "/held": "x"}, held=["/held"]) as site:
        crawl = muniment.start("crawl", site.url, "-o", "out", *QUIET)
        site.wait_for("/held")
        journal = tmp_path / "out" / "parts" / "muniment-00000.warc.gz.journal"
        wait_until(lambda: inspected(muniment, "out")["rows"] == 3 if journal.exists() else False, "three rows")
        if how is not None:
            crawl.send_signal(how)
            crawl.wait(20)
        found = inspected(muniment, "out", runs / "one")
        assert (found["rows"], found["complete"]) == (6, 6)
        shown = muniment("inspect", "out", "-n", 2).stdout
        assert shown.splitlines()[-1].split()[0] == "200"


def test_what_is_no_index_is_told_in_a_line(muniment: Callable[..., Any], tmp_path: Path, runs: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "bad.parquet").write_bytes(b"PAR1")
    table = pq.read_table(runs / "one" / "captures.parquet").select(["url", "status"])
    pq.write_table(table, tmp_path / "other.parquet")
    assert "empty" in complaint(muniment("inspect", "empty"))
    assert "no-such does not exist" in complaint(muniment("inspect", "no-such"))
    assert "'runs/*'" in complaint(muniment("inspect", "runs/*")).replace("runs/* matches", "'runs/*' matches")
    assert "neither an output directory" in complaint(muniment("inspect", runs / "notes.txt"))
    for name in ("bad.parquet", "other.parquet"):
        assert f"{name} is not a capture index" in complaint(muniment("inspect", name))


def test_the_summary_counts_pages_and_inspect_rows(muniment: Callable[..., Any]) -> None:
    """Both say which."""
    busy = [Answer("soon", status=503, headers=(("Retry-After", "0"),)), Answer("<p>b")]
    with GatedSite({"/": "<a href=/b>b</a><img src=/i.png>", "/b": busy, "/i.png": Answer("x")}) as site:
        done = muniment("crawl", site.url, "-o", "out", "--no-sitemaps", "--workers", 1)
    assert "Site 127.0.0.1: 2 pages captured, 0 missing, 0 failed" in done.stderr
    assert "Requisites: 1 captured, 0 missing" in done.stderr
    told = muniment("inspect", "out").stdout.splitlines()
    assert told[:3] == done.stderr.splitlines()[1:4], "the same lines"
    # the 503 and robots.txt
    assert told[3].startswith("5 rows, robots.txt and repeated tries among them: 5 complete, 0 revisits;")


def test_a_url_has_failed_by_its_last_row_and_robots_txt_is_no_page(
    muniment: Callable[..., Any], tmp_path: Path, runs: Path
) -> None:
    """Rows of /a: an error, then an answer; of /b: an answer, then 429; of robots.txt: 503."""
    rows = pq.read_table(runs / "one" / "captures.parquet").to_pylist()
    of = {row["url"].rsplit("/", 1)[1]: row for row in rows}
    later = {"fetched_at": max(row["fetched_at"] for row in rows) + 1, "attempt": 2}
    made = [of["a"] | {"error": "reset: x", "status": 0}, of["a"] | later, of["b"], of["b"] | later | {"status": 429}]
    made += [of[""], of[""] | later | {"url": f"{of['']['url']}robots.txt", "found_as": "robots", "status": 503}]
    schema = pq.read_schema(runs / "one" / "captures.parquet")
    pq.write_table(pa.Table.from_pylist(made, schema), tmp_path / "made.parquet")
    found = inspected(muniment, "made.parquet")
    assert (found["failed_urls"], found["rows"], found["complete"]) == (1, 6, 5)
