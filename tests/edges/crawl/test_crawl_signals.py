"""Real signals to a real process: before its loop runs, while it runs, and while it closes."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import asyncio, os, signal, sys
from muniment.app.signals import heard_from_the_start, stopped_by_signals

before, running, closing, ignored = (words.split() for words in sys.argv[1:])
said = []

def send(names):
    for name in names:
        os.kill(os.getpid(), signal.Signals[name])

async def work():
    loop = asyncio.get_running_loop()
    steps = lambda why: said.append("stop"), lambda why: said.append("kill")
    with stopped_by_signals(loop, said.append, *steps):
        for name in running:
            send([name])
            await asyncio.sleep(0.05)
    send(closing)
    await asyncio.sleep(0.05)

for name in ignored:
    signal.signal(signal.Signals[name], signal.SIG_IGN)
heard_from_the_start()
try:
    send(before)
    asyncio.run(work())
except KeyboardInterrupt:
    said.append("interrupted")
print(",".join(said))
"""


@pytest.mark.parametrize(
    ("before", "running", "closing", "ignored", "code", "said"),
    [
        ("SIGTERM", "", "", "", 0, "interrupted"),
        ("SIGHUP", "", "", "", 0, "interrupted"),
        ("", "SIGINT", "", "", 0, "interrupted,stop"),
        ("", "SIGTERM", "", "", 0, "terminated,stop"),
        ("", "SIGHUP SIGINT", "", "", 0, "hangup,stop,interrupted,kill"),
        ("", "SIGTERM SIGTERM SIGTERM", "", "", 3, ""),
        ("", "", "SIGINT", "", 0, ""),
        ("", "SIGTERM", "SIGTERM", "", 0, "terminated,stop"),
        ("", "", "SIGHUP SIGTERM", "", 3, ""),
        # as under nohup
        ("SIGHUP", "SIGHUP SIGHUP", "SIGHUP SIGHUP", "SIGHUP", 0, ""),
        ("SIGHUP", "SIGHUP SIGTERM", "", "SIGHUP", 0, "terminated,stop"),
    ],
)
def test_signals(before: str, running: str, closing: str, ignored: str, code: int, said: str) -> None:
    command = [sys.executable, "-c", PROGRAM, before, running, closing, ignored]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stdout.strip(), ended.stderr) == (code, said, "")


def test_these_hold_under_nohup() -> None:
    """`nohup` keeps the hangup from all that it starts; `&`, in a shell without jobs, Ctrl-C."""
    ignore = (
        "import os, signal, sys\n"
        "for one in signal.SIGHUP, signal.SIGINT: signal.signal(one, signal.SIG_IGN)\n"
        "os.execv(sys.argv[1], sys.argv[1:])"
    )
    tests = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"{__file__}::test_signals"]
    done = subprocess.run(
        [sys.executable, "-c", ignore, *tests], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout
