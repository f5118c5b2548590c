"""Wrong use is answered by one clear line and exit code 2, before anything is written or asked for."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from crawled import complaint
from tests.support.gated_site import GatedSite

from muniment.cli import main

URL = "http://127.0.0.1:9/"

CRAWL_OPTIONS = """
    --out=x  -o=x  --run-id=r  --prefix=p  -i=list  --input=list
    --page-only  --level=2  --no-offsite-links  --no-parent  --include=x  --ignore=x  --ignore-sets=a,b
    --no-global-ignores  --import-ignores=f  --sitemaps  --no-sitemaps
    --per-host=3  --concurrency=3  --inflight=9  --min-inflight=2  --start-inflight=3  --delay=250  --delay=250-375
    --workers=1  --robots  --no-robots  --tries=2  --connect-timeout=1.5  --timeout=2  --max-redirects=3
    --max-body=1MB  --max-pages=3  --max-bytes=1GiB  --max-time=9
    --user-agent=me  --header=A:b  --cookies=f  --auth-file=f  --proxy=socks5://h:1  --insecure  --http-compression
    --mode=fast  --mode=polite  --warc-size=500MB  --min-free=1GB  --allow-private  --state=d
    --database=postgresql://x  --nofollow  --noarchive  --retry-failed  --json  --quiet  --log-level=debug
"""
FETCH_OPTIONS = """
    --from=jsonl  --shard=1  --shards=4  --retry-failed  --redirects=on  --redirects=off  --store-unchanged
    --reorder=on  --reorder=off  --per-host=3  --inflight=9  --out=x  --tries=2  --max-redirects=3
"""


def in_process(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The complaint of a command that goes no further than its options: no process of its own is needed."""
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    told = capsys.readouterr()
    assert (ended.value.code, told.out) == (2, ""), arguments
    assert told.err.count("\n") == 1
    if "--json" in arguments:
        return str(json.loads(told.err)["error"])
    assert told.err.startswith("muniment: ")
    return told.err


def test_every_option_of_the_contract_parses_in_crawl(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("list").write_text("")
    said = {option: in_process(capsys, "crawl", "no url", *option.split("=", 1)) for option in CRAWL_OPTIONS.split()}
    # The start URL is looked at last, so a complaint about it says that the option was taken.
    assert {option: words for option, words in said.items() if "is not an http or https URL" not in words} == {}


def test_every_option_of_the_contract_parses_in_fetch(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    command = ("fetch", "no-such-list", "--shards=3")
    said = {option: in_process(capsys, *command, *option.split("=", 1)) for option in FETCH_OPTIONS.split()}
    # The list is opened last, so a complaint about it says that the option was taken.
    assert {option: words for option, words in said.items() if "no-such-list cannot be read" not in words} == {}


def test_all_that_works_works_together(muniment: Callable[..., Any], tmp_path: Path) -> None:
    with GatedSite({"/a/": "<a href='b'>b</a><a href='/c'>c</a>", "/a/b": "b"}) as site:
        (tmp_path / "list").write_text(f"# a comment\n{site.url}a/b\n")
        everything = """
            -i list --run-id r --prefix p --warc-size 1MB --min-free 1KB --state s --level 2 --no-offsite-links
            --no-parent --include a --ignore x --concurrency 3 --inflight 9 --delay 1-2 --workers 1 --no-robots
            --tries 2 --connect-timeout 5 --timeout 5 --max-redirects 3 --max-body 1MB --max-pages 9 --max-bytes 1GiB
            --max-time 99 --user-agent me --insecure --http-compression --allow-private --log-level error
        """
        done = muniment("crawl", f"{site.url}a/", "-o", "out", *everything.split(), "--header", "X-Y: z")
        assert done.code == 0, done.stderr
        assert set(site.requests) == {"/a/", "/a/b"}
    assert {path.name for path in (tmp_path / "out" / "r").iterdir()} >= {"p-00000.warc.gz", "captures.parquet"}
    assert (tmp_path / "s" / "tracker.sqlite").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["crawl"], "no start URL"),
        (["crawl", "example.com"], "https://example.com"),
        (["crawl", "ftp://example.com/"], "is not an http or https URL"),
        (["crawl", "http://"], "is not an http or https URL"),
        (["crawl", URL, "--no-such-option"], "--no-such-option"),
        (["crawl", URL, "--ignore", "("], "no regular expression"),
        (["crawl", URL, "--include", "("], "no regular expression"),
        (["crawl", URL, "--delay", "fast"], "not a delay"),
        (["crawl", URL, "--max-bytes", "much"], "not a size"),
        (["crawl", URL, "--per-host", "0"], "--per-host"),
        (["crawl", URL, "--timeout", "-1"], "--timeout"),
        (["crawl", URL, "--timeout", "nan"], "--timeout"),
        (["crawl", URL, "--warc-size", "0"], "'0' is too small"),
        (["crawl", URL, "--max-body", "0"], "'0' is too small"),
        (["crawl", URL, "--level", "9" * 20], "is too large"),
        (["fetch", "list", "--tries", "9" * 20], "is too large"),
        (["inspect", ".", "-n", "9" * 20], "-n"),
        (["process", "list", "-n", "9" * 20], "-n"),
        (["process", "prune", "--older-than", "9" * 20 + "d"], "is too long"),
        (["process", "kill", "x", "--grace", "inf"], "--grace"),
        (["process", "kill", "x", "--grace", "nan"], "--grace"),
        (["crawl", URL, "--mode", "rude"], "rude"),
        (["crawl", URL, "--header", "no colon"], "header"),
        (["crawl", URL, "--proxy", "nonsense"], "proxy"),
        (["crawl", "-i", "no-such-list"], "no-such-list"),
        (["crawl", URL, "--out"], "--out"),
        (["inspect", "no-such-directory"], "no-such-directory"),
        (["check", "no-such-directory"], "no-such-directory"),
        (["why", URL, "-o", "no-such-directory"], "no-such-directory"),
        (["why", URL, "-o", "."], "tracker"),
        (["crawl", URL, "-o", ""], "the name is empty"),
        (["crawl", URL, "--state", ""], "the name is empty"),
        (["crawl", URL, "-i", ""], "the name is empty"),
        (["fetch", ""], "the name is empty"),
        (["inspect", ""], "the name is empty"),
        (["crawl", URL, "--run-id", ""], "no name within the output directory"),
        (["crawl", URL, "--run-id", "../other"], "no name within the output directory"),
        (["crawl", URL, "--prefix", "a/b"], "no name within the output directory"),
        (["crawl", URL, "--prefix", ".."], "no name within the output directory"),
        (["crawl", URL, "--prefix", "p" * 101], "no name within the output directory"),
        (["fetch"], "SEED"),
        (["fetch", "no-such-list"], "no-such-list cannot be read: No such file"),
        (["fetch", "."], "cannot be read: Is a directory"),
        (["fetch", "empty"], "the list empty is empty"),
        (["fetch", "empty", "--from", "parquet"], "cannot be read as Parquet"),
        (["fetch", "empty", "--from", "table"], "table"),
        (["fetch", "list", "--from", "sitemap"], "is not a sitemap"),
        (["fetch", "list", "--shard", "2", "--shards", "2"], "count from 0 to 1"),
        (["fetch", "list", "--redirects", "some"], "some"),
        (["fetch", "https://example.com/list", "--from", "lines"], "as a sitemap only"),
        (["nonsense"], "nonsense"),
    ],
)
def test_each_complaint_is_one_line(
    arguments: list[str],
    words: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("empty").write_text("")
    Path("list").write_text(URL)
    assert words in in_process(capsys, *arguments)
    assert not list(tmp_path.rglob("*.warc.gz*"))


def unwritable(tmp_path: Path) -> list[tuple[Path, str]]:
    """Places that even root cannot write to, and for others a directory without the permission."""
    (tmp_path / "file").write_text("")
    places = [
        (tmp_path / "file", "is a file"),
        (tmp_path / "file" / "below", "cannot be made"),
        (Path("/proc/muniment"), "cannot be made"),
        (Path("/proc"), "cannot be written"),
    ]
    if os.geteuid() != 0:
        (tmp_path / "shut").mkdir(mode=0o500)
        places.append((tmp_path / "shut", "cannot be written"))
    return places


def test_a_directory_that_cannot_be_written(muniment: Callable[..., Any], tmp_path: Path) -> None:
    with GatedSite({}) as site:
        for place, words in unwritable(tmp_path):
            assert words in complaint(muniment("crawl", site.url, "-o", place)), place
        assert site.requests == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["fetch", "empty", "-o", "a/b"], "the list empty is empty"),
        (["fetch", "empty", "-o", "new", "--run-id", "r", "--state", "c/d"], "the list empty is empty"),
        (["fetch", "-", "-o", "new"], "the list - is empty"),
        (["fetch", "-", "-o", "new", "--from", "jsonl", "--state", "c"], "the list - is empty"),
        (["crawl", URL, "-o", "new", "--state", "c", "--database", "postgresql:///x"], "leave it out"),
        (["crawl", URL, "-o", "new", "--database", "mysql:///x"], "is not a PostgreSQL database"),
        (["crawl", URL, "-o", "new", "--state", "file"], "is a file"),
        (["crawl", URL, "-o", "new", "--state", "file/c"], "cannot be made"),
        (["crawl", URL, "-o", "new/x", "--state", "s"], "s is the tracker of out"),
        (["crawl", URL, "-o", "out"], "holds a crawl of other start URLs"),
        (["crawl", URL, "-o", "moved"], "holds captures"),
    ],
)
def test_a_run_that_is_refused_leaves_nothing(
    muniment: Callable[..., Any], tmp_path: Path, arguments: list[str], words: str
) -> None:
    with GatedSite({"/": "x"}) as site:
        assert muniment("crawl", site.url, "-o", "out", "--state", "s", "--no-robots").code == 0
    (tmp_path / "moved").mkdir()
    shutil.copy(tmp_path / "out" / "captures.parquet", tmp_path / "moved")
    for name in ("empty", "file"):
        (tmp_path / name).touch()
    before = tree(tmp_path)
    assert words in complaint(muniment(*arguments))
    assert tree(tmp_path) == before


def tree(top: Path) -> dict[str, int]:
    """Every file and directory below, but what is known of processes: those of a refused run have rows, too."""
    found = [path for path in top.rglob("*") if "processes" not in str(path.relative_to(top))]
    return {str(path.relative_to(top)): path.stat().st_size if path.is_file() else -1 for path in found}


def test_a_run_that_finds_a_directory_in_use_leaves_nothing(muniment: Callable[..., Any], tmp_path: Path) -> None:
    """Its own output directory is new; that of the tracker belongs to a run that goes on."""
    with GatedSite({"/": "<a href=/held>", "/held": "x"}, held=["/held"]) as site:
        crawl = muniment.start("crawl", site.url, "-o", "out", "--state", "s", "--no-robots", "--no-sitemaps")  # type: ignore[attr-defined]
        site.wait_for("/held")
        before = {name for name in tree(tmp_path) if "-" not in name}
        told = complaint(muniment("crawl", site.url, "-o", "new/out", "--state", "s"))
        assert "s is in use by another run" in told
        assert "out is in use by another run" in complaint(muniment("crawl", site.url, "-o", "out", "--state", "s"))
        assert {name for name in tree(tmp_path) if "-" not in name} == before
        site.release()
        crawl.communicate(timeout=30)
        assert crawl.returncode == 0


@pytest.mark.parametrize("command", ["", "crawl", "fetch", "inspect", "check", "why", "set", "ignores", "process"])
def test_every_command_has_help(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([*command.split(), "--help"])
    assert ended.value.code == 0
    assert "Usage: muniment" in capsys.readouterr().out
