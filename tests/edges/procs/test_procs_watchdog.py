"""The last will of a process: carried out however it ends, and not once it is revoked."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from process_harness import soon, with_argument

WITH_A_WILL = """
import os, signal, sys
from muniment.procs.children.watchdog import Watchdog
will = Watchdog(["touch", sys.argv[1]], dict(os.environ))
if sys.argv[2] == "revoked":
    will.revoke()
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("how", ["killed", "revoked"])
def test_a_will_is_carried_out_unless_it_was_revoked(tmp_path: Path, how: str) -> None:
    made = tmp_path / "made"
    subprocess.run([sys.executable, "-c", WITH_A_WILL, str(made), how], timeout=60, check=False)
    soon(lambda: not with_argument(str(made)), "nobody waits any more")
    assert made.exists() == (how == "killed")
