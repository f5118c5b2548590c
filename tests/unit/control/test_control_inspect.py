"""Speed over time: spans that cut a run into at most twenty lines, their head included."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment.control.inspect import span_ms


@pytest.mark.parametrize(
    ("seconds", "span"),
    [
        (0, 1),
        (17, 1),
        (18, 2),
        (60, 5),
        (600, 60),
        (3_000, 300),
        (3_600, 300),
        (86_400, 7_200),
        (86_400 * 365, 86_400 * 22),
    ],
)
def test_spans_grow_with_the_run(seconds, span):
    assert span_ms(0, seconds * 1000) == span * 1000


@given(st.integers(0, 2**41), st.integers(0, 2**41))
def test_there_are_never_more_than_nineteen(first, long):
    span = span_ms(first, first + long)
    assert (first + long) // span - first // span + 1 <= 19
