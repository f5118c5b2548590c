"""What a job says of its pages: server errors have failed, what is left out has a cause, and both have a remedy."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.support.gated_site import Answer, GatedSite
from tests.support.nginx import closed_port
from warc_reading import captures

BROKEN = Answer("it broke", 500)
ONCE = ("--no-robots", "--no-sitemaps", "--tries", 1, "--rounds", 0, "--workers", 1)


def pages(broken: Any) -> dict[str, Any]:
    return {"/": "<a href=/a>a</a><a href=/b>b</a><a href=/gone>c</a>", "/a": broken, "/b": "<p>b"}


def summed(muniment: Callable[..., Any], *arguments: object, code: int = 0) -> dict[str, Any]:
    done = muniment(*arguments, "--json")
    assert done.code == code, done
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def pages_of(**words: int) -> dict[str, int]:
    return {"captured": 0, "missing": 0, "failed": 0, "skipped": 0, "queued": 0, **words}


def last_line(text: str) -> str:
    return text.splitlines()[-1]


def test_a_server_error_has_failed_and_is_tried_again(muniment: Callable[..., Any], tmp_path: Path) -> None:
    """The summary, the last line, `why`, `inspect`, a second start, and `--retry-failed` agree."""
    with GatedSite(pages([BROKEN, Answer("<p>at last")])) as site:
        crawl = ("crawl", site.url, "-o", "out", *ONCE)
        done = muniment(*crawl)
        asking_again = f"muniment {' '.join(map(str, crawl))} --retry-failed"
        one_failed = f"1 page failed; to ask for it again: {asking_again}"
        assert (done.code, last_line(done.stderr)) == (0, one_failed)
        assert "Site 127.0.0.1: 2 pages captured, 1 missing, 1 failed, 0 skipped, 0 queued\n" in done.stderr
        assert "Answers: 2 × 200, 1 × " in done.stderr
        assert summed(muniment, "why", f"{site.url}a", "-o", "out")["verdict"] == "failed"
        found = summed(muniment, "inspect", "out")
        assert (found["failed_urls"], found["rows"], found["complete"], found["errors"]) == (1, 4, 4, {})
        assert "1 URL failed;" in muniment("inspect", "out").stdout.splitlines()[2]

        again = muniment(*crawl)
        assert "out is finished; nothing to do." in again.stderr
        assert (again.code, last_line(again.stderr)) == (0, one_failed)
        told = summed(muniment, *crawl)
        assert (told["already_finished"], told["outcome"], told["retryable"]) == (True, "finished", 1)
        assert (told["answers"], told["failed"], told["errors"]) == ({"200": 2, "404": 1, "500": 1}, {"500": 1}, {})
        assert site.counts()["/a"] == 1

        retried = summed(muniment, *crawl, "--retry-failed")
        assert retried["site"]["pages"] == pages_of(captured=3, missing=1)
        assert (retried["pages"], retried["failed"], retried["retryable"], retried["errors"]) == (4, {}, 0, {})
        assert site.counts() == {"/": 1, "/a": 2, "/b": 1, "/gone": 1}
        assert "nothing to do" in last_line(muniment(*crawl, "--retry-failed").stderr)
        assert summed(muniment, "why", f"{site.url}a", "-o", "out")["verdict"] == "captured"
    assert sorted((row["attempt"], row["status"]) for row in captures(tmp_path / "out") if row["url"][-1] == "a") == [
        (1, 500), (2, 200)
    ]  # fmt: skip
    assert summed(muniment, "inspect", "out")["failed_urls"] == 0
    assert muniment("check", "out").code == 0


def test_a_start_page_that_ends_in_a_server_error_is_not_captured(muniment: Callable[..., Any]) -> None:
    with GatedSite({"/": [BROKEN, BROKEN, Answer("<p>at last")]}) as site:
        crawl = ("crawl", site.url, "-o", "out", *ONCE)
        done = muniment(*crawl)
        assert done.code == 4, done
        assert done.stderr.startswith("Nothing could be captured.")
        assert summed(muniment, *crawl, code=4)["failed"] == {"500": 1}
        told = summed(muniment, *crawl)
    assert told["site"]["pages"] == pages_of(captured=1)


def test_pages_behind_a_start_page_that_failed_are_no_start(muniment: Callable[..., Any]) -> None:
    with GatedSite({"/": Answer("<a href=/a>a</a>", 500), "/a": "<p>a"}) as site:
        done = muniment("crawl", site.url, "-o", "out", *ONCE)
    assert (done.code, done.stderr.split(".")[0]) == (4, "No start URL could be captured")


def test_failed_pages_do_not_use_up_max_pages(muniment: Callable[..., Any]) -> None:
    with GatedSite({"/": "".join(f"<a href=/{n}>{n}</a>" for n in range(5)), "/0": BROKEN, "/1": BROKEN}) as site:
        told = summed(muniment, "crawl", site.url, "-o", "out", *ONCE, "--per-host", 1, "--max-pages", 2, code=3)
    assert told["site"]["pages"] | {"queued": 0} == pages_of(captured=1, missing=1, failed=2)
    assert told["failed"] == {"500": 2}


@pytest.mark.parametrize(("status", "taken"), [(503, True), (408, True), (429, True), (501, False), (404, False)])
def test_what_an_earlier_version_counted_as_captured_is_tried_again(
    muniment: Callable[..., Any], tmp_path: Path, status: int, taken: bool
) -> None:
    with GatedSite(pages(Answer("<p>a"))) as site:
        crawl = ("crawl", site.url, "-o", "out", *ONCE)
        summed(muniment, *crawl)
        with closing(sqlite3.connect(tmp_path / "out" / "tracker.sqlite")) as tracker:
            last = "SELECT id FROM pages WHERE url = ?"
            tracker.execute(f"UPDATE attempts SET status = ? WHERE page_id = ({last})", (status, f"{site.url}a"))
            tracker.commit()
        assert ("--retry-failed" in muniment(*crawl).stderr) is taken
        done = muniment(*crawl, "--retry-failed")
        assert ("nothing to do" in done.stderr) is not taken
        assert site.counts()["/a"] == 1 + taken
    if taken:
        assert "Site 127.0.0.1: 3 pages captured, 1 missing, 0 failed" in done.stderr
    assert muniment("check", "out").code == 0


def test_skipped_pages_are_named_by_cause(muniment: Callable[..., Any]) -> None:
    dead = f"http://127.0.0.2:{closed_port('127.0.0.2')}/"
    links = ["/kept-out/1", "/kept-out/2", "/ignored", "/keep-not", f"/{'x' * 9000}", *(f"{dead}{n}" for n in range(9))]
    site_pages = {
        "/": "".join(f'<a href="{link}">x</a>' for link in links),
        "/robots.txt": "User-agent: *\nDisallow: /kept-out",
        "/keep-not": "<meta name=robots content=noarchive>",
    }
    with GatedSite(site_pages) as site:
        crawl = ("crawl", site.url, "-o", "out", "--no-sitemaps", "--noarchive", "--ignore", "/ignored$", "--rounds", 0)
        done = muniment(*crawl, "--allow-private", "--tries", 4, "--per-host", 1)
        assert done.code == 0, done
        told = summed(muniment, *crawl[:1], site.url, "-o", "two", *crawl[4:], "--allow-private", "--tries", 4)
    by = told["skipped"]
    assert {cause: by[cause] for cause in ("ignore", "robots", "noarchive", "limit")} == {
        "ignore": 1, "robots": 2, "noarchive": 1, "limit": 1
    }  # fmt: skip
    assert by["dead-host"] + told["failed"].get("dead-host", 0) + told["failed"].get("refused", 0) == 9
    assert told["site"]["pages"]["skipped"] + told["other"]["pages"]["skipped"] == sum(by.values())
    assert (told["site"]["skipped"], told["other"]["skipped"]) == (
        {cause: by[cause] for cause in by if cause != "dead-host"},
        {"dead-host": by["dead-host"]},
    )
    assert told["other"]["hosts"] == 1
    lines = [line.strip() for line in done.stderr.splitlines()]
    assert "2 skipped by robots.txt; the same command with --no-robots captures them" in lines
    assert any(
        line.startswith("1 skipped by ignore patterns or rules; `muniment ignores list -o out`") for line in lines
    )
    assert any(
        line.endswith("skipped by hosts that were given up; the same command with --retry-failed tries them again")
        for line in lines
    )
    assert any(line.startswith("1 skipped by --noarchive; a new crawl") for line in lines)
    assert any(line.startswith("1 skipped by limits") for line in lines)
    assert "pages failed; to ask for them again: muniment crawl" in lines[-1]
    assert lines[-1].endswith(" --retry-failed")


def test_retry_failed_asks_hosts_again_that_were_given_up(muniment: Callable[..., Any]) -> None:
    port = closed_port("127.0.0.2")
    links = "".join(f"<a href=http://127.0.0.2:{port}/{n}>x</a>" for n in range(9))
    with GatedSite({"/": links}) as site:
        crawl = ("crawl", site.url, "-o", "out", "--no-robots", "--no-sitemaps", "--allow-private", "--rounds", 0)
        first = summed(muniment, *crawl)
        assert first["skipped"]["dead-host"] > 0
        assert first["retryable"] == sum(first["failed"].values()) + sum(first["skipped"].values()) == 9
        again = summed(muniment, *crawl, "--retry-failed")
    assert (again["site"]["pages"], again["retryable"]) == (pages_of(captured=1), 9), "it is dead still"
    assert (again["answers"], sum(again["errors"].values()) > 0) == ({}, True)


def test_lines_of_a_fetch_that_were_left_out_are_named(muniment: Callable[..., Any], tmp_path: Path) -> None:
    with GatedSite({"/a": "<p>a", "/no": "<p>no", "/robots.txt": "User-agent: *\nDisallow: /no"}) as site:
        (tmp_path / "list.txt").write_text(f"{site.url}a\n{site.url}no\nftp://x/\n")
        fetch = ("fetch", "list.txt", "-o", "out", "--robots", "--rounds", 0)
        done = muniment(*fetch)
        assert done.code == 0, done
        assert "  1 failed by robots.txt; the same command with --no-robots captures them" in done.stderr
        assert "--retry-failed" not in last_line(done.stderr), "nobody can, or may, ask for these"
        told = summed(muniment, "fetch", "list.txt", "-o", "two", "--robots", "--rounds", 0)
        assert (told["failed"], told["skipped"]) == ({"robots": 1, "scheme": 1}, {})
        fetch = ("fetch", "list.txt", "-o", "out", "--no-robots", "--rounds", 0)
        again = summed(muniment, *fetch)
        assert (again["site"]["pages"], again["failed"]) == (pages_of(captured=2, failed=1), {"scheme": 1})
