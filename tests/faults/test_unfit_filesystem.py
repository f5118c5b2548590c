"""A directory on a filesystem that lacks something is refused with one line, and may hold the captures all the same."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from broken_machine import PACE, a_site, events, is_whole
from tests.support.faulty_disk import faulty_disk


@pytest.mark.parametrize(
    ("lacks", "words"), [("flock", "cannot lock files (Operation not supported)"), ("mmap", "cannot hold a tracker")]
)
def test_what_it_lacks_is_said_and_a_tracker_elsewhere_helps(
    muniment: Callable[..., Any], tmp_path: Path, lacks: str, words: str
) -> None:
    with faulty_disk(tmp_path / "disk", without=(lacks,)) as disk, a_site() as site:
        out = disk.place / "out"
        command = ("crawl", site.url, "-o", out, *PACE, "--quiet")
        refused = muniment(*command)
        assert refused.code == 2
        [line] = refused.stderr.splitlines()
        assert f"the filesystem of {out} {words}" in line
        assert "give --state DIR with a directory on a local disk" in line
        assert site.requests == []
        state = ("--state", tmp_path / "state")
        stopped = muniment(*command, *state, "--max-pages", 5)
        assert (stopped.code, stopped.stderr) == (3, "")
        done = muniment(*command)  # the directory knows by now where its tracker lies
        assert (done.code, done.stderr) == (0, "")
        is_whole(muniment, out, site)
        assert len(events(out, "start")) == 2
        assert set(site.counts().values()) == {1}


def test_two_runs_at_once_are_told_apart_where_nothing_can_be_locked(
    muniment: Callable[..., Any], tmp_path: Path
) -> None:
    with faulty_disk(tmp_path / "disk", without=("flock",)) as disk, a_site(after=0.2) as site:
        out = disk.place / "out"
        command = ("crawl", site.url, "-o", out, *PACE, "--state", tmp_path / "state", "--quiet")
        first = muniment.start(*command)
        site.wait_for("/p1")
        second = muniment(*command)
        assert second.code == 2
        assert "is in use by another run" in second.stderr
        _, stderr = first.communicate(timeout=60)
        assert (first.returncode, stderr) == (0, "")
        is_whole(muniment, out, site)
