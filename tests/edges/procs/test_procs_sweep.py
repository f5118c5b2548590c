"""The sweep: after any kill every row is true and nothing is left; what cannot be judged from here is left alone."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import uuid
from pathlib import Path

import psutil
import pytest
from msgspec import structs

from muniment.clock import now_ms
from muniment.errors import ProcessError
from muniment.model.process import ProcessEnding
from muniment.procs.children.run import launch
from muniment.procs.children.shim import HOW
from muniment.procs.platform.identity import here
from muniment.procs.registry import get_by_pid
from muniment.procs.stop import is_alive, members, stop_tree
from muniment.procs.sweep import KEEP_MS, SweepReport, cleanup_stale_running, prune, tend
from process_harness import DOUBLE_FORK, a_launcher, everyone_of, opened, soon, with_argument

DAY_MS = 24 * 3600 * 1000


def change(home: Path, process_id: str, **values: object) -> None:
    with sqlite3.connect(home / "processes.sqlite") as connection:
        for name, value in values.items():
            connection.execute(f"UPDATE processes SET {name} = ? WHERE id = ?", (value, process_id))
    connection.close()


def test_a_daemon_that_is_older_than_a_day_stays_running(book, tmp_path):
    run = launch(book, ["sleep", "600"], background=True)
    before = now_ms() - 3 * DAY_MS
    change(tmp_path / "home", run.process.id, queued_at=before, started_at=before, beat_at=before)
    assert cleanup_stale_running(book.store) == SweepReport(0, 0)
    assert run.process.status == "running"
    assert run.process.beat_at > before
    assert get_by_pid(book.store, run.process.pid) == run.process
    run.terminate()


@pytest.mark.parametrize("hours", [-1, 1, 24 * 400])
def test_a_clock_that_is_set_retires_nothing(book, tmp_path, hours):
    run = launch(book, ["sleep", "600"], background=True)
    current = book.current()
    moved = f"import time; r = time.time_ns; time.time_ns = lambda: r() + {hours} * 3_600_000_000_000"
    begun = "import runpy; runpy.run_module('muniment', run_name='__main__')"
    environ = {**os.environ, "MUNIMENT_PROCESSES": str(tmp_path / "home")}
    command = [sys.executable, "-c", f"{moved}\n{begun}", "process", "list", "--json"]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=60, check=True)
    assert {row["id"]: row["state"] for row in json.loads(done.stdout)} == {
        run.process.id: "running",
        current.id: "running",
    }
    assert is_alive(run.process)
    run.terminate()


REUSED = """
import os, subprocess, sys
from pathlib import Path
from muniment.procs.registry import ProcessRegistry, get_by_pid
from muniment.procs.children.run import launch
from muniment.procs.stop import stop_tree
from muniment.procs.sweep import cleanup_stale_running
from muniment.tracker.processes.sqlite import open_processes
home = Path(sys.argv[1])
book = ProcessRegistry(open_processes(home), home, "cli")
run = launch(book, ["sleep", "600"], background=True)
row = run.process
run.terminate()
import sqlite3
connection = sqlite3.connect(home / "processes.sqlite")
connection.execute("UPDATE processes SET status = 'running', exit_code = NULL, directory = '' WHERE id = ?", (row.id,))
connection.commit()
other = None
for _ in range(50):
    Path("/proc/sys/kernel/ns_last_pid").write_text(str(row.pid - 1))
    other = subprocess.Popen(["sleep", "600"])
    if other.pid == row.pid:
        break
    other.kill()
    other.wait()
assert other.pid == row.pid, "the number could not be forced"
row = book.store.get(row.id)
assert not run.kill()
assert get_by_pid(book.store, row.pid) is None
ended = stop_tree(book.store, row, grace_s=0.2)
assert [(one.status, one.exit_code) for one in ended] == [("exited", None)], ended
cleanup_stale_running(book.store)
print(other.poll())
other.kill()
"""


def in_a_namespace(*words: object) -> subprocess.CompletedProcess[str]:
    """Run Python in a namespace of processes of its own, which takes root."""
    command = ["unshare", "--pid", "--fork", "--mount-proc", sys.executable, *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_a_number_that_another_process_has_by_now_is_never_signalled(tmp_path):
    done = in_a_namespace("-c", REUSED, tmp_path / "home")
    assert (done.returncode, done.stdout) == (0, "None\n"), done.stderr


INSIDE = """
import sys
from pathlib import Path
from muniment.procs.registry import ProcessRegistry
from muniment.procs.children.run import launch
from muniment.procs.sweep import cleanup_stale_running
from muniment.tracker.processes.sqlite import open_processes
home = Path(sys.argv[1])
book = ProcessRegistry(open_processes(home), home, "cli", "inside")
run = launch(book, ["sh", "-c", "echo $$; exec sleep 600"], background=True)
cleanup_stale_running(book.store)
print(run.process.id, run.process.pid, flush=True)
sys.stdin.read()
cleanup_stale_running(book.store)
print(run.process.status, flush=True)
"""


def test_two_namespaces_never_judge_each_others_rows(book, tmp_path):
    ours = launch(book, ["sleep", "600"], background=True)
    command = ["unshare", "--pid", "--fork", "--mount-proc", sys.executable, "-c", INSIDE, str(tmp_path / "home")]
    environ = {name: value for name, value in os.environ.items() if name != "MUNIMENT_PROCESS"}
    with subprocess.Popen(command, env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as inside:
        theirs = book.store.get(inside.stdout.readline().split()[0])
        assert theirs.pid_namespace != ours.process.pid_namespace
        assert (ours.process.status, theirs.status) == ("running", "running")
        assert cleanup_stale_running(book.store) == SweepReport(0, 0)
        assert book.store.get(theirs.id).status == "running"
        assert get_by_pid(book.store, theirs.pid) is None
        with pytest.raises(ProcessError, match="of another machine or container"):
            stop_tree(book.store, theirs)
        same_number = structs.replace(ours.process, pid_namespace=theirs.pid_namespace)
        assert not is_alive(same_number)
        assert members([same_number]) == {}
        said, _ = inside.communicate("", timeout=30)
    assert said == "running\n"
    ours.terminate()


def test_rows_of_another_machine_are_left_alone(book, tmp_path):
    run = launch(book, ["true"])
    elsewhere = structs.replace(
        run.process, id="f" * 32, parent_id=None, root_id="f" * 32, status="running", machine_id="other", beat_at=0,
        exit_code=None, ended_at=None,
    )  # fmt: skip
    book.store.queue([elsewhere])
    assert cleanup_stale_running(book.store) == SweepReport(0, 0)
    assert book.store.get("f" * 32) == elsewhere


@pytest.mark.parametrize(
    ("killed", "codes"),
    [
        ("launcher", {-15}),
        ("keeper", {-9}),
        ("stand-by", {-15}),
        ("command", {-9}),
        # the keeper may have noticed before it is killed
        ("launcher, keeper", {-9, -15}),
        ("launcher, stand-by", {-15}),
        # here too; and with nobody to wait for it, the shell may go by itself when its child is killed: how is lost
        ("launcher, keeper, stand-by", {-9, -15, None}),
    ],
)
def test_after_a_kill_at_any_level_nothing_is_left_and_every_row_is_true(tmp_path, killed, codes):
    mine = uuid.uuid4().hex
    # what left its parent, its session and its environment is found by a keeper alone, and by one that can adopt
    hidden = ["hide", mine] if HOW[0] == "-I" and killed != "launcher, keeper, stand-by" else [mine]
    script = f'{sys.executable} -c "$@"; {sys.executable} -c "$1" {mine}; sleep 600'
    with a_launcher(tmp_path / "home", "sh", "-c", script, "sh", DOUBLE_FORK, *hidden) as (launcher, row):
        soon(lambda: (Path(row.directory) / "stdout.log").read_text().count("forked") == 2, "all are there")
        keeper = psutil.Process(row.pid).parent()
        pids = {"launcher": launcher.pid, "keeper": keeper.pid, "stand-by": keeper.ppid(), "command": row.pid}
        for name in killed.split(", "):
            os.kill(pids[name], signal.SIGKILL)
        if "launcher" in killed:
            launcher.wait(10)
        with opened(tmp_path / "home") as store:
            # nothing here sweeps; five seconds are enough where no other tests run beside this one
            soon(lambda: not everyone_of(store) and store.get(row.id).status == "exited", "the row is true")
            assert with_argument(mine) == []
            assert store.get(row.id).exit_code in codes
            expected = "exited" if "launcher" in killed else "running"
            soon(lambda: store.get(row.parent_id).status == expected, "so is that of its launcher")
            assert store.get(row.parent_id).exit_code is None


def test_when_nobody_is_left_the_next_sweep_ends_what_is(tmp_path):
    home = tmp_path / "home"
    with a_launcher(home, "sh", "-c", "sleep 600 & sleep 600") as (launcher, row), opened(home) as store:
        keeper = psutil.Process(row.pid).parent()
        for pid in (*waiting_shells(home), launcher.pid, keeper.ppid(), keeper.pid):
            os.kill(pid, signal.SIGKILL)
        launcher.wait(10)
        assert store.get(row.id).status == "running"

        def over() -> bool:
            cleanup_stale_running(store)  # what was killed may be there for a moment yet
            return {one.status for one in store.newest(9)} == {"exited"}

        soon(over, "both rows are true")
        assert everyone_of(store) == []


def waiting_shells(home: Path) -> list[int]:
    """The shells that wait for the end of who launches processes of this store."""
    return [pid for pid in with_argument(str(home)) if psutil.Process(pid).cmdline()[0].endswith("/sh")]


def test_who_ends_well_leaves_no_will(tmp_path):
    home = tmp_path / "home"
    with a_launcher(home, "sleep", "600") as (launcher, row):
        assert len(waiting_shells(home)) == 1
        launcher.terminate()
        launcher.wait(20)
        soon(lambda: not with_argument(str(home)), "the shell has gone")
    with opened(home) as store:
        assert (store.get(row.parent_id).exit_code, store.get(row.id).exit_code) == (0, -15)


@pytest.mark.parametrize("stopped", ["keeper", "stand-by"])
def test_a_keeper_that_is_stopped_keeps_nothing_when_its_launcher_is_killed(tmp_path, stopped):
    with a_launcher(tmp_path / "home", "sleep", "600") as (launcher, row):
        keeper = psutil.Process(row.pid).parent()
        os.kill(keeper.pid if stopped == "keeper" else keeper.ppid(), signal.SIGSTOP)
        launcher.kill()
        launcher.wait(10)
        with opened(tmp_path / "home") as store:
            soon(lambda: not everyone_of(store) and store.get(row.id).status == "exited", "the row is true")


def test_a_row_whose_launcher_died_before_it_spawned_is_retired(book):
    run = launch(book, ["true"])
    queued = structs.replace(
        run.process, id="e" * 32, directory="", status="queued", pid=None, start_ticks=None, exit_code=None
    )
    book.store.queue([structs.replace(queued, ended_at=None, started_at=None, parent_id=run.process.id)])
    assert cleanup_stale_running(book.store) == SweepReport(1, 0)
    row = book.store.get("e" * 32)
    assert (row.status, row.exit_code) == ("exited", None)


def test_a_row_that_is_being_launched_is_left_alone(book):
    run = launch(book, ["true"])
    queued = structs.replace(run.process, id="d" * 32, status="queued", pid=None, start_ticks=None, queued_at=now_ms())
    book.store.queue([queued])
    assert cleanup_stale_running(book.store) == SweepReport(0, 0)


def test_what_a_launcher_learns_later_replaces_what_a_sweep_could_not_know(book):
    run = launch(book, ["sh", "-c", "exit 5"])
    row = structs.replace(run.process, id="c" * 32, directory="", status="running", exit_code=None, ended_at=None)
    book.store.queue([row])
    cleanup_stale_running(book.store)
    assert book.store.get("c" * 32).status == "exited"
    assert book.store.get("c" * 32).exit_code is None
    book.store.ended("c" * 32, ProcessEnding(5), now_ms(), row.stdout, row.stderr)
    assert book.store.get("c" * 32).exit_code == 5
    book.store.ended("c" * 32, ProcessEnding(6), now_ms(), row.stdout, row.stderr)
    assert book.store.get("c" * 32).exit_code == 5


def test_a_subtree_is_ended_gracefully_and_recorded_by_its_launcher(book):
    run = launch(book, ["sh", "-c", "trap 'exit 9' TERM; echo ready; while :; do sleep 0.05; done"], background=True)
    soon(lambda: "ready" in (run.directory / "stdout.log").read_text(), "it heeds the signal")
    waiting = threading.Thread(target=run.wait)
    waiting.start()
    [row] = stop_tree(book.store, run.process, grace_s=5)
    waiting.join(10)
    assert (row.status, row.exit_code) == ("exited", 9)


def test_old_trees_go_whole_with_their_files_and_failed_ones_can_be_kept(book, tmp_path):
    home = tmp_path / "home"
    runs = [launch(book, ["sh", "-c", f"exit {code}"]) for code in (0, 1)]
    root = book.current()
    change(home, root.id, status="exited", exit_code=0, ended_at=now_ms())
    later = now_ms() + 1
    assert prune(book.store, later, keep_failed=True) == []
    assert {row.id for row in prune(book.store, later, dry_run=True)} == {root.id, *(run.process.id for run in runs)}
    assert runs[0].directory.exists()
    assert prune(book.store, root.queued_at) == []
    assert len(prune(book.store, later)) == 3
    assert book.store.newest(9) == []
    assert list((home / "processes").iterdir()) == []


def test_a_tree_in_which_something_runs_is_kept(book):
    run = launch(book, ["sleep", "600"], background=True)
    assert prune(book.store, now_ms() + 1_000) == []
    assert run.directory.exists()
    run.terminate()


def test_tending_prunes_once_a_day_by_itself(book, tmp_path):
    home, old = tmp_path / "home", now_ms() - KEEP_MS - DAY_MS
    run = launch(book, ["true"])
    row = structs.replace(
        run.process, id="b" * 32, directory="", parent_id=None, root_id="b" * 32, queued_at=old, ended_at=old
    )
    book.store.queue([row])
    tend(book)
    assert book.store.get("b" * 32) is None
    book.store.queue([row])
    tend(book)
    assert book.store.get("b" * 32) == row
    assert run.process is not None
    assert (home / "processes" / run.process.id).exists()


def test_this_process_is_where_it_says(book):
    assert book.current().place == here()
