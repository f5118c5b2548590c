"""Pipelines and servers are killed, frozen and cut off: no page is lost, and each ends as it would have."""

from __future__ import annotations

import os
from pathlib import Path

from fleet_round import FleetRound

from forked import ForkedWithChildren

PAGES = 120
"""Of each of six hosts."""
SEED = int(os.environ.get("MUNIMENT_TEST_SEED", "1"))


def test_an_undisturbed_fleet_captures_each_page_once(tmp_path: Path) -> None:
    verdict = FleetRound(0, tmp_path, pages=PAGES, launch=ForkedWithChildren).run()
    assert verdict.complaints == []
    assert verdict.captures > 6 * PAGES


def test_a_struck_fleet_loses_nothing(tmp_path: Path) -> None:
    for seed in (SEED, SEED + 1):
        work = tmp_path / str(seed)
        work.mkdir()
        verdict = FleetRound(seed, work, pages=PAGES, launch=ForkedWithChildren).run()
        assert verdict.complaints == [], f"again with MUNIMENT_TEST_SEED={seed}"
        assert verdict.struck.total() > 1
