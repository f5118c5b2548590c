"""What is asked of processes."""

from __future__ import annotations

import os
import resource
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from muniment.clock import now_ms
from muniment.procs.platform import linux


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    environ = {**os.environ, "A_MARK": "x1", "NO_MARK": "A_MARK=x2"}
    with subprocess.Popen(["sleep", "600"], env=environ, start_new_session=True) as process:
        yield process
        process.kill()


def soon(pid: int, state: str) -> None:
    end = time.monotonic() + 20
    while (seen := linux.look(pid)) is None or seen.state != state:
        assert time.monotonic() < end, seen
        time.sleep(0.01)


def test_a_process_is_seen_as_it_is(sleeper):
    seen = linux.look(sleeper.pid)
    assert (seen.pid, seen.parent, seen.session) == (sleeper.pid, os.getpid(), sleeper.pid)
    assert seen.state not in "ZXT"
    mine = linux.look(os.getpid())
    assert mine.cpu_ms > 50
    assert mine.rss > 10_000_000
    assert (mine.parent, mine.session) == (os.getppid(), os.getsid(0))
    assert abs(linux.started_at(seen) - now_ms()) < 60_000
    assert linux.started_at(mine) < linux.started_at(seen)
    assert linux.booted_at() < linux.started_at(mine)


def test_the_moment_of_a_start_is_a_processs_own_and_stays(sleeper):
    with subprocess.Popen(["sleep", "600"]) as later:
        try:
            first, second = linux.look(sleeper.pid), linux.look(later.pid)
            assert first.start_ticks <= second.start_ticks
            time.sleep(0.05)
            assert linux.look(sleeper.pid).start_ticks == first.start_ticks
            other = f"from muniment.procs.platform.linux import look; print(look({sleeper.pid}).start_ticks)"
            told = subprocess.run([sys.executable, "-c", other], capture_output=True, text=True, check=True)
            assert int(told.stdout) == first.start_ticks, "whoever asks"
        finally:
            later.kill()


def test_who_ended_and_who_is_stopped_is_told(sleeper):
    sleeper.send_signal(signal.SIGSTOP)
    soon(sleeper.pid, "T")
    sleeper.kill()
    soon(sleeper.pid, "Z")
    assert linux.look(sleeper.pid).ended
    sleeper.wait(10)
    assert linux.look(sleeper.pid) is None


@pytest.mark.parametrize("number", [0x7FFFFFFF, 1 << 40, -1])
def test_nobody_has_a_number_that_there_is_not(number):
    assert linux.look(number) is None
    assert linux.mark_of(number, "PATH") == ""


def test_everyone_is_there(sleeper):
    everyone = linux.everyone()
    assert {os.getpid(), os.getppid(), sleeper.pid} <= set(everyone)
    assert everyone[sleeper.pid].start_ticks == linux.look(sleeper.pid).start_ticks


def test_a_variable_is_read_as_it_was_at_the_start(sleeper):
    end = time.monotonic() + 20
    while linux.mark_of(sleeper.pid, "A_MARK") != "x1":
        assert time.monotonic() < end  # it may not have become its program yet
        time.sleep(0.01)
    assert linux.mark_of(sleeper.pid, "MARK") == ""


def test_only_the_process_that_is_meant_is_signalled(sleeper):
    seen = linux.look(sleeper.pid)
    assert not linux.send(sleeper.pid, seen.start_ticks + 1, signal.SIGKILL)
    assert sleeper.poll() is None
    assert linux.send(sleeper.pid, seen.start_ticks, signal.SIGTERM)
    assert sleeper.wait(10) == -signal.SIGTERM
    assert not linux.send(sleeper.pid, seen.start_ticks, signal.SIGTERM)


def link_of(descriptor: int) -> tuple[int, int] | None:
    """Which open file a number stands for; None for none: a number may be another's as soon as it is closed."""
    try:
        status = os.fstat(descriptor)
    except OSError:
        return None
    return status.st_dev, status.st_ino


@pytest.mark.parametrize(("command", "code"), [("exit 3", 3), ("kill -9 $$", -9), ("sleep 0.3; exit 0", 0)])
def test_a_child_that_is_awaited_tells_how_it_ended(command, code):
    spawned = subprocess.Popen(["sh", "-c", command])
    awaited = linux.Awaited(spawned.pid)
    ends = link_of(awaited.descriptor)
    ready = select.poll()
    ready.register(awaited.descriptor, select.POLLIN)
    assert ready.poll(20_000), "its end can be waited for"
    spawned.returncode, cpu_s, max_rss = awaited.ending()
    assert spawned.returncode == code
    assert 0 <= cpu_s < 5
    # what this process has at the most counts until the child runs its program
    assert 500_000 < max_rss < 500_000_000 + resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    assert link_of(awaited.descriptor) != ends


def test_a_child_that_runs_has_no_ending(sleeper):
    awaited = linux.Awaited(sleeper.pid)
    assert awaited.ending() is None
    assert not os.get_inheritable(awaited.descriptor)
    sleeper.kill()
    end = time.monotonic() + 20
    while (ending := awaited.ending()) is None:
        assert time.monotonic() < end
        time.sleep(0.01)
    assert ending[0] == -signal.SIGKILL
    sleeper.returncode = -9


def test_a_file_without_a_name_is_written_by_another_and_read_here():
    file = linux.unnamed_file("stdout")
    subprocess.run(["echo", "said"], stdout=file, check=True)
    with os.fdopen(file, "rb") as said:
        said.seek(0)
        assert said.read() == b"said\n"


def test_a_place_is_the_same_for_all_processes_here():
    told = (
        "from muniment.procs.platform.linux import place; p = place(); print(p.machine_id, p.boot_id, p.pid_namespace)"
    )
    other = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True)
    place = linux.place()
    assert other.stdout.rstrip("\n") == f"{place.machine_id} {place.boot_id} {place.pid_namespace}"
    assert len(place.machine_id) == 32
