"""A site that goes away for good in the middle: the run ends when its patience does, and loses nothing."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from bad_minutes import COMMANDS, Command, Job, Jobs, ends_with_the_test
from broken_machine import events, wait_for

from muniment.archive.check.directory import check

FOR_GOOD_S = 100_000.0
WELL_UNDER_A_MINUTE_S = 40.0
HOST = "127.0.0.1"


@pytest.fixture
def jobs(tmp_path: Path) -> Iterator[Jobs]:
    with contextlib.ExitStack() as stack:
        yield Jobs(tmp_path, stack)


def _is_left_to_do(job: Job) -> None:
    """All that was not captured is ready to be asked for, with tries."""
    pages = job.pages()
    waiting = {path for path, (state, remaining) in pages.items() if state == "READY" and remaining > 0}
    assert waiting == (set(pages) & job.all_paths()) - job.captured()
    assert waiting
    assert job.captured()


def _says_what_it_waited_for(job: Job) -> None:
    """In its summary, and in its log."""
    [stopped] = [line for line in job.said.splitlines() if line.startswith("Stopped")]
    assert HOST in stopped
    assert [event for event in events(job.out, "pause") if event.get("host") == HOST]
    [finish] = events(job.out, "finish")
    assert (finish["exit"], HOST in finish["reason"]) == (3, True), finish


@pytest.mark.parametrize("command", COMMANDS)
def test_a_run_whose_patience_is_over_leaves_its_pages_ready(jobs: Jobs, command: Command) -> None:
    job = jobs.one("gone", command, "--give-up-after", "5", quiet=False)
    process = job.reach_the_middle()
    began = time.monotonic()
    job.relay.away(FOR_GOOD_S)
    job.relay.allow(None)
    assert job.wait(process) == 3, job.said
    assert 5 <= time.monotonic() - began < WELL_UNDER_A_MINUTE_S
    _is_left_to_do(job)
    _says_what_it_waited_for(job)
    job.relay.mend()
    assert job.relay.open_again()
    assert job.wait(job.start()) == 0, job.said
    assert job.captured() == job.all_paths()
    assert check(job.out, 1).faults == ()


def test_patience_can_be_shortened_while_a_run_waits(muniment: Callable[..., Any], jobs: Jobs) -> None:
    job = jobs.one("gone", "crawl")
    process = job.reach_the_middle()
    job.relay.away(FOR_GOOD_S)
    job.relay.allow(None)
    with ends_with_the_test(process):
        wait_for(lambda: events(job.out, "pause"), "the word that the site is waited for")
        time.sleep(5)
        assert process.poll() is None, "it waited for nothing"
        said = muniment("set", "-o", job.out, "give-up-after=3")
        assert said.code == 0, said.stderr
    began = time.monotonic()
    assert job.wait(process) == 3, job.said
    assert time.monotonic() - began < WELL_UNDER_A_MINUTE_S
    _is_left_to_do(job)
