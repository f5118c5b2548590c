"""Whoever ends a subtree, and whenever: its launcher knows how it ended, and so does its row."""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
import uuid

import psutil
import pytest
from msgspec import structs

from muniment.procs import shim
from muniment.procs.children.run import ChildRun, launch
from muniment.procs.stop import stop_tree
from muniment.procs.sweep import cleanup_stale_running
from muniment.tracker.processes.sqlite import open_processes
from process_harness import everyone_of, soon, with_argument

pytestmark = pytest.mark.usefixtures("kept_by")

TIMES = 16
HEEDS = "trap 'exit 9' TERM; while :; do sleep 0.05; done"
DOES_NOT = "trap '' TERM; while :; do sleep 0.05; done"
COMMANDS = {
    "plain": (["sleep", "600"], {-9, -15}),
    "heeds": (["sh", "-c", HEEDS], {-9, -15, 9}),
    "does not": (["sh", "-c", DOES_NOT], {-9, -15}),
    "over": (["sh", "-c", "exit 7"], {-9, -15, 7}),
    # a shell tells of its child as 128 and the signal
    "family": (["sh", "-c", "sleep 600 & sleep 600 & sleep 600"], {-9, -15, 137, 143}),
}


class Ending(threading.Thread):
    """Ends the next process that is queued, by a store of its own as `muniment process kill` does, after a while."""

    def __init__(self, home: object, known: set[str], grace_s: float, delay_s: float) -> None:
        super().__init__()
        self._home, self._known, self._grace_s, self._delay_s = home, known, grace_s, delay_s
        self.error: Exception | None = None

    def run(self) -> None:
        store = open_processes(self._home)  # type: ignore[arg-type]
        try:
            end = time.monotonic() + 30
            while not (new := [row for row in store.newest(3) if row.id not in self._known]):
                assert time.monotonic() < end
                time.sleep(0.002)
            time.sleep(self._delay_s)
            cleanup_stale_running(store)
            if (row := store.get(new[0].id)) is not None:
                stop_tree(store, row, grace_s=self._grace_s)
        except Exception as error:
            self.error = error
        finally:
            store.close()


@pytest.mark.parametrize("kind", COMMANDS)
def test_how_a_subtree_ended_is_known_whenever_it_was_ended(book, tmp_path, kind):
    command, possible = COMMANDS[kind]
    # from before there is a process until long after it runs
    chance = random.Random(kind)
    for number in range(TIMES):
        grace_s = chance.choice([0, 0, 0.05, 3])
        known = {row.id for row in book.store.newest(1_000)} | {book.current().id}
        ending = Ending(tmp_path / "home", known, grace_s, chance.choice([0, 0.005, 0.01, 0.02, 0.03, 0.05, 0.1]))
        ending.start()
        run = launch(book, command, background=True)
        code = run.wait(30).exit_code
        ending.join(30)
        what = f"{number}. time, grace {grace_s}"
        assert ending.error is None, what
        assert code in possible, what
        assert run.process.exit_code == code, what
        assert run.process.status == "exited"
    assert everyone_of(book.store) == []


def keepers_of(run: ChildRun) -> tuple[psutil.Process, psutil.Process]:
    """The one that keeps a command, and the one that stands by."""
    keeps = psutil.Process(run.process.pid).parent()
    return keeps, keeps.parent()


def test_who_stands_by_is_killed_and_the_other_one_still_tells(book):
    run = launch(book, ["sh", "-c", f"echo up; {HEEDS}"], background=True)
    soon(lambda: "up" in (run.directory / "stdout.log").read_text(), "it heeds the signal")
    keepers_of(run)[1].kill()
    assert run.wait(30).exit_code == 9
    assert run.process.exit_code == 9


def test_keepers_that_were_stopped_are_let_go_on_and_tell(book):
    run = launch(book, ["sleep", "600"], background=True)
    for keeper in keepers_of(run):
        keeper.suspend()
    [row] = stop_tree(book.store, run.process, grace_s=0)
    assert run.wait(30).exit_code == -signal.SIGKILL
    assert row.status == "exited"


def test_a_keeper_without_room_to_write_has_its_exit_code(book):
    for code, told in ((0, 0), (5, 5), (255, 255)):
        run = launch(book, ["sh", "-c", f"rm -r $PWD; exit {code}"])
        assert run.ending.exit_code == told


def test_signals_that_were_blocked_for_a_keeper_are_not_for_its_command(book):
    run = launch(book, ["sh", "-c", "grep SigBlk /proc/self/status"])
    assert int(run.process.stdout.head.split()[1], 16) == 0
    assert signal.pthread_sigmask(signal.SIG_BLOCK, []) & {signal.SIGTERM, signal.SIGUSR1} == set()
    assert os.environ.get("MUNIMENT_KEEPS") is None
    run = launch(book, ["sh", "-c", "env"])
    assert "MUNIMENT_KEEPS" not in run.process.stdout.head


def test_a_command_that_begins_when_its_launcher_is_gone_is_ended(tmp_path):
    """The launcher is killed after its order, and before it could hear that the command has begun."""
    mine, (ours, theirs) = uuid.uuid4().hex, socket.socketpair()
    number = str(theirs.fileno())
    order = [str(tmp_path), number, "5", "0", "0", "sh", "-c", "sleep 600; exit 3", mine]
    with theirs:
        ours.close()
        kept = subprocess.Popen([sys.executable, *shim.HOW, *order], pass_fds=[theirs.fileno()])
    kept.wait(30)
    left = [pid for pid in with_argument(mine) if pid != kept.pid]
    for pid in left:
        os.killpg(pid, signal.SIGKILL)
    assert left == []
    assert '"exit_code": -15' in (tmp_path / "exit.json").read_text()


def test_who_ends_what_it_belongs_to_says_itself_how_it_ends(book):
    run = launch(book, ["sleep", "600"], background=True)
    mine = structs.replace(book.current(), id="f" * 32, parent_id=run.process.id)
    book.store.queue([mine])
    assert [row.id for row in stop_tree(book.store, run.process, grace_s=0)] == [run.process.id]
    assert run.wait(30).exit_code == -signal.SIGKILL
    assert book.store.get(mine.id) == mine
