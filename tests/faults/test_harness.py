"""Rounds of the fault harness: what was killed, frozen, cut off and given no room ends as if nothing had happened."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from harness import round_seeds, run_round
from strikes import KINDS, draw

from forked import Forked

pytestmark = pytest.mark.long

ROUNDS = int(os.environ.get("MUNIMENT_ROUNDS", "6"))
SEED = int(os.environ.get("MUNIMENT_ROUNDS_SEED", "1"))


@pytest.mark.parametrize("seed", round_seeds(SEED, ROUNDS))
def test_a_round_loses_nothing(tmp_path: Path, seed: int) -> None:
    log = tmp_path / "log.jsonl"
    verdict = run_round(seed, tmp_path, log, Forked)
    told = log.read_text()
    again = f"python tests/faults/harness.py --round-seed {seed}"
    assert verdict.complaints == [], f"again with: {again}\n{told}"


def test_a_seed_draws_the_same_script_and_all_scripts_hold_every_kind() -> None:
    scripts = [draw(seed, 220) for seed in range(100)]
    assert scripts == [draw(seed, 220) for seed in range(100)]
    assert {strike.kind for script in scripts for strike in script.strikes} == set(KINDS)
    assert all(0 <= strike.after <= 220 for script in scripts for strike in script.strikes)


def test_the_command_replays_a_round_and_keeps_its_log(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    command = [sys.executable, Path(__file__).with_name("harness.py"), "--round-seed", "5", "--jobs", "1", "--log", log]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 rounds in" in done.stdout
    events = [json.loads(line) for line in log.read_text().splitlines()]
    strikes = [event for event in events if event["event"] == "strike"]
    assert [(strike["kind"], strike["after"]) for strike in strikes] == [
        (strike.kind, strike.after) for strike in draw(5, 221).strikes
    ]
