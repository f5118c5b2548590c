"""`--database URL`: the tracker lies on a PostgreSQL server, and every command finds the directory's job there."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest
from crawled import complaint
from tests.support.gated_site import GatedSite
from tests.support.postgres import Postgres

PACE = ("--no-robots", "--no-sitemaps", "--workers", 1, "--quiet")
LINKS = "<a href='/a'>a</a><a href='/b'>b</a><a href='/c'>c</a>"
SITE = {"/": LINKS, "/a": "a", "/b": "b", "/c": "c"}


def test_every_command_finds_the_job_of_its_directory(
    muniment: Callable[..., Any], tracker_database: str, tmp_path: Path
) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    with GatedSite(SITE) as site, GatedSite({"/": "another"}) as another:
        first = ("crawl", site.url, "-o", one, *PACE)
        stopped = muniment(*first, "--database", tracker_database, "--max-pages", 2)
        assert stopped.code == 3, stopped.stderr
        assert muniment("crawl", another.url, "-o", two, "--database", tracker_database, *PACE).code == 0
        assert not list(tmp_path.rglob("tracker.sqlite"))
        resumed = muniment(*first)
        assert (resumed.code, resumed.stderr) == (0, ""), "--database was left out: the directory knows it"
        asked = list(site.requests)
        assert sorted(asked) == sorted(SITE), "each page once, over both runs"
        assert "captured" in muniment("why", site.url + "a", "-o", one).stdout
        assert "never seen" in muniment("why", site.url + "a", "-o", two).stdout
        assert muniment("ignores", "list", "-o", two).code == 0
        assert "is finished" in complaint(muniment("set", "-o", one, "delay=5"))
        assert muniment(*first).code == 0
        assert muniment("check", one).code == muniment("check", two).code == 0
        assert site.requests == asked
        assert "leave --database out" in complaint(muniment(*first, "--database", tracker_database + "&port=1"))
        assert "is in postgresql://" in complaint(muniment(*first, "--state", tmp_path / "state"))


def test_check_holds_pages_on_the_server_to_the_index(
    muniment: Callable[..., Any], tracker_database: str, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    with GatedSite({"/": "a page"}) as site:
        command = ("crawl", site.url, "-o", out, *PACE)
        assert muniment(*command, "--database", tracker_database).code == 0
        (out / "muniment-00000.warc.gz").unlink()
        (out / "captures.parquet").unlink()
        checked = muniment("check", out, "--json")
    assert checked.code == 1
    assert "the page is done and has no row" in checked.stdout


def test_a_fetch_resumes_on_a_server(muniment: Callable[..., Any], tracker_database: str, tmp_path: Path) -> None:
    out, seed = tmp_path / "out", tmp_path / "list"
    with GatedSite(SITE) as site:
        seed.write_text("".join(f"{site.url.rstrip('/')}{path}\n" for path in SITE))
        command = ("fetch", seed, "-o", out, "--workers", 1, "--quiet")
        assert muniment(*command, "--database", tracker_database, "--max-pages", 2).code == 3
        assert muniment(*command).code == 0
        assert sorted(site.requests) == sorted(SITE)


def test_retries_take_up_what_an_older_version_skipped_for_want_of_robots_txt_on_a_server(
    muniment: Callable[..., Any], tracker_database: str, tmp_path: Path
) -> None:
    """The job had finished; older versions took a robots.txt of 503 for a verdict, and kept no answer."""
    pages = {"/": "<a href='/a'>a</a>", "/a": "a", "/robots.txt": "User-agent: *\nDisallow: /a"}
    with GatedSite(pages) as site:
        crawl = ("crawl", site.url, "-o", tmp_path / "out", "--no-sitemaps", "--workers", 1, "--quiet")
        assert muniment(*crawl, "--database", tracker_database).code == 0
        assert muniment(*crawl).code == 0
        assert site.counts() == {"/robots.txt": 1, "/": 1}, "there is nothing to do"
        with psycopg.connect(tracker_database) as tracker:
            reason = "robots: robots.txt answers 503: nothing may be fetched"
            tracker.execute("UPDATE pages SET reason = %s WHERE url = %s", (reason, f"{site.url}a"))
            tracker.execute("DELETE FROM robots WHERE origin = %s", (site.url.rstrip("/"),))
        site.pages["/robots.txt"] = "User-agent: *\nAllow: /"
        assert muniment(*crawl).code == 0
        assert site.counts() == {"/robots.txt": 1, "/": 1}, "what is over is asked for again on demand alone"
        assert muniment(*crawl, "--retry-failed").code == 0
        assert site.counts() == {"/robots.txt": 2, "/": 1, "/a": 1}
        assert "captured" in muniment("why", f"{site.url}a", "-o", tmp_path / "out").stdout
        assert muniment("check", tmp_path / "out").code == 0


@pytest.mark.parametrize(
    "url",
    ["postgresql://me:geheim@127.0.0.1/db", "postgresql://127.0.0.1/db?user=me&password=geheim"],
)
def test_a_password_in_the_url_is_refused_and_not_shown(muniment: Callable[..., Any], tmp_path: Path, url: str) -> None:
    refused = muniment("crawl", "http://127.0.0.1:1/", "-o", tmp_path / "out", "--database", url, *PACE)
    assert "PGPASSWORD" in complaint(refused)
    assert "geheim" not in refused.stdout + refused.stderr
    assert "geheim" not in "".join(path.read_text() for path in tmp_path.rglob("*") if path.is_file())


@pytest.mark.parametrize(
    ("url", "code", "why"),
    [
        ("mysql://127.0.0.1/db", 2, "is not a PostgreSQL database"),
        ("postgresql://127.0.0.1", 2, "is not a PostgreSQL database"),
        ("postgresql://127.0.0.1:port/db", 2, "is not a PostgreSQL database"),
        ("postgresql://me@127.0.0.1:1/db", 3, "cannot be reached"),
    ],
)
def test_a_database_that_cannot_be_used(
    muniment: Callable[..., Any], tmp_path: Path, url: str, code: int, why: str
) -> None:
    refused = muniment("crawl", "http://127.0.0.1:1/", "-o", tmp_path / "out", "--database", url, *PACE)
    assert refused.code == code
    assert why in refused.stderr
    assert refused.stderr.count("\n") == 1


def test_a_database_that_is_not_there(muniment: Callable[..., Any], postgres: Postgres, tmp_path: Path) -> None:
    refused = muniment("crawl", "http://127.0.0.1:1/", "-o", tmp_path, "--database", postgres.url("nix"), *PACE)
    assert 'database "nix" does not exist' in complaint(refused)


def test_a_copy_of_a_directory_is_refused_while_its_job_runs(
    muniment: Callable[..., Any], tracker_database: str, tmp_path: Path
) -> None:
    out, copy = tmp_path / "out", tmp_path / "copy"
    with GatedSite({"/": "a page"}, held=["/"]) as site:
        command = ("crawl", site.url, *PACE, "--database", tracker_database)
        running = muniment.start(*command, "-o", out)  # type: ignore[attr-defined]
        site.wait_for("/")
        copy.mkdir()
        (copy / "tracker.place").write_bytes((out / "tracker.place").read_bytes())
        assert "another run has this job" in complaint(muniment(*command, "-o", copy))
        site.release("/")
        assert running.wait(60) == 0


def test_no_secret_is_kept(muniment: Callable[..., Any], tracker_database: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with GatedSite({"/": "a page"}) as site:
        done = muniment("crawl", site.url, "-o", out, "--database", tracker_database, *PACE, PGPASSWORD="geheim")
    assert done.code == 0
    assert not [path for path in out.rglob("*") if path.is_file() and b"geheim" in path.read_bytes()]
    assert [json.loads(line)["event"] for line in (out / "crawl.jsonl").read_text().splitlines()][-1] == "finish"
