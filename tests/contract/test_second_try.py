"""What `scripts/test` says of tests that pass only on the second try."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TESTS = """
from pathlib import Path
import pytest

def again(name):
    there = Path(name).exists()
    Path(name).touch()
    return there

def test_sound(): pass
@pytest.mark.parametrize("case", ["a, b", "c"])
def test_shaky(case): assert again(case)
@pytest.mark.alone
def test_shaky_alone(): assert again("alone")
"""
MARKS = "[pytest]\nmarkers =\n  alone: by itself\n"


def phases(where: Path, tests: str) -> subprocess.CompletedProcess[str]:
    (where / "test_some.py").write_text(tests)
    (where / "pytest.ini").write_text(MARKS)
    script = f"set -eu; python='{sys.executable}'; . '{ROOT}/scripts/second_try.sh'; "
    script += "try_tests 'not alone' -q; try_tests alone -q"
    env = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # they take longer than these tests
    return subprocess.run(
        ["sh", "-c", script], cwd=where, env=env, capture_output=True, text=True, timeout=120, check=False
    )


def test_what_passes_only_on_the_second_try_is_named_and_counted(tmp_path: Path) -> None:
    done = phases(tmp_path, TESTS)
    assert done.returncode == 0, done.stdout + done.stderr
    names = ("test_shaky[a, b]", "test_shaky[c]", "test_shaky_alone")
    said = "muniment: 3 passed only on the second try: " + ", ".join(f"test_some.py::{name}" for name in names)
    assert done.stderr.splitlines()[-1] == said


def test_what_passes_at_once_is_not_named(tmp_path: Path) -> None:
    done = phases(tmp_path, "import pytest\ndef test_one(): pass\n@pytest.mark.alone\ndef test_two(): pass\n")
    assert (done.returncode, done.stderr) == (0, "")


def test_what_fails_twice_fails_and_the_others_are_named_all_the_same(tmp_path: Path) -> None:
    done = phases(tmp_path, TESTS + "\ndef test_broken(): assert False\n")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("muniment: 2 passed only on the second try: ")
    assert "test_broken" not in done.stderr
