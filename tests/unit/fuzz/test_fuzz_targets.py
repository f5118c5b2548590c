"""The targets of `scripts/fuzz`, for a moment each: their seeds, mutations of these, and bytes of chance."""

from __future__ import annotations

from importlib import import_module

import pytest
from fuzz import TARGETS
from hypothesis import given, settings
from hypothesis import strategies as st


@pytest.mark.parametrize("name", TARGETS)
def test_a_target_holds(name: str) -> None:
    target = import_module(f"fuzz.{name}")
    for seed in target.SEEDS:
        target.check(seed)
    seeds = st.sampled_from(target.SEEDS)
    changed = st.builds(_changed, seeds, st.integers(0, 4000), st.integers(0, 8), st.binary(max_size=12))

    @settings(max_examples=60)
    @given(st.one_of(changed, st.binary(max_size=200)))
    def hold(data: bytes) -> None:
        target.check(data)

    hold()


def _changed(seed: bytes, at: int, removed: int, put: bytes) -> bytes:
    at %= len(seed) + 1
    return seed[:at] + put + seed[at + removed :]
