"""One run at a time per directory, whoever holds it: another process, or an orphan of one."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from muniment.archive.event_log import put_back
from muniment.errors import BusyError, UsageError
from muniment.procs.lock import EVENTS_FILE, TRACKER_LOCK, lock_both, lock_directory, make_directory

HOLD = """
import sys
from pathlib import Path
from muniment.archive.event_log import put_back
from muniment.procs.lock import lock_directory
lock_directory(Path(sys.argv[1]))
print("locked", flush=True)
sys.stdin.read()
"""
HOLD_THE_FILE = """
import fcntl, sys
file = open(sys.argv[1] + "/crawl.jsonl", "a")
fcntl.flock(file, fcntl.LOCK_EX)
print("locked", flush=True)
sys.stdin.read()
"""
LEAVE_AN_ORPHAN = """
import subprocess, sys
from pathlib import Path
from muniment.archive.event_log import put_back
from muniment.procs.lock import lock_directory
locks = lock_directory(Path(sys.argv[1]))
keep = [sys.executable, "-c", "import sys; print('orphan', flush=True); sys.stdin.read()"]
subprocess.Popen(keep, pass_fds=locks)
"""


@contextmanager
def other(script: str, directory: Path):
    """Another process, once it has said its first line; ended when its input is."""
    process = subprocess.Popen(
        [sys.executable, "-c", script, str(directory)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with process:
        assert process.stdout.readline()
        yield process


@contextmanager
def locked(directory: Path, **how):
    descriptors = lock_directory(directory, **how)
    try:
        yield descriptors
    finally:
        let_go(descriptors)


def let_go(descriptors):
    for descriptor in descriptors:
        os.close(descriptor)


def test_a_lock_is_free_after_its_holder_closed_it(tmp_path):
    for _ in range(2):
        with locked(tmp_path):
            assert (tmp_path / EVENTS_FILE).is_file()


def test_a_directory_that_another_process_holds(tmp_path):
    with other(HOLD, tmp_path) as holder:
        with pytest.raises(BusyError) as caught:
            lock_directory(tmp_path, patience_s=0.1)
        assert str(tmp_path) in str(caught.value)
        assert "\n" not in str(caught.value)
        assert caught.value.exit_code == 2
        holder.kill()
        with locked(tmp_path):
            pass


def test_a_lock_waits_a_moment_for_a_run_that_is_dying(tmp_path):
    with other(HOLD, tmp_path) as holder:
        holder.stdin.close()
        with locked(tmp_path, patience_s=10):
            pass


def test_a_log_that_was_moved_away_lets_nobody_in(tmp_path):
    with other(HOLD, tmp_path):
        (tmp_path / EVENTS_FILE).rename(tmp_path / "moved")
        with pytest.raises(BusyError):
            lock_directory(tmp_path, patience_s=0.1)
        assert not (tmp_path / EVENTS_FILE).exists()


def test_a_run_of_an_earlier_version_holds_the_directory_by_its_log(tmp_path):
    with other(HOLD_THE_FILE, tmp_path), pytest.raises(BusyError):
        lock_directory(tmp_path, patience_s=0.1)


def test_an_earlier_version_finds_the_directory_in_use(tmp_path):
    with locked(tmp_path), (tmp_path / EVENTS_FILE).open() as log, pytest.raises(BlockingIOError):
        fcntl.flock(log, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_where_the_directory_cannot_be_locked_its_log_is(tmp_path):
    """One that cannot be read cannot be opened to be locked; some filesystems lock no directory."""
    with tempfile.TemporaryDirectory() as name:
        unreadable = Path(name)
        unreadable.chmod(0o333)
        with unprivileged():
            descriptors = lock_directory(unreadable)
            try:
                assert len(descriptors) == 1
                with pytest.raises(BusyError):
                    lock_directory(unreadable, patience_s=0.1)
            finally:
                let_go(descriptors)
        unreadable.chmod(0o755)


def test_a_state_directory_is_locked_itself(tmp_path):
    out, state = tmp_path / "out", tmp_path / "state"
    locks = lock_both(out, state, patience_s=0)
    try:
        (state / TRACKER_LOCK).unlink()
        with pytest.raises(BusyError):
            lock_both(tmp_path / "other", state, patience_s=0)
        assert not list((tmp_path / "other").iterdir())
    finally:
        let_go(lock.descriptor for lock in locks)


def test_one_directory_by_two_names_is_locked_once(tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    (tmp_path / "link").symlink_to("out")
    locks = lock_both(out, tmp_path / "link", patience_s=0)
    let_go(lock.descriptor for lock in locks)
    assert [path.name for path in out.iterdir()] == [EVENTS_FILE]


def test_a_log_that_was_moved_away_is_begun_anew_under_the_same_descriptor(tmp_path):
    with locked(tmp_path) as (descriptor, _):
        assert not put_back(tmp_path / EVENTS_FILE, descriptor)
        (tmp_path / EVENTS_FILE).rename(tmp_path / "moved")
        assert put_back(tmp_path / EVENTS_FILE, descriptor)
        assert os.path.samestat((tmp_path / EVENTS_FILE).stat(), os.fstat(descriptor))
        assert fcntl.fcntl(descriptor, fcntl.F_GETFD) & fcntl.FD_CLOEXEC
        with (tmp_path / EVENTS_FILE).open() as log, pytest.raises(BlockingIOError):
            fcntl.flock(log, fcntl.LOCK_EX | fcntl.LOCK_NB)


@pytest.mark.parametrize("instead", ["directory", "pipe", "no parent"])
def test_a_log_that_cannot_be_begun_anew_is_left(tmp_path, instead):
    path = tmp_path / "out" / EVENTS_FILE
    with locked(path.parent) as (descriptor, _):
        before = os.fstat(descriptor)
        path.unlink()
        if instead == "directory":
            path.mkdir()
        elif instead == "pipe":
            os.mkfifo(path)
        else:
            path.parent.rmdir()
        assert not put_back(path, descriptor)
        assert os.path.samestat(os.fstat(descriptor), before)


def test_an_orphan_that_inherited_the_lock_holds_it(tmp_path):
    with other(LEAVE_AN_ORPHAN, tmp_path) as parent:
        assert parent.wait() == 0
        with pytest.raises(BusyError):
            lock_directory(tmp_path, patience_s=0.1)
        parent.stdin.close()
        with locked(tmp_path, patience_s=10):
            pass


def test_the_message_names_the_process_of_the_last_start(tmp_path):
    (tmp_path / EVENTS_FILE).write_text('{"event":"start","pid":1}\n{"event":"start","pid":4711}\n{"event":"start"')
    with other(HOLD, tmp_path):
        with pytest.raises(BusyError) as caught:
            lock_directory(tmp_path, patience_s=0.1)
        assert "4711" in str(caught.value)


def test_strange_lines_in_the_event_log_change_nothing(tmp_path):
    (tmp_path / EVENTS_FILE).write_bytes(b'"start"\n["start"]\n\xff"start"\n{"event":"start","pid":7}\n5 "start"\n')
    with other(HOLD, tmp_path), pytest.raises(BusyError):
        lock_directory(tmp_path, patience_s=0.1)


def test_a_lock_leaves_what_the_file_holds(tmp_path):
    (tmp_path / EVENTS_FILE).write_text('{"event":"start"}\n')
    with locked(tmp_path):
        pass
    assert (tmp_path / EVENTS_FILE).read_text() == '{"event":"start"}\n'


def test_a_child_does_not_inherit_the_lock_unless_it_is_handed_over(tmp_path):
    with locked(tmp_path) as descriptors:
        for descriptor in descriptors:
            assert fcntl.fcntl(descriptor, fcntl.F_GETFD) & fcntl.FD_CLOEXEC


def test_an_event_log_that_is_a_directory(tmp_path):
    (tmp_path / EVENTS_FILE).mkdir()
    with pytest.raises(UsageError):
        lock_directory(tmp_path)


# -- the directory


def test_a_directory_is_made_with_its_parents_and_may_be_there(tmp_path):
    for _ in range(2):
        make_directory(tmp_path / "a" / "b")
    assert (tmp_path / "a" / "b").is_dir()


@pytest.mark.parametrize("path", ["file", "file/below", "link"])
def test_what_is_no_directory(tmp_path, path):
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to("file")
    with pytest.raises(UsageError) as caught:
        make_directory(tmp_path / path)
    assert path in str(caught.value)
    assert "\n" not in str(caught.value)


@contextmanager
def unprivileged():
    """Root may write anywhere, so the test does without its rights for a while."""
    if os.geteuid():
        yield
        return
    os.setresuid(65534, 65534, 0)
    try:
        yield
    finally:
        os.setresuid(0, 0, 0)


@pytest.fixture
def read_only():
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        directory.chmod(0o555)
        yield directory
        directory.chmod(0o755)


def test_a_directory_that_cannot_be_written(read_only):
    with unprivileged(), pytest.raises(UsageError) as caught:
        make_directory(read_only)
    assert "cannot be written" in str(caught.value)


def test_a_directory_that_cannot_be_made(read_only):
    with unprivileged(), pytest.raises(UsageError) as caught:
        make_directory(read_only / "below")
    assert "Permission denied" in str(caught.value)


def test_a_directory_that_cannot_be_locked(read_only):
    with unprivileged(), pytest.raises(UsageError) as caught:
        lock_directory(read_only)
    assert "Permission denied" in str(caught.value)


def test_a_lock_whose_file_was_removed_is_none(tmp_path):
    """A run that is refused takes its empty log with it; whoever waits for it must not hold what nobody else sees."""
    with other(HOLD_THE_FILE, tmp_path) as holder, ThreadPoolExecutor() as beside:
        waiting = beside.submit(lock_directory, tmp_path, patience_s=30)
        _wait_until_open(tmp_path / EVENTS_FILE)
        (tmp_path / EVENTS_FILE).unlink()
        holder.stdin.close()
        descriptors = waiting.result(30)
    try:
        assert os.path.samestat(os.fstat(descriptors[0]), (tmp_path / EVENTS_FILE).stat())
        with pytest.raises(BusyError):
            lock_directory(tmp_path, patience_s=0.1)
    finally:
        let_go(descriptors)


def _wait_until_open(path):
    """Until this process has the file open."""
    end = time.monotonic() + 20
    while not any(os.path.samestat(fd.stat(), path.stat()) for fd in Path("/proc/self/fd").iterdir() if fd.exists()):
        assert time.monotonic() < end
        time.sleep(0.005)


def test_a_tracker_in_use_leaves_no_lock_in_the_output(tmp_path):
    out, state = tmp_path / "out", tmp_path / "state"
    out.mkdir()
    state.mkdir()
    with locked(state, file=TRACKER_LOCK), pytest.raises(BusyError):
        lock_both(out, state, patience_s=0)
    assert not list(out.iterdir())
    for before in ("", "{}\n"):
        (out / EVENTS_FILE).write_text(before)
        with locked(state, file=TRACKER_LOCK), pytest.raises(BusyError):
            lock_both(out, state, patience_s=0)
        assert (out / EVENTS_FILE).read_text() == before


def test_a_directory_that_a_refused_run_took_back_is_made_again(tmp_path):
    let_go(lock_directory(tmp_path / "gone"))
    assert (tmp_path / "gone" / EVENTS_FILE).exists()
