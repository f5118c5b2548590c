"""What tests of processes share: another process that launches, and who is still there."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import psutil

from muniment.model.process import LiveProcess, Process
from muniment.procs.platform.identity import here
from muniment.procs.stop import kill_strays, members
from muniment.tracker.processes.sqlite import open_processes
from muniment.tracker.processes.store import ProcessStore

LAUNCHER = """
import json, signal, sys, time
from pathlib import Path
from muniment.procs.registry import ProcessRegistry
from muniment.procs.children.run import launch
from muniment.procs.sweep import tend
from muniment.tracker.processes.sqlite import open_processes
home = Path(sys.argv[1])
book = ProcessRegistry(open_processes(home), home, "supervisord", "launcher")
run = launch(book, json.loads(sys.argv[2]), background=True)
def end(*_):
    run.terminate()
    book.leave(0)
    sys.exit()
signal.signal(signal.SIGTERM, end)
print(run.process.id, flush=True)
while True:
    time.sleep(0.5)
    tend(book)
"""
"""Launches a command in the background, says the id of its row, and sweeps, more often than a crawl does."""

DOUBLE_FORK = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.setsid()
        if sys.argv[1:2] == ["hide"]:
            os.execve(sys.executable, ["python", "-c", "import time; time.sleep(600)", *sys.argv[2:]], {})
        time.sleep(600)
    os._exit(0)
os.wait()
print("forked", flush=True)
"""
"""Leaves a process behind that is in no session and no family of its own; with `hide`, without its environment too."""


@contextmanager
def opened(home: Path) -> Iterator[ProcessStore]:
    with closing(open_processes(home)) as store:
        yield store


def everyone_of(store: ProcessStore) -> list[LiveProcess]:
    """Every living process that belongs to a launched row."""
    return list(members([row for row in store.newest(1_000) if row.directory]).values())


def with_argument(word: str) -> list[int]:
    """Every living process that has a word among its arguments."""
    found = []
    for pid in psutil.pids():
        with suppress(psutil.Error):
            if word in psutil.Process(pid).cmdline():
                found.append(pid)
    return found


def soon(condition: Callable[[], object], what: str, seconds: float = 20) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"it never came to this: {what}"
        time.sleep(0.02)


@contextmanager
def a_launcher(home: Path, *command: str) -> Iterator[tuple[subprocess.Popen[str], Process]]:
    """A process that has launched a command, and the row of that."""
    words = [sys.executable, "-c", LAUNCHER, str(home), json.dumps(command)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, start_new_session=True) as launcher:
        try:
            assert launcher.stdout is not None
            made = launcher.stdout.readline().strip()
            with opened(home) as store:
                row = store.get(made)
            assert row is not None
            yield launcher, row
        finally:
            launcher.terminate()
            launcher.wait(20)
            with opened(home) as store:
                kill_strays(store.unended(here().machine_id))
