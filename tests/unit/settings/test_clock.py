"""The two clocks: dates go by the system's, waits by one that nobody sets."""

from __future__ import annotations

import pytest

from muniment import clock

HOUR_MS = 3_600_000


@pytest.mark.parametrize("step", [-HOUR_MS, HOUR_MS])
def test_what_the_system_says_after_its_clock_was_set_is_the_same_moment(
    monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    before, real = clock.steady_ms(), clock.now_ms
    monkeypatch.setattr(clock, "now_ms", lambda: real() + step)
    reported = clock.steadied(clock.now_ms())
    # not asked at one instant, but far less than an hour apart
    assert before - HOUR_MS / 2 < reported < clock.steady_ms() + HOUR_MS / 2
