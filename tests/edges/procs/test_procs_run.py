"""Commands that are launched: a row before they are, their output in files, and nothing of them left when they end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import uuid

import psutil
import pytest

from muniment.errors import ProcessError
from muniment.procs.children.run import launch
from muniment.procs.registry import MARK
from process_harness import DOUBLE_FORK, everyone_of, soon, with_argument

pytestmark = pytest.mark.usefixtures("kept_by")

IS_QUEUED = """
import os, sqlite3, sys
rows = sqlite3.connect(sys.argv[1]).execute("SELECT status, root_id FROM processes WHERE id = ?",
                                            (os.environ["MUNIMENT_PROCESS"],)).fetchall()
print(len(rows), rows[0][0] in ("queued", "running"))
"""
STUBBORN = "trap '' TERM; echo up; while :; do sleep 0.1; done"


def test_the_row_is_there_before_the_process_is(book, tmp_path):
    run = launch(book, [sys.executable, "-c", IS_QUEUED, str(tmp_path / "home" / "processes.sqlite")])
    assert run.process.stdout.head == "1 True\n"
    assert run.process.parent_id == book.current().id
    assert (run.process.depth, run.process.root_id) == (1, book.current().id)


def test_a_child_that_exits_3_is_recorded_as_3(book):
    run = launch(book, ["sh", "-c", "echo out; echo err >&2; exit 3"], process_type="hook", label="three")
    row = run.process
    assert (row.exit_code, row.timed_out, row.status, row.process_type, row.label) == (
        3,
        False,
        "exited",
        "hook",
        "three",
    )
    assert (row.stdout.head, row.stderr.head) == ("out\n", "err\n")
    assert row.pid and row.start_ticks and row.started_at and row.ended_at >= row.started_at >= row.queued_at
    assert row.max_rss > 0
    assert row.cpu_ms is not None
    assert not run.is_alive()


def test_a_command_that_a_signal_ended_has_its_number(book):
    run = launch(book, ["sleep", "600"], background=True)
    assert run.is_alive()
    assert run.poll() is None
    with pytest.raises(TimeoutError, match=r"did not end within 0.01 s"):
        run.wait(0.01)
    assert run.kill(signal.SIGUSR1)
    assert run.wait(20).exit_code == run.process.exit_code == -signal.SIGUSR1
    assert not run.kill()


def test_a_command_ignores_no_signal(book):
    row = launch(book, ["grep", "SigIgn", "/proc/self/status"]).process
    # those from 32 on are the C library's own
    assert int(row.stdout.head.split()[1], 16) & 0x7FFFFFFF == 0


def test_a_command_that_cannot_be_run_says_why(book):
    run = launch(book, ["no-such-program"])
    assert (run.process.exit_code, run.process.stderr.head) == (
        127,
        "no-such-program cannot be run: No such file or directory\n",
    )


def test_a_process_has_its_files_in_a_directory_of_its_own(book):
    run = launch(book, ["sh", "-c", "echo up; exec sleep 600"], background=True)
    row = run.process
    assert (run.directory / "process.pid").read_text().split()[:2] == [str(row.pid), str(row.start_ticks)]
    assert row.pwd == str(run.directory) == psutil.Process(row.pid).cwd()
    soon(lambda: (run.directory / "stdout.log").read_text() == "up\n", "output in its file")
    assert run.terminate().exit_code == -signal.SIGTERM
    assert sorted(path.name for path in run.directory.iterdir()) == ["cmd.sh", "exit.json", "stderr.log", "stdout.log"]


def test_words_in_arguments_change_no_type_and_carry_nothing_out(book, tmp_path):
    url = f"https://example.com/supervisord/orchestrator?x=$(touch {tmp_path}/made)`touch {tmp_path}/made`;'"
    run = launch(book, ["printf", "%s", url])
    assert run.process.process_type == "binary"
    assert run.process.cmd == ("printf", "%s", url)
    done = subprocess.run(["sh", run.directory / "cmd.sh"], capture_output=True, text=True, timeout=20, check=True)
    assert done.stdout == url == run.process.stdout.head
    assert not (tmp_path / "made").exists()


def test_50_mb_of_output_are_in_a_file_and_not_in_the_database(book, tmp_path):
    launch(book, ["true"])
    sizes = [sum(path.stat().st_size for path in (tmp_path / "home").glob("processes.sqlite*"))]
    run = launch(book, ["sh", "-c", "echo first; yes 0123456789abcdef | head -c 50000000; echo last"])
    sizes.append(sum(path.stat().st_size for path in (tmp_path / "home").glob("processes.sqlite*")))
    assert sizes[1] - sizes[0] < 100_000
    output = run.process.stdout
    assert output.size == 50_000_011
    assert output.head.startswith("first\n0123")
    assert output.tail.endswith("last\n")
    assert len(output.head + output.tail) == 8192
    assert not (run.directory / "stdout.log").exists()
    packed = run.directory / "stdout.log.gz"
    assert packed.stat().st_size < 1_000_000
    summed = subprocess.run(["sh", "-c", f"zcat {packed} | sha256sum"], capture_output=True, text=True, check=True)
    assert summed.stdout.split()[0] == output.sha256


def test_another_try_has_a_row_and_output_of_its_own(book):
    first = launch(book, ["sh", "-c", "echo one"])
    second = launch(book, ["sh", "-c", "echo two"], attempt=2)
    rows = [first.process, second.process]
    assert [(row.attempt, row.stdout.head) for row in rows] == [(1, "one\n"), (2, "two\n")]
    assert first.directory != second.directory


def test_a_command_whose_time_is_over_is_ended_with_all_it_began(book):
    run = launch(book, ["sh", "-c", f'sh -c "{STUBBORN}" & sleep 600'], timeout=1)
    assert (run.process.timed_out, run.process.exit_code) == (True, -signal.SIGTERM)
    assert everyone_of(book.store) == []


@pytest.mark.parametrize("how", ["plain", "hide"])
def test_what_a_command_leaves_behind_is_ended_with_it(book, how):
    # another test may have its own at the same time
    mine = uuid.uuid4().hex
    run = launch(book, [sys.executable, "-c", DOUBLE_FORK, how, mine])
    assert (run.process.exit_code, run.process.stdout.head) == (0, "forked\n")
    assert with_argument(mine) == []


def test_what_will_not_end_is_killed(book):
    run = launch(book, ["sh", "-c", STUBBORN], background=True)
    soon((run.directory / "stdout.log").read_text, "the command is up")
    assert run.poll() is None
    assert run.terminate().exit_code == -signal.SIGKILL == run.process.exit_code


def test_a_killed_keeper_takes_its_command_with_it(book):
    run = launch(book, ["sh", "-c", "sleep 600 & exec sleep 600"], background=True)
    keeper = psutil.Process(run.process.pid).parent()
    keeper.kill()
    assert run.wait(20).exit_code == -signal.SIGKILL
    assert run.process.status == "exited"
    assert everyone_of(book.store) == []


def test_a_process_is_known_by_its_number(book):
    from muniment.procs.registry import get_by_pid

    run = launch(book, ["sleep", "600"], background=True)
    assert get_by_pid(book.store, run.process.pid) == run.process
    assert get_by_pid(book.store, os.getpid()) == book.current()
    pid = run.process.pid
    run.terminate()
    assert get_by_pid(book.store, pid) is None


def test_trees_that_launch_themselves_are_cut_off(book, monkeypatch):
    monkeypatch.setattr("muniment.procs.registry.DEEPEST", 0)
    with pytest.raises(ProcessError, match="levels of processes launched each other: true is not launched"):
        launch(book, ["true"])
    monkeypatch.undo()
    monkeypatch.setattr("muniment.procs.registry.MOST_LIVING", 2)
    run = launch(book, ["sleep", "600"], background=True)
    with pytest.raises(ProcessError, match="2 processes of one command are alive"):
        launch(book, ["true"])
    run.terminate()
    assert launch(book, ["true"]).ending.exit_code == 0


def test_a_store_that_is_lost_ends_nothing_and_is_said_once(book, tmp_path, caplog):
    launch(book, ["true"])
    book.store.close()
    runs = [launch(book, ["sh", "-c", "echo said; exit 4"]) for _ in range(2)]
    assert [run.ending.exit_code for run in runs] == [4, 4]
    assert [record.message.partition(":")[0] for record in caplog.records] == [
        "processes are not recorded from here on"
    ]
    assert not any(run.directory.exists() for run in runs)


def test_the_environment_of_a_row_holds_what_was_given_without_secrets(book):
    run = launch(book, ["sh", "-c", f"echo ${MARK} $API_TOKEN"], environment={"API_TOKEN": "hush", "LC_ALL": "C"})
    assert run.process.stdout.head == f"{run.process.id} hush\n"
    assert run.process.env == (("LC_ALL", "C"),)
