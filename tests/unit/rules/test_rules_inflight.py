"""Requests in flight over all hosts: more while they are wanted, half when many hosts fall silent at once."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment.rules.hosts.inflight import InflightFlow, cut, flow_within, is_burst, raised, share_of

LEAST, MOST = 32, 2000


def test_it_grows_by_half_while_it_is_wanted_and_not_beyond_its_bound():
    limits = grown(InflightFlow(64), until=3_500)
    assert list(dict.fromkeys(limits)) == [96, 144, 216, 324, 486, 729, 1093, 1639, MOST]
    assert limits.index(MOST) == 2_000 // 50, "a quarter of a second between two of them"


def test_once_cut_it_grows_by_steps():
    limits = grown(cut(InflightFlow(1_000), LEAST, 1_000), until=22_000)
    steps = {after - before for before, after in pairwise(limits)}
    assert (limits[0], limits[-1], max(steps)) == (500, MOST, 32)


def test_a_small_limit_grows_too():
    assert raised(InflightFlow(1), MOST, 1_000).limit == 33


def grown(flow: InflightFlow, until: int) -> list[int]:
    """The limit every 50 ms, wanted all the time."""
    limits = []
    for now in range(1_000, 1_000 + until, 50):
        flow = raised(flow, MOST, now)
        limits.append(flow.limit)
    return limits


def test_a_cut_halves_it_once_for_all_that_was_under_way():
    flow = cut(InflightFlow(1_000), LEAST, 5_000)
    assert flow.limit == 500
    assert cut(flow, LEAST, 14_999) is flow
    assert cut(flow, LEAST, 15_000).limit == 250


def test_it_does_not_grow_right_after_a_cut():
    flow = cut(InflightFlow(1_000), LEAST, 5_000)
    assert raised(flow, MOST, 14_999) is flow
    assert raised(flow, MOST, 15_000).limit == 532


@pytest.mark.parametrize(
    ("silent", "asked", "burst"),
    [(7, 10, False), (8, 10, True), (8, 32, True), (8, 33, False), (500, 9_500, False), (2_500, 9_500, True)],
)
def test_a_burst_is_many_and_broad(silent, asked, burst):
    assert is_burst(silent, asked) is burst


def test_bounds_that_contradict_each_other_are_the_upper_one():
    assert flow_within(InflightFlow(64), 32, 8).limit == 8
    assert flow_within(InflightFlow(64), 128, 256).limit == 128
    assert flow_within(InflightFlow(64), 32, 256) == InflightFlow(64)


@given(st.integers(1, 5_000), st.integers(1, 64))
def test_the_parts_of_all_workers_are_the_limit(limit, workers):
    parts = [share_of(limit, workers, position) for position in range(workers)]
    assert max(parts) - min(parts) <= 1
    assert sum(parts) == max(limit, workers)


@given(
    st.integers(1, 3_000),
    st.integers(1, 3_000),
    st.integers(1, 3_000),
    st.lists(st.tuples(st.sampled_from(["wanted", "burst"]), st.integers(0, 20_000)), max_size=60),
)
def test_it_never_leaves_its_bounds_and_always_comes_back(start, least, most, events):
    flow, now = flow_within(InflightFlow(start), least, most), 0
    for event, later in events:
        now += later
        before = flow
        flow = raised(flow, most, now) if event == "wanted" else cut(flow, least, now)
        assert min(least, most) <= flow.limit <= most
        assert flow.limit >= before.limit // 2
    for _ in range(3_000):
        now += 250
        flow = raised(flow, most, now)
    assert flow.limit == most
