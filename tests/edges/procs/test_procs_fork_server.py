"""A fork server: shims without an interpreter of their own, which keep one command after the other."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
import threading
import time
import uuid
from pathlib import Path

import psutil
import pytest

from muniment.procs import stop
from muniment.procs.children import fork_server
from muniment.procs.children.fork_server import ForkServer
from muniment.procs.children.run import launch
from muniment.procs.hooks import hook_process
from muniment.procs.hooks.hook_process import HookCommand, HookProcess
from muniment.procs.hooks.left_files import FolderState, folder_state
from muniment.procs.hooks.tree_watch import TreeWatch
from muniment.procs.tree import related
from process_harness import soon, with_argument

LAUNCHER = """
import os, sys, time
from muniment.procs.children.fork_server import ForkServer
from muniment.procs.children.run import launch
from muniment.procs.registry import ProcessRegistry
server = ForkServer()
run = launch(ProcessRegistry(), ["sh", "-c", "sleep 600 & exec sleep 601"], background=True, server=server)
print(run.command_pid, *run.keepers, flush=True)
time.sleep(600)
"""

ORDERING = """
import sys
from muniment.procs.children.fork_server import ForkServer
from muniment.procs.children.run import launch
from muniment.procs.registry import ProcessRegistry
server = ForkServer()
launch(ProcessRegistry(), ["true"], server=server)
print("warm", flush=True)
sys.stdin.readline()
launch(ProcessRegistry(), ["sh", "-c", "sleep 600; true", sys.argv[1]], background=True, server=server)
sys.stdin.readline()
"""


def server_of(server: ForkServer) -> psutil.Process:
    assert server._process is not None
    return psutil.Process(server._process.pid)


def is_over(process: psutil.Process) -> bool:
    try:
        return bool(process.status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True


def test_commands_have_one_server_and_nothing_of_it(book, tmp_path, server):
    first = launch(book, ["sleep", "600"], background=True, server=server)
    run = launch(book, ["sh", "-c", "ls /proc/$$/fd; pwd; env"], pwd=str(tmp_path), inherits=False, server=server)
    assert run.ending.exit_code == 0
    *descriptors, pwd, _ = run.process.stdout.head.split("\n", 4)[:5]
    assert (descriptors[:3], pwd) == (["0", "1", "2"], str(tmp_path))
    known = {line.partition("=")[0] for line in run.process.stdout.head.splitlines() if "=" in line}
    assert known - {"PWD", "_", "SHLVL", "OLDPWD"} == {"MUNIMENT_PROCESS", "MUNIMENT_PARENT"}
    shims = server_of(server).children()
    assert len(shims) == 2  # that of the first command, and one that waits
    first.terminate()
    soon(lambda: len(server_of(server).children()) == 1, "who was asked to end keeps nothing more")
    server.close()
    assert all(is_over(one) for one in shims)


def test_a_shim_keeps_the_next_command_and_knows_nothing_of_the_last(book, tmp_path, server):
    busy = ["sh", "-c", "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; echo first; kill -9 $$"]
    first = launch(book, busy, timeout=600, server=server)
    run = launch(book, ["pwd"], pwd=str(tmp_path), timeout=600, server=server)
    assert run.keepers == first.keepers
    assert (first.ending.exit_code, first.process.stdout.head) == (-9, "first\n")
    assert (run.ending.exit_code, run.process.stdout.head) == (0, f"{tmp_path}\n")
    assert run.ending.cpu_ms < first.ending.cpu_ms
    late = launch(book, ["sleep", "600"], timeout=0.2, grace_s=0.1, server=server)
    assert (late.keepers, late.ending.timed_out) == (first.keepers, True)
    bad = launch(book, ["/no/such/program"], server=server)
    assert (bad.ending.exit_code, bad.begun) == (127, False)
    last = launch(book, ["sh", "-c", "exit 3"], server=server)
    assert (last.keepers, last.ending.exit_code, last.ending.timed_out) == (first.keepers, 3, False)


@pytest.mark.parametrize("struck", [0, 1])
def test_a_shim_that_is_killed_while_it_waits_is_replaced(book, struck, server):
    first = launch(book, ["true"], server=server)
    keeper = psutil.Process(first.keepers[struck])
    keeper.kill()
    soon(lambda: is_over(keeper), "a killed process ends when it is scheduled next")
    run = launch(book, ["sh", "-c", "exit 5"], server=server)
    assert run.ending.exit_code == 5
    assert not set(run.keepers) & set(first.keepers)


def test_what_is_left_of_a_command_is_not_what_its_shim_keeps_next(book, tmp_path, monkeypatch, server):
    """The command ends while its members are looked for, and its shim begins the next one."""
    first = launch(
        book, ["sh", "-c", f"until [ -e {tmp_path}/go ]; do sleep 0.01; done"], background=True, server=server
    )
    row, runs = first.process, []

    def found(living, numbers):
        if not runs:
            (tmp_path / "go").touch()
            first.wait(30)
            runs.append(launch(book, ["sleep", "600"], background=True, server=server))
        return related(living, numbers)

    monkeypatch.setattr(stop, "related", found)
    assert stop.kill_strays([row]) == set()
    assert runs[0].keepers == first.keepers
    assert runs[0].is_alive()
    assert runs[0].terminate().exit_code == -signal.SIGTERM


def test_who_has_ended_ends_nothing_of_what_its_shim_keeps_next(book, server):
    first = launch(book, ["sh", "-c", "exit 5"], background=True, server=server)
    soon(first.poll, "it is over")
    between = launch(book, ["true"], server=server)
    assert not set(between.keepers) & set(first.keepers)  # it was not let go
    first.let_go()
    second = launch(book, ["sh", "-c", "sleep 1; exit 7"], background=True, server=server)
    assert second.keepers == first.keepers
    first.end()
    first.let_go()
    third = launch(book, ["true"], server=server)
    assert third.keepers == between.keepers
    assert second.wait(30).exit_code == 7


def hook_in(directory: Path, text: str) -> HookCommand:
    return HookCommand(
        label="hook",
        words=("sh", "-c", text),
        directory=directory,
        environment=tuple(os.environ.items()),
        timeout_s=60,
        most_output=1 << 20,
        most_memory=0,
        attempt=1,
        background=True,
    )


def test_a_hook_that_is_stopped_while_its_end_is_noted_ends_no_other_one(book, tmp_path, monkeypatch, server):
    """What it left is listed for long, and another hook begins meanwhile."""
    listing, listed = threading.Event(), threading.Event()

    def listed_slowly(directory: Path) -> FolderState:
        if (directory / "left").exists():
            listing.set()
            assert listed.wait(30)
        return folder_state(directory)

    async def run_both() -> tuple[HookProcess, HookProcess]:
        watch = TreeWatch(book)
        go = tmp_path / "go"
        first = HookProcess(hook_in(tmp_path / "a", "touch left"), book, server, watch, lambda _: None)
        waits = f"until [ -e {go} ]; do sleep 0.05; done; exit 7"
        second = HookProcess(hook_in(tmp_path / "b", waits), book, server, watch, lambda _: None)
        await first.start()
        assert await asyncio.to_thread(listing.wait, 30)
        await second.start()
        first.stop("timeout", "too long")
        await asyncio.sleep(0.5)
        listed.set()
        await first.ended()
        go.touch()
        await second.ended()
        return first, second

    monkeypatch.setattr(hook_process, "folder_state", listed_slowly)
    first, second = asyncio.run(run_both())
    assert (first.ending.exit_code, set(first.after)) == (0, {"left"})
    assert (second.ending.exit_code, second.cut) == (7, "")


def test_a_shim_that_was_frozen_begins_nothing_that_another_one_has_begun(book, tmp_path, monkeypatch, server):
    frozen = psutil.Process(launch(book, ["true"], server=server).keepers[0])
    frozen.suspend()
    monkeypatch.setattr(fork_server, "_PATIENCE_S", 1.0)
    waits = "echo x >> begun; until [ -e go ]; do sleep 0.05; done; exit 5"
    run = launch(book, ["sh", "-c", waits], pwd=str(tmp_path), background=True, server=server)
    assert frozen.pid not in run.keepers
    frozen.resume()
    soon(lambda: is_over(frozen), "it has ended")
    (tmp_path / "go").touch()
    assert run.wait(30).exit_code == 5
    assert (tmp_path / "begun").read_text() == "x\n"


def test_a_launcher_that_is_killed_as_it_orders_leaves_no_command(tmp_path):
    mine, chance = uuid.uuid4().hex, random.Random(4)
    for _ in range(12):
        launcher = subprocess.Popen(
            [sys.executable, "-c", ORDERING, mine],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "TMPDIR": str(tmp_path)},
        )
        assert launcher.stdin is not None
        assert launcher.stdout is not None
        launcher.stdout.readline()
        launcher.stdin.write("\n")
        launcher.stdin.flush()
        time.sleep(chance.uniform(0, 0.006))
        launcher.kill()
        launcher.communicate()
    try:
        soon(lambda: not with_argument(mine), "all ended", 10)
    finally:
        for pid in with_argument(mine):
            os.killpg(pid, signal.SIGKILL)


def test_a_long_command_arrives_whole(book, server):
    words = [f"{number:0100000d}" for number in range(12)]
    run = launch(book, ["sh", "-c", 'printf %s "$@" | wc -c', "sh", *words], server=server)
    assert run.process.stdout.head == "1200000\n"


def test_a_command_that_cannot_be_run_says_why(book, tmp_path, server):
    run = launch(book, ["/no/such/program"], server=server)
    assert (run.ending.exit_code, run.begun) == (127, False)
    assert "No such file" in run.process.stderr.head
    run = launch(book, ["true"], pwd=str(tmp_path / "nowhere"), server=server)
    assert (run.ending.exit_code, run.begun) == (127, False)
    assert "cannot be entered" in run.process.stderr.head


def test_a_server_that_is_killed_leaves_its_commands_and_is_replaced(book, server):
    before = launch(book, ["sh", "-c", "sleep 1; exit 7"], background=True, server=server)
    server_of(server).kill()
    assert launch(book, ["sh", "-c", "exit 5"], server=server).ending.exit_code == 5
    assert before.wait(30).exit_code == 7
    assert (before.process.status, before.process.exit_code) == ("exited", 7)


def test_a_server_that_is_stopped_is_replaced(book, monkeypatch, server):
    before = launch(book, ["sleep", "600"], background=True, server=server)
    frozen = server_of(server)
    frozen.send_signal(signal.SIGSTOP)
    monkeypatch.setattr(fork_server, "_PATIENCE_S", 1.0)
    assert launch(book, ["sh", "-c", "exit 5"], server=server).ending.exit_code == 5
    assert not frozen.is_running()
    before.terminate()


@pytest.mark.parametrize("struck", ["launcher", "launcher and server", "launcher, server and a shim"])
def test_nothing_outlives_its_launcher(struck, tmp_path):
    launcher = subprocess.Popen(
        [sys.executable, "-c", LAUNCHER], stdout=subprocess.PIPE, text=True, env={**os.environ, "TMPDIR": str(tmp_path)}
    )
    assert launcher.stdout is not None
    command, second, first = map(int, launcher.stdout.readline().split())
    shim = psutil.Process(first)
    server = shim.parent()
    assert server is not None and "shim_server.py" in server.cmdline()[-2]
    members = [server, shim, *shim.children(recursive=True)]
    assert {command, second} < {one.pid for one in members}
    hit = {"launcher": [], "launcher and server": [server], "launcher, server and a shim": [server, shim]}
    for one in hit[struck]:
        one.kill()
    launcher.kill()
    launcher.communicate()
    soon(lambda: all(is_over(one) for one in members), "all ended", 6)
