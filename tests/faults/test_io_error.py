"""A disk that reports I/O errors ends a run with one line and loses nothing; mended, it lets the same command go on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from broken_machine import PACE, PATHS, a_site, events, is_whole, wait_for
from tests.support.faulty_disk import FaultyDisk, faulty_disk
from tests.support.gated_site import Answer


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[FaultyDisk]:
    with faulty_disk(tmp_path / "disk") as made:
        yield made


@pytest.mark.parametrize(
    ("what", "names"),
    [
        ("write", "*.warc.gz.open"),
        ("lose", "*.warc.gz.open"),
        ("write", "*.journal"),
        ("lose", "*.journal"),
        ("write", "tracker.sqlite-wal"),
        ("write", "crawl.jsonl"),
    ],
)
def test_an_error_while_pages_are_recorded(
    muniment: Callable[..., Any], disk: FaultyDisk, what: str, names: str
) -> None:
    out = disk.place / "out"
    with a_site(after=0.05) as site:
        command = ("crawl", site.url, "-o", out, *PACE, "--quiet")
        process = muniment.start(*command)
        wait_for(lambda: len(events(out, "capture")) > 5, "some pages")
        # what is lost by a sync is told once, and the next one would succeed
        disk.fail(what, names, 1 if what == "lose" else 1 << 30)
        _, stderr = process.communicate(timeout=60)
        says_what_to_do(process.returncode, stderr)
        assert disk.mend()
        captured = {event["url"] for event in events(out, "capture")}
        asked = site.counts()
        done = muniment(*command)
        assert (done.code, done.stderr) == (0, "")
        is_whole(muniment, out, site)
        again = [
            path for path in PATHS if site.url.rstrip("/") + path in captured and site.counts()[path] > asked[path]
        ]
        assert not again, "what was captured is kept"


def says_what_to_do(code: int, stderr: str) -> None:
    assert code == 1, stderr
    [line] = stderr.splitlines()
    assert line.startswith("muniment: ")
    assert "check the disk, then give the same command again" in line


def test_an_error_while_the_index_is_written(muniment: Callable[..., Any], disk: FaultyDisk) -> None:
    """The crawl has no page left, and is not over: the same command makes the index, and asks for nothing."""
    out = disk.place / "out"
    with a_site() as site:
        command = ("crawl", site.url, "-o", out, *PACE, "--quiet")
        disk.fail("sync", "captures.parquet*")
        failed = muniment(*command)
        assert failed.code == 1
        [line] = failed.stderr.splitlines()
        assert "captures.parquet" in line
        assert "give the same command again" in line
        assert disk.mend()
        asked = len(site.requests)
        done = muniment(*command)
        assert (done.code, done.stderr, len(site.requests) - asked) == (0, "", 0)
        is_whole(muniment, out, site)


def test_a_large_body_that_cannot_be_kept_is_no_failure_of_its_page(
    muniment: Callable[..., Any], disk: FaultyDisk
) -> None:
    out = disk.place / "out"
    with a_site() as site:
        site.pages["/p7"] = Answer(bytes(3 << 20), headers=(("Content-Type", "image/png"),))
        command = ("crawl", site.url, "-o", out, *PACE, "--tries", 1, "--quiet")
        disk.fail("write", "tmp*")
        failed = muniment(*command)
        says_what_to_do(failed.code, failed.stderr)
        assert disk.mend()
        assert not events(out, "fail")
        done = muniment(*command)
        assert (done.code, done.stderr) == (0, "")
        is_whole(muniment, out, site)
