"""How long a job still takes, as far as its last minutes tell."""

from __future__ import annotations

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment.rules.estimate import Milestone, growth, time_left


def marks(span: float, ended: int, before: int, now: int) -> list[Milestone]:
    """What was so long ago, what was a minute ago, or later, and what is now; pages end at an even rate."""
    lately = min(span, 60)
    share = round(ended * lately / span) if span else ended
    return [
        Milestone(100, 50, 1),
        Milestone(100 + span - lately, 50 + ended - share, before),
        Milestone(100 + span, 50 + ended, now),
    ][span <= 60 :]


@pytest.mark.parametrize(
    ("to_do", "lately", "wait", "left"),
    [
        (60, marks(60, 60, 120, 60), 0, 60),
        (60, marks(120, 60, 120, 60), 0, 120),
        (60, marks(60, 60, 120, 60), 3_600, 3_600),
        (60, marks(60, 60, 120, 60), -5, 60),
        (60, marks(60, 60, 72, 60), 0, inf),
        (60, marks(60, 60, 73, 60), 0, 60),
        (60, marks(15, 60, 59, 60), 0, inf),
        (60, marks(15, 60, 90, 60), 0, 15),
        (60, marks(60, 60, 59, 60), 3_600, inf),
        (60, marks(60, 0, 120, 60), 0, None),
        (60, marks(60, 0, 120, 60), 3_600, None),
        (60, marks(9, 60, 120, 60), 0, None),
        (0, marks(60, 60, 120, 0), 0, None),
        (60, [], 0, None),
        (60, marks(60, 60, 120, 60)[:1], 0, None),
    ],
)
def test_the_rate_of_the_last_minutes_tells_how_long_it_takes(to_do, lately, wait, left):
    assert time_left(to_do, lately, wait) == left


@pytest.mark.parametrize(
    ("lately", "more"),
    [
        (marks(60, 100, 100, 912), 812),
        (marks(30, 100, 100, 200), 200),
        (marks(60, 100, 100, 80), 0),
        (marks(60, 100, 100, 79), None),
        (marks(9, 100, 100, 900), None),
        (marks(60, 0, 100, 150), 50),
        (marks(60, 0, 100, 100), None),
        ([], None),
    ],
)
def test_the_queue_grows_while_eight_pages_are_found_for_ten_that_ended(lately, more):
    assert growth(lately) == more


counts = st.integers(0, 10**9)


@given(counts, st.floats(0, 1000), counts, counts, counts, st.floats(-1000, 100_000))
def test_an_estimate_is_never_earlier_than_the_last_wait(to_do, span, ended, before, now, wait):
    left = time_left(to_do, marks(span, ended, before, now), wait)
    assert left is None or left >= max(wait, 0)
