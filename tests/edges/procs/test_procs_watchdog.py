"""The last will of a process: carried out however it ends, and not once it is revoked."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from process_harness import soon, with_argument

WITH_A_WILL = """
import os, signal, sys
from muniment.procs.watchdog import Watchdog
will = Watchdog(["touch", sys.argv[1]], dict(os.environ))
if sys.argv[2] == "revoked":
    will.revoke()
os.kill(os.getpid(), signal.SIGKILL)
"""

WITH_THREADS = """
import os, sys, threading, time
from pathlib import Path
from muniment.procs import registry
from muniment.procs.children.run import launch
from muniment.tracker.processes.sqlite import open_processes
home, together = Path(sys.argv[1]), threading.Barrier(4)
class Touching(registry.Watchdog):
    def __init__(self, command, environment):
        time.sleep(0.1)  # the others come meanwhile
        super().__init__(["touch", sys.argv[2]], environment)
registry.Watchdog = Touching
book = registry.ProcessRegistry(open_processes(home), home)
book.current()
def begin():
    together.wait()
    launch(book, ["true"])
threads = [threading.Thread(target=begin) for _ in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
book.leave(0)
"""


@pytest.mark.parametrize("how", ["killed", "revoked"])
def test_a_will_is_carried_out_unless_it_was_revoked(tmp_path: Path, how: str) -> None:
    made = tmp_path / "made"
    subprocess.run([sys.executable, "-c", WITH_A_WILL, str(made), how], timeout=60, check=False)
    soon(lambda: not with_argument(str(made)), "nobody waits any more")
    assert made.exists() == (how == "killed")


def test_a_process_that_launches_by_several_threads_has_one_will(tmp_path: Path) -> None:
    made = tmp_path / "made"
    subprocess.run([sys.executable, "-c", WITH_THREADS, tmp_path / "home", made], timeout=60, check=True)
    soon(lambda: not with_argument(str(made)), "nobody waits any more")
    assert not made.exists()
