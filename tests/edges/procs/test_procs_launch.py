"""Worker processes: launched with a socket and the lock, and never longer there than their parent."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager

import psutil
import pytest
import uvloop

from muniment.crawl import protocol
from muniment.crawl.frames import Frames
from muniment.errors import ArchiveError
from muniment.procs.children.launch import CHANNEL_VARIABLE, Indexer, ending, inherited_channel, launch_worker
from muniment.procs.lock import lock_directory

PARENT = """
import os, subprocess, sys
os.environ["MUNIMENT_PARENT"] = str(os.getpid())
child = "from muniment.procs.children.launch import die_with_parent as die; die(); print('up', flush=True); input()"
process = subprocess.Popen([sys.executable, "-c", child], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                           start_new_session=True)
process.stdout.readline()
os.set_inheritable(process.stdin.fileno(), True)
subprocess.Popen(["sleep", "30"], close_fds=False, start_new_session=True)  # keeps the child's input open
print(process.pid, flush=True)
sys.stdin.read()
"""
LATE = """
import sys
from muniment.procs.children.launch import die_with_parent
die_with_parent()
sys.exit(7)
"""


def gone(pid: int, seconds: float = 10) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
            return True
        time.sleep(0.02)
    return False


@contextmanager
def launched(directory):
    locks = lock_directory(directory)
    try:
        made = launch_worker(*locks)
    finally:
        for lock in locks:
            os.close(lock)
    try:
        yield made
    finally:
        made.channel.close()
        made.process.kill()
        made.process.wait(10)


def hear(channel: socket.socket) -> list[object]:
    frames, heard = Frames(protocol.FromWorker), []
    channel.settimeout(20)
    while not heard:
        data = channel.recv(65_536)
        assert data, "the worker closed its end"
        heard += frames.feed(data)
    return heard


def test_a_child_dies_with_a_parent_that_was_killed():
    parent = subprocess.Popen([sys.executable, "-c", PARENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    with parent:
        child = int(parent.stdout.readline())
        sleeper = next(p for p in psutil.Process(parent.pid).children() if p.pid != child)
        try:
            assert psutil.pid_exists(child)
            parent.send_signal(signal.SIGKILL)
            parent.wait(10)
            assert gone(child)
        finally:
            sleeper.kill()


def test_a_child_whose_parent_died_before_it_asked_ends_at_once():
    environ = {**os.environ, "MUNIMENT_PARENT": "1"}
    done = subprocess.run([sys.executable, "-c", LATE], env=environ, timeout=20, check=False)
    assert done.returncode == 1


def test_a_child_of_a_living_parent_goes_on():
    environ = {**os.environ, "MUNIMENT_PARENT": str(os.getpid())}
    done = subprocess.run([sys.executable, "-c", LATE], env=environ, timeout=20, check=False)
    assert done.returncode == 7


def test_a_worker_says_who_it_is_and_ends_when_the_socket_does(tmp_path):
    with launched(tmp_path) as worker:
        assert hear(worker.channel) == [protocol.Hello(worker.process.pid)]
        worker.channel.close()
        # it was given nothing to do, as when the crawl has finished before: that is no failure
        assert worker.process.wait(10) == 0


def test_a_worker_ends_when_its_socket_is_closed_before_it_spoke(tmp_path):
    with launched(tmp_path) as worker:
        worker.channel.close()
        assert worker.process.wait(20) in (0, 1)


def test_a_worker_is_not_of_the_terminals_group_and_holds_the_lock(tmp_path):
    with launched(tmp_path) as worker:
        hear(worker.channel)
        assert os.getpgid(worker.process.pid) != os.getpgid(0)
        held = {file.path for file in psutil.Process(worker.process.pid).open_files()}
        assert str(tmp_path / "crawl.jsonl") in held


def test_a_second_worker_does_not_hold_the_first_ones_socket(tmp_path):
    """Else the first one's end would not be seen when this side closes."""
    with launched(tmp_path) as first:
        hear(first.channel)
        lock = os.open(os.devnull, os.O_RDONLY)
        second = launch_worker(lock)
        os.close(lock)
        try:
            hear(second.channel)
            first.channel.close()
            assert first.process.wait(10) == 0
        finally:
            second.channel.close()
            second.process.wait(20)


@pytest.mark.parametrize("value", ["", "x", "-1", "999999"])
def test_without_a_socket_there_is_no_channel(monkeypatch, value):
    monkeypatch.setenv(CHANNEL_VARIABLE, value)
    assert inherited_channel() is None
    assert CHANNEL_VARIABLE not in os.environ


def test_a_worker_started_by_hand_says_so(muniment):
    done = muniment("worker")
    assert (done.code, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1


def test_how_a_process_ended_is_told_by_the_name_of_its_signal():
    killed = subprocess.Popen(["sleep", "30"])
    killed.kill()
    assert ending(killed.wait(10)) == "killed by signal 9 (SIGKILL)"
    assert (ending(0), ending(3), ending(-64), ending(-63)) == (
        "exit 0", "exit 3", "killed by signal 64 (SIGRTMAX)", "killed by signal 63",
    )  # fmt: skip


@pytest.mark.parametrize("told", ["done", "walked"])
def test_an_index_process_that_is_killed_before_it_is_told_anything_is_an_error_of_ours(tmp_path, told):
    locks = lock_directory(tmp_path)

    async def killed() -> None:
        made = await Indexer.start(locks, tmp_path)
        # by its number: between fork and exec it has no command line of its own to be found by
        os.kill(made._process.pid, signal.SIGKILL)
        await asyncio.sleep(0.2)  # the loop learns that the pipes are closed
        if told == "walked":
            assert await made.walked() == b""
        await made.done()

    try:
        with pytest.raises(ArchiveError, match=r"killed by signal 9.*give the same command again"):
            uvloop.run(killed())
    finally:
        for lock in locks:
            os.close(lock)
