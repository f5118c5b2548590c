"""A tracker that another program has locked: a run waits for it, goes on, or gives up with one line."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from broken_machine import PACE, a_site, events, is_whole, wait_for

SHORT = "from muniment.tracker.db import database; database.PATIENCE_S = {}; from muniment.cli import main; main()"


@pytest.mark.parametrize("released", [True, False])
def test_a_locked_tracker_is_waited_for_a_while(muniment: Callable[..., Any], tmp_path: Path, released: bool) -> None:
    out = tmp_path / "out"
    with a_site(after=0.05) as site:
        command = ["crawl", site.url, "-o", str(out), *map(str, PACE), "--quiet"]
        patience = SHORT.format(40 if released else 1)
        with subprocess.Popen([sys.executable, "-c", patience, *command], stderr=subprocess.PIPE, text=True) as process:
            try:
                wait_for(lambda: len(events(out, "capture")) > 3, "some pages")
                other = sqlite3.connect(out / "tracker.sqlite", isolation_level=None, timeout=20)
                other.execute("BEGIN EXCLUSIVE")
                assert process.stderr is not None
                said = process.stderr.readline()
                if released:
                    other.close()
                _, complaints = process.communicate(timeout=60)
                other.close()
            finally:
                process.kill()
        assert "tracker.sqlite is locked by another program: waiting up to" in said
        if not released:
            assert process.returncode == 1
            assert complaints.count("\n") == 1
            assert "is locked by another program: end that" in complaints
            assert muniment(*command).code == 0
        else:
            assert (process.returncode, complaints) == (0, "")
        is_whole(muniment, out, site)
