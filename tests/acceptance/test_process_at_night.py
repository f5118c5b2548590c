"""`muniment process` where something is wrong with its store: what runs is shown and ended; else one line says why."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.support.disks import fill, small_disk

from muniment.clock import now_ms
from muniment.model.process import Process
from muniment.procs.platform.identity import here, look
from muniment.procs.stop import is_alive
from muniment.tracker.processes.sqlite import open_processes
from process_harness import a_launcher

MOVE_AWAY = "; move it away, and a new one is made: only what was known of processes is lost"


def this_one(*command: str) -> Process:
    """A row of this very process."""
    place, made = here(), os.urandom(16).hex()
    seen = look(os.getpid())
    assert seen is not None
    return Process(
        id=made, root_id=made, process_type="cli", status="running", machine_id=place.machine_id, pid=os.getpid(),
        boot_id=place.boot_id, pid_namespace=place.pid_namespace, uid=os.geteuid(), start_ticks=seen.start_ticks,
        cmd=command, pwd="/", queued_at=now_ms(), beat_at=now_ms(),
    )  # fmt: skip


@pytest.fixture
def kept(muniment: Any, tmp_path: Path) -> Path:
    """A store with one row."""
    muniment.environ["MUNIMENT_PROCESSES"] = str(tmp_path / "kept")
    with closing(open_processes(tmp_path / "kept")) as store:
        store.queue([this_one("x")])
    return tmp_path / "kept"


def refused(done: Any) -> str:
    assert (done.code, done.stdout) == (1, ""), done
    [line] = done.stderr.splitlines()
    return str(line)


def test_on_a_full_disk_what_runs_is_shown_and_ended(muniment: Any, tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 0.5) as disk, a_launcher(disk, "sleep", "600") as (_, row):
        ballast = fill(disk)
        listed = muniment("process", "list", "--json", MUNIMENT_PROCESSES=str(disk))
        assert listed.code == 0
        assert {one["state"] for one in json.loads(listed.stdout)} == {"running"}
        line = json.loads(listed.stderr)["warning"]
        assert "rows may be out of date, because they cannot be written: " in line
        assert line.endswith("database or disk is full; make room there")
        ended = muniment(
            "process", "kill", row.id, "--grace", "0", "--log-level", "error", MUNIMENT_PROCESSES=str(disk)
        )
        assert refused(ended).startswith("muniment: it has ended, but its row cannot be written: ")
        assert not is_alive(row)
        ballast.unlink()


def test_while_another_program_writes_rows_are_shown(muniment: Any, kept: Path) -> None:
    with closing(sqlite3.connect(kept / "processes.sqlite", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        done = muniment("process", "list", "--quiet")
    assert (done.code, len(done.stdout.split())) == (0, 1)
    assert done.stderr.endswith("database is locked; another program holds it\n")


def test_a_store_that_another_program_keeps_to_itself_is_refused(muniment: Any, kept: Path) -> None:
    with closing(sqlite3.connect(kept / "processes.sqlite", isolation_level=None)) as other:
        other.execute("PRAGMA locking_mode=EXCLUSIVE")
        other.execute("BEGIN EXCLUSIVE")
        assert refused(muniment("process", "list")).endswith("database is locked; another program holds it")


def test_a_damaged_store_is_refused_with_what_to_do(muniment: Any, kept: Path) -> None:
    with closing(sqlite3.connect(kept / "processes.sqlite", isolation_level=None)) as other:
        other.execute("DROP TABLE processes")
    assert refused(muniment("process", "list")).endswith(f"no such table: processes{MOVE_AWAY}")
    file = kept / "processes.sqlite"
    file.write_bytes(b"\xff" * file.stat().st_size)
    assert refused(muniment("process", "list")).endswith(f"file is not a database{MOVE_AWAY}")
    file.rename(kept / "away")
    assert muniment("process", "list").code == 0


@pytest.mark.parametrize("there", [True, False], ids=["store", "no store"])
def test_a_directory_that_cannot_be_written_is_refused_with_what_to_do(tmp_path: Path, there: bool) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    if there:
        open_processes(kept).close()
    script = 'mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" && exec "$@"'
    command = ["unshare", "--mount", "sh", "-c", script, kept, sys.executable, "-m", "muniment", "process", "list"]
    environ = {**os.environ, "MUNIMENT_PROCESSES": str(kept)}
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    why = "unable to open database file; it and its directory must be writable" if there else "Read-only file system"
    assert done.stderr == f"muniment: the store of processes {kept}/processes.sqlite cannot be used: {why}\n"


def test_a_place_that_is_a_file_is_refused(muniment: Any, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = muniment("process", "tree", MUNIMENT_PROCESSES=str(tmp_path / "file"))
    assert refused(done).endswith(f"cannot be used: {tmp_path / 'file'} is not a directory")


def test_where_nothing_is_known_it_says_so(muniment: Any, tmp_path: Path) -> None:
    told = [muniment("process", how, MUNIMENT_PROCESSES=str(tmp_path / "new")) for how in ("list", "tree")]
    assert [(done.code, done.stderr, done.stdout.count("\n")) for done in told] == [(0, "", 1)] * 2
    assert told[0].stdout.startswith("no such processes are known here")
    assert told[1].stdout.startswith("nothing runs")


def test_who_pipes_a_list_gets_a_line_for_each_and_nothing_that_steers_a_terminal(muniment: Any, kept: Path) -> None:
    odd = this_one("sh", "-c", "one\ntwo\x1b[2J", *("word" for _ in range(60)))
    with closing(open_processes(kept)) as store:
        store.queue([odd])
    told = [muniment("process", *how).stdout for how in (["list"], ["tree"], ["show", odd.id])]
    assert [text.count("\n") for text in told[:2]] == [3, 2]
    assert "\x1b" not in "".join(told)
    assert all(r"one\ntwo\x1b[2J" in text for text in told)
