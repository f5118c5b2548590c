"""A full disk stops a run in good order, wherever it strikes, and the same command goes on when there is room."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from broken_machine import PACE, PATHS, a_site, events, is_whole, wait_for
from tests.support.disks import fill, small_disk
from tests.support.gated_site import Answer

from muniment.archive.event_log import EventLog
from muniment.errors import DiskFullError
from muniment.model.event import CaptureEvent, EventBatch


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path / "disk", 4) as place:
        yield place


def complaint_of(done: Any, disk: Path) -> str:
    assert done.code == 3, (done.code, done.stdout, done.stderr)
    [line] = [line for line in done.stderr.splitlines() if line.startswith("muniment: ")]
    assert "Traceback" not in done.stderr
    assert f"the disk of {disk}" in line
    assert "bytes are free and about" in line
    assert "make room and give the same command again" in line
    return line


def test_a_disk_that_runs_full_while_pages_are_recorded(
    muniment: Callable[..., Any], disk: Path, tmp_path: Path
) -> None:
    out = disk / "out"
    with a_site(size=200_000) as site:
        # of a disk that is to keep some room, the room is waited for
        command = ("crawl", site.url, "-o", out, *PACE, "--min-free", 0, "--quiet")
        complaint_of(muniment(*command), disk)
        captured = {event["url"] for event in events(out, "capture")}
        assert captured
        _remount(disk, 40)
        done = muniment(*command)
        assert done.code == 0, done.stderr
        is_whole(muniment, out, site)
        assert captured <= {event["url"] for event in events(out, "capture")}


def _remount(disk: Path, megabytes: int) -> None:
    subprocess.run(["mount", "-o", f"remount,size={megabytes}m", disk], check=True, timeout=20)


def test_a_disk_that_is_full_in_the_middle_of_everything(muniment: Callable[..., Any], disk: Path) -> None:
    """Tracker, event log and WARC are all hit at once."""
    out = disk / "out"
    with a_site(after=0.05) as site:
        command = ("crawl", site.url, "-o", out, *PACE, "--min-free", 0, "--quiet")
        process = muniment.start(*command)
        wait_for(lambda: len(events(out, "capture")) > 5, "some pages")
        ballast = fill(disk)
        stdout, stderr = process.communicate(timeout=60)
        complaint_of(type("Done", (), {"code": process.returncode, "stdout": stdout, "stderr": stderr}), disk)
        assert events(out, "capture"), "the log has whole lines only"
        ballast.unlink()
        done = muniment(*command)
        assert done.code == 0, done.stderr
        is_whole(muniment, out, site)


def test_a_disk_that_is_full_when_the_index_is_joined(muniment: Callable[..., Any], tmp_path: Path) -> None:
    """The crawl has no page left, and is not over: the same command makes the index, and asks for nothing."""
    out = tmp_path / "out"
    with a_site() as site:
        command = ("crawl", site.url, "-o", out, *PACE, "--quiet")
        site.pages["/p0"] = lambda _: _no_room_for_the_index(out)
        complaint_of(muniment(*command), out)
        assert len(events(out, "capture")) == 1 + len(PATHS)
        asked = len(site.requests)
        done = muniment(*command)
        assert (done.code, len(site.requests) - asked) == (0, 0), done.stderr
        is_whole(muniment, out, site)


def _no_room_for_the_index(out: Path) -> Answer:
    (out / "captures.parquet.tmp").symlink_to("/dev/full")
    return Answer("a page")


def test_below_min_free_a_crawl_waits_for_room(muniment: Callable[..., Any], disk: Path) -> None:
    out = disk / "out"
    with a_site(after=0.1) as site:
        process = muniment.start("crawl", site.url, "-o", out, *PACE, "--min-free", 1_500_000, "--quiet")
        wait_for(lambda: len(events(out, "capture")) > 5, "some pages")
        (disk / "ballast").write_bytes(bytes(shutil.disk_usage(disk).free - 1_000_000))
        wait_for(lambda: events(out, "pause"), "the pause")
        time.sleep(0.5)  # what was handed out has landed
        before = len(site.requests)
        time.sleep(1)
        assert len(site.requests) == before < len(PATHS), "nothing is asked for"
        (disk / "ballast").unlink()
        _, stderr = process.communicate(timeout=60)
        assert process.returncode == 0, stderr
        assert [event["reason"] for event in events(out, "pause", "resume")] == ["disk", "disk"]
        is_whole(muniment, out, site)


def test_an_event_that_does_not_fit_leaves_no_part_of_itself(disk: Path) -> None:
    path = disk / "crawl.jsonl"
    with path.open("ab+", buffering=0) as file:
        log = EventLog(file.fileno(), path)
        log.take(EventBatch(0, (CaptureEvent("http://a.example/", 200, 1),)))
        before = path.read_bytes()
        ballast = fill(disk)
        with pytest.raises(DiskFullError, match=r"crawl\.jsonl"):
            log.take(EventBatch(0, (CaptureEvent("http://a.example/" + "x" * 10_000, 200, 1),)))
        ballast.unlink()
    assert path.read_bytes() == before
