"""Another engine than HTTP, behind the same door: worker loop, recorder, archive and tracker take what it gives."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.support.many_exchanges import BODY, EXCHANGES, HOSTS

from muniment.archive.index.read import rows
from muniment.control.check import check_directory

ROOT = Path(__file__).parents[3]
PAGES = [f"http://127.0.0.1:9/{number}" for number in range(20)]
MANY = "http://127.0.0.1:9/many"


@contextmanager
def crawling(out: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A crawl of all pages with the engine."""
    command = [sys.executable, "-m", "tests.support.many_exchanges", "crawl", *PAGES, MANY, "-o", out, "--workers", "1"]
    path = os.pathsep.join([str(ROOT), str(ROOT / "src")])
    crawl = subprocess.Popen(command, cwd=out.parent, env={**os.environ, "PYTHONPATH": path})
    try:
        yield crawl
    finally:
        crawl.kill()
        crawl.wait()


@pytest.mark.long
def test_pages_of_thousands_of_exchanges_are_recorded_stopped_and_resumed(tmp_path: Path) -> None:
    out = tmp_path / "out"
    hang = out.with_suffix(".hang")
    hang.touch()
    with crawling(out) as crawl:
        wait_for(out.with_suffix(".memory"))
        crawl.send_signal(signal.SIGINT)
        assert crawl.wait(60) == 3
    look_at(out, pages=len(PAGES), exchanges=EXCHANGES - HOSTS)
    hang.unlink()
    with crawling(out) as crawl:
        assert crawl.wait(60) == 0
    look_at(out, pages=len(PAGES) + 1, exchanges=EXCHANGES - HOSTS + EXCHANGES)
    used = int(out.with_suffix(".memory").read_text()) << 10
    assert used < EXCHANGES * BODY / 4, f"{used >> 20} MB more than at the start"


def look_at(out: Path, *, pages: int, exchanges: int) -> None:
    """A sound archive has every exchange, and the tracker three results a page."""
    assert check_directory(out).faults == ()
    assert found_as(out) == {"start": pages, "requisite": exchanges}
    assert results(out) == 3 * pages


def wait_for(path: Path) -> None:
    """Wait until the engine has written a file."""
    deadline = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def found_as(out: Path) -> Counter[str]:
    """How many rows the index has of each kind."""
    return Counter(found for batch in rows(out, ["found_as"]) for found in batch["found_as"].to_pylist())


def results(out: Path) -> int:
    """How many results the tracker has."""
    with sqlite3.connect(out / "tracker.sqlite") as tracker:
        return tracker.execute("SELECT count(*) FROM results").fetchone()[0]
