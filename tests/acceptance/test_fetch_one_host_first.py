"""A list that begins with more lines of one slow host than are read ahead: the hosts after it do not wait for it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.support.gated_site import GatedSite

from forked import ForkedWithChildren

AHEAD = 2_000
NARROW = f"""
from muniment.crawl.orchestrator import seed_feed as feeder
feeder._PLENTY, feeder._MOST_AHEAD = {AHEAD // 2}, {AHEAD}
from muniment.cli import main
main()
"""
"""The command line, but for reading less of a list ahead."""


def test_other_hosts_are_asked_while_the_first_has_more_pages_than_are_read_ahead(tmp_path: Path) -> None:
    others = [f"/other{number}" for number in range(3)]
    with (
        GatedSite({}, held=["/0"]) as slow,
        GatedSite(dict.fromkeys(others, "x"), address="127.19.7.1") as good,
    ):
        lines = [f"{slow.url}{number}" for number in range(2 * AHEAD)] + [f"{good.url}{path[1:]}" for path in others]
        (tmp_path / "list.txt").write_text("\n".join(lines))
        command = [sys.executable, "-c", NARROW, "fetch", "list.txt", "-o", "out", "--workers", "1", "--quiet"]
        with ForkedWithChildren(
            command, cwd=tmp_path, text=True, **dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        ) as run:
            try:
                good.wait_for(*others)
                assert len(slow.requests) == 1, "it has not answered yet"
            finally:
                run.terminate()
                slow.release()
                run.communicate(timeout=60)
