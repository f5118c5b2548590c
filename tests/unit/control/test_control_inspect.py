"""Speed over time: spans that cut a run into at most sixty lines."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment.control.inspect import span_ms


@pytest.mark.parametrize(
    ("seconds", "span"),
    [(0, 1), (50, 1), (60, 2), (600, 15), (3_000, 60), (3_600, 120), (86_400, 1_800), (86_400 * 365, 86_400 * 7)],
)
def test_spans_grow_with_the_run(seconds, span):
    assert span_ms(0, seconds * 1000) == span * 1000


@given(st.integers(0, 2**41), st.integers(0, 2**41))
def test_there_are_never_more_than_sixty(first, long):
    span = span_ms(first, first + long)
    assert (first + long) // span - first // span + 1 <= 60
