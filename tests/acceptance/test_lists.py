"""Lists in the forms in which people have them, and runs that are refused before they begin."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from crawled import complaint
from tests.support.gated_site import GatedSite
from warc_reading import captures

from forked import ForkedWithChildren

FORMS: dict[str, Callable[[str], bytes]] = {
    "gzip": lambda text: gzip.compress(text.encode()),
    "utf-16": lambda text: text.encode("utf-16"),
    "utf-16-le": lambda text: text.encode("utf-16-le"),
}
OUTPUT: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
QUIET = ("--quiet", "--no-robots", "--tries", 1)


@pytest.fixture
def site() -> Iterator[GatedSite]:
    with GatedSite({"/a": "a", "/b": "b", "/c": "c"}) as served:
        yield served


def text_of(site: GatedSite) -> str:
    return f"# a comment\n{site.url}a\n{site.url}b\n"


def asked(site: GatedSite) -> list[str]:
    return sorted(set(site.requests) - {"/robots.txt", "/sitemap.xml"})


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("how", ["file", "stdin"])
def test_a_crawl_reads_its_list(
    form: str, how: str, muniment: Callable[..., Any], site: GatedSite, tmp_path: Path
) -> None:
    (tmp_path / "list").write_bytes(FORMS[form](text_of(site)))
    piped(muniment, tmp_path, "crawl", "-i", "list" if how == "file" else "-", "--page-only", *QUIET, "-o", "out")
    assert asked(site) == ["/a", "/b"]


def piped(muniment: Callable[..., Any], cwd: Path, *arguments: object) -> None:
    """Run a command with `list` on its standard input."""
    command = [sys.executable, "-m", "muniment", *map(str, arguments)]
    with (cwd / "list").open("rb") as stdin, ForkedWithChildren(command, cwd=cwd, stdin=stdin, **OUTPUT) as process:
        _, stderr = process.communicate(timeout=60)
    assert process.returncode == 0, stderr


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("how", ["file", "stdin"])
def test_a_fetch_reads_its_list_and_knows_it_again(
    form: str, how: str, muniment: Callable[..., Any], site: GatedSite, tmp_path: Path
) -> None:
    (tmp_path / "list").write_bytes(FORMS[form](text_of(site)))
    command = ("fetch", "list" if how == "file" else "-", "--quiet", "-o", "out")
    piped(muniment, tmp_path, *command)
    assert asked(site) == ["/a", "/b"]
    piped(muniment, tmp_path, *command)
    assert sorted(row["url"] for row in captures(tmp_path / "out")) == [f"{site.url}a", f"{site.url}b"]
    assert (tmp_path / "out" / "seed-list").read_text() == text_of(site)


def test_a_packed_list_of_json_is_known_by_its_name(
    muniment: Callable[..., Any], site: GatedSite, tmp_path: Path
) -> None:
    line = json.dumps({"url": f"{site.url}c", "from": "me"})
    (tmp_path / "list.jsonl.gz").write_bytes(gzip.compress(line.encode()))
    assert muniment("fetch", "list.jsonl.gz", "--quiet", "-o", "out").code == 0
    assert [row["meta_json"] for row in captures(tmp_path / "out")] == ['{"from":"me"}']


def test_patterns_and_cookies_in_utf_16(muniment: Callable[..., Any], tmp_path: Path) -> None:
    heard: list[str | None] = []
    (tmp_path / "ignores").write_text("/ignored$\r\n", "utf-16")
    (tmp_path / "cookies").write_text("127.0.0.1\tFALSE\t/\tFALSE\t0\tname\tvalue\r\n", "utf-16")
    pages = {"/": lambda headers: heard.append(headers["Cookie"]) or _page(), "/ignored": "x", "/other": "x"}  # type: ignore[func-returns-value]
    with GatedSite(pages) as site:
        given = ("--import-ignores", "ignores", "--cookies", "cookies", "--no-sitemaps")
        assert muniment("crawl", site.url, *given, *QUIET, "-o", "out").code == 0
        assert asked(site) == ["/", "/other"]
    assert heard == ["name=value"]


def _page() -> Any:
    from tests.support.gated_site import Answer

    return Answer("<a href=/ignored>x</a><a href=/other>x</a>")


REFUSED: dict[str, tuple[tuple[str, ...], str]] = {
    "a zip of URLs": (("fetch", "zip"), "a zip archive"),
    "a zip of start URLs": (("crawl", "-i", "zip"), "a zip archive"),
    "gzip that is cut off": (("fetch", "cut"), "cut off"),
    "no list": (("fetch", "nothing-here"), "cannot be read"),
    "no URL": (("crawl", "ftp://a.example/"), "not an http or https URL"),
    "no cookies": (("crawl", "http://127.0.0.1:1/", "--cookies", "nothing-here"), "cannot be read"),
    "no patterns": (("crawl", "http://127.0.0.1:1/", "--import-ignores", "zip"), "a zip archive"),
    "no accounts": (("crawl", "http://127.0.0.1:1/", "--auth-file", "nothing-here"), "cannot be read"),
    "no proxy": (("crawl", "http://127.0.0.1:1/", "--proxy", "ftp://a.example/"), "proxy"),
    "no pattern": (("crawl", "http://127.0.0.1:1/", "--ignore", "("), "("),
    "no database": (("crawl", "http://127.0.0.1:1/", "--database", "postgresql://127.0.0.1:1/x"), "database"),
    "no shard": (("fetch", "list", "--shard", "2", "--shards", "2"), "--shard"),
    "a list that is no Parquet": (("fetch", "list", "--from", "parquet"), "arquet"),
    "no header": (("crawl", "http://127.0.0.1:1/", "--header", "x"), "header"),
}


@pytest.mark.parametrize("why", REFUSED)
def test_a_run_that_is_refused_leaves_nothing(why: str, muniment: Callable[..., Any], tmp_path: Path) -> None:
    arguments, told = REFUSED[why]
    (tmp_path / "zip").write_bytes(b"PK\x03\x04rest")
    (tmp_path / "cut").write_bytes(gzip.compress(b"http://127.0.0.1:1/\n" * 1000)[:-9])
    (tmp_path / "list").write_text("http://127.0.0.1:1/\n")
    before = sorted(tmp_path.iterdir())
    done = muniment(*arguments, "-o", "some/where/out", "--state", "else/where", "--quiet")
    assert told in complaint(done)
    assert sorted(tmp_path.iterdir()) == before


def test_a_run_whose_tracker_cannot_be_used_leaves_nothing(muniment: Callable[..., Any], tmp_path: Path) -> None:
    state = tmp_path / "state"
    state.mkdir()
    (state / "tracker.sqlite").write_text("no database")
    done = muniment("crawl", "http://127.0.0.1:1/", "-o", "some/where/out", "--state", state, "--quiet")
    assert (done.code, "cannot be used" in done.stderr) == (1, True), done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["state"]
    assert [path.name for path in state.iterdir()] == ["tracker.sqlite"]
