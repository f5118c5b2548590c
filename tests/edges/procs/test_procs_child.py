"""A child that is waited for: its end is known when it has ended, whoever else watches it."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from muniment.procs.children.child import Child

LATE_S = 0.6
# PTRACE_SEIZE: whoever traces a process hears of its end first, and its parent only when the tracer has
TRACER = f"""
import ctypes, os, sys, time
pid = int(sys.argv[1])
if ctypes.CDLL(None, use_errno=True).ptrace(0x4206, pid, None, None):
    sys.exit(os.strerror(ctypes.get_errno()))
print("traces", flush=True)
sys.stdin.readline()
time.sleep({LATE_S})
os.waitpid(pid, 0x40000000)
"""


@pytest.fixture
def child() -> Iterator[Child]:
    spawned = subprocess.Popen(["sleep", "600"])
    child = Child(spawned)
    yield child
    child.kill()
    child.wait()


@pytest.mark.parametrize("how", ["in the event loop", "in a thread"])
def test_a_child_that_is_traced_has_ended_when_its_tracer_has_heard(child: Child, how: str) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", TRACER, str(child.pid)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as tracer:
        assert tracer.stdin is not None
        assert tracer.stdout is not None
        assert tracer.stdout.readline() == b"traces\n"
        os.kill(child.pid, signal.SIGKILL)
        time.sleep(0.1)
        tracer.stdin.write(b"\n")
        tracer.stdin.flush()
        began = time.monotonic()
        code = asyncio.run(child.wait_async()) if how == "in the event loop" else child.wait(10)
        assert code == -signal.SIGKILL
        assert time.monotonic() - began > LATE_S / 2, "it was known before the tracer let go: this test shows nothing"
