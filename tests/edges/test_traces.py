"""What a refused run takes back, and what it must leave: a log beside a tracker that was there before."""

from __future__ import annotations

import sqlite3
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from muniment.app.setup_rollback import unless_refused
from muniment.errors import UsageError
from muniment.procs.lock import EVENTS_FILE


def test_the_log_of_an_earlier_tracker_stays(tmp_path: Path) -> None:
    """A reader that began beside the run keeps what the run wrote in the log."""
    with closing(sqlite3.connect(tmp_path / "tracker.sqlite", isolation_level=None)) as earlier:
        earlier.execute("PRAGMA journal_mode=WAL")
        earlier.execute("CREATE TABLE kept (value)")
    with pytest.raises(UsageError), unless_refused() as traces:
        traces.make_directory(tmp_path)
        traces.lock(tmp_path, tmp_path)
        run = sqlite3.connect(tmp_path / "tracker.sqlite", isolation_level=None)
        reader = sqlite3.connect(tmp_path / "tracker.sqlite", isolation_level=None)
        run.execute("INSERT INTO kept VALUES (1)")
        reader.execute("BEGIN")
        assert reader.execute("SELECT value FROM kept").fetchall() == [(1,)]
        run.close()
        raise UsageError("refused")
    with closing(sqlite3.connect(tmp_path / "tracker.sqlite")) as later:
        assert later.execute("SELECT value FROM kept").fetchall() == [(1,)]
    reader.close()


def test_a_tracker_that_the_run_made_goes_with_its_log(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with pytest.raises(UsageError), unless_refused() as traces:
        traces.make_directory(out)
        traces.lock(out, out)
        for end in ("", "-wal", "-shm"):
            (out / f"tracker.sqlite{end}").touch()
        raise UsageError("refused")
    assert not out.exists()


def test_an_empty_log_that_was_there_stays(tmp_path: Path) -> None:
    (tmp_path / EVENTS_FILE).touch()
    with pytest.raises(UsageError), unless_refused() as traces:
        traces.make_directory(tmp_path)
        traces.lock(tmp_path, tmp_path)
        raise UsageError("refused")
    assert [path.name for path in tmp_path.iterdir()] == [EVENTS_FILE]


def test_two_refused_runs_that_overlap_leave_nothing(tmp_path: Path) -> None:
    """The second waits for a lock whose file the first takes back."""
    out, state = tmp_path / "out", tmp_path / "state"
    first_has_it = threading.Event()

    def second() -> None:
        with unless_refused() as traces:
            first_has_it.wait(20)
            traces.make_directory(out)
            traces.lock(out, state)
            raise UsageError("refused")

    with ThreadPoolExecutor() as beside:
        with pytest.raises(UsageError), unless_refused() as traces:
            traces.make_directory(out)
            traces.make_directory(state)
            traces.lock(out, state)
            waiting = beside.submit(second)
            first_has_it.set()
            time.sleep(0.3)
            raise UsageError("refused")
        with pytest.raises(UsageError, match="refused"):
            waiting.result(20)
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_beside_the_tracker_of_another_run_no_lock_is_left(tmp_path: Path) -> None:
    out, state = tmp_path / "out", tmp_path / "state"
    state.mkdir()
    (state / "tracker.sqlite").write_bytes(b"another's")
    with pytest.raises(UsageError), unless_refused() as traces:
        traces.make_directory(out)
        traces.lock(out, state)
        raise UsageError("refused")
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["state", "tracker.sqlite"]
