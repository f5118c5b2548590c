"""A disk that reports I/O errors ends a run with one line, loses nothing, and the same command goes on once it is mended."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from broken_machine import PACE, PATHS, a_site, events, is_whole, wait_for

from muniment.testing.faulty_disk import FaultyDisk, faulty_disk


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
        again = [path for path in PATHS if site.url.rstrip("/") + path in captured and site.counts()[path] > asked[path]]
        assert not again, "what was captured is kept"


def says_what_to_do(code: int, stderr: str) -> None:
    assert code == 1, stderr
    [line] = stderr.splitlines()
    assert line.startswith("muniment: ")
    assert "look after the disk, then give the same command again" in line
