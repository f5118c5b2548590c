"""Limits of pages, bytes and time, and the reserve on the disk."""

from __future__ import annotations

import shutil

import pytest

from muniment.crawl.orchestrator.limits import Limits
from muniment.model.queue import Totals
from muniment.settings.option_table import Settings


@pytest.fixture
def limits(tmp_path):
    return lambda **given: Limits(Settings(**given), tmp_path)


def test_without_limits_there_is_room_for_all(limits):
    assert limits().room(Totals(captured=10**9, payload_bytes=10**15), 5, 100) == 100
    assert limits().reached(Totals(captured=10**9, payload_bytes=10**15), idle=True) == ""
    assert not limits().counts


@pytest.mark.parametrize(
    ("captured", "out", "room"), [(0, 0, 10), (0, 4, 6), (7, 0, 3), (7, 3, 0), (9, 5, 0), (10, 0, 0), (11, 0, 0)]
)
def test_max_pages_counts_what_is_out(limits, captured, out, room):
    made = limits(max_pages=10)
    assert made.counts
    assert made.room(Totals(captured=captured), out, 10) == room


def test_max_pages_is_reached_when_what_is_out_has_landed(limits):
    made = limits(max_pages=10)
    assert made.reached(Totals(captured=10), idle=False) == ""
    assert made.reached(Totals(captured=10), idle=True) == "--max-pages"
    assert made.reached(Totals(captured=9), idle=True) == ""


def test_requisites_and_failures_are_no_pages(limits):
    assert limits(max_pages=10).room(Totals(requisites=50, failed=50), 0, 10) == 10


def test_max_bytes(limits):
    made = limits(max_bytes=1_000)
    assert made.room(Totals(payload_bytes=999), 0, 5) == 5
    assert made.room(Totals(payload_bytes=1_000), 0, 5) == 0
    assert made.reached(Totals(payload_bytes=999), idle=True) == ""
    assert made.reached(Totals(payload_bytes=1_000), idle=False) == "--max-bytes"


def test_max_time_is_of_this_run(limits):
    assert limits(max_time=0.000_001).reached(Totals(), idle=False) == "--max-time"
    assert limits(max_time=3_600.0).reached(Totals(), idle=True) == ""


def test_the_reserve_is_a_gibibyte_or_a_twentieth(limits, tmp_path):
    assert limits().min_free == min(1 << 30, shutil.disk_usage(tmp_path).total // 20)
    assert limits(min_free=0).min_free == 0
    assert limits(min_free=77).min_free == 77


def test_limits_may_change_on_the_way(tmp_path):
    limits = Limits(Settings(max_pages=3, min_free=1), tmp_path)
    totals = Totals(captured=3)
    assert limits.reached(totals, idle=True) == "--max-pages"
    limits.change(Settings(max_bytes=5, min_free=2))
    assert (limits.reached(totals, idle=True), limits.counts, limits.min_free) == ("", False, 2)
