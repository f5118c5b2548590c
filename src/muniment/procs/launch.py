"""Launching a worker process that shares a socket with this one and never outlives it."""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import subprocess
import sys

from msgspec import Struct

__all__ = ["CHANNEL_VARIABLE", "Launched", "die_with_parent", "inherited_channel", "launch_worker"]

CHANNEL_VARIABLE = "MUNIMENT_CHANNEL"
_PARENT_VARIABLE = "MUNIMENT_PARENT"
_PR_SET_PDEATHSIG = 1


class Launched(Struct, frozen=True):
    """A worker process and this side of its socket."""

    process: subprocess.Popen[bytes]
    channel: socket.socket


def launch_worker(lock: int) -> Launched:
    """Start `muniment worker` with its end of a socket pair and the directory's lock.

    It gets a session of its own, so that a Ctrl-C in the terminal reaches the orchestrator alone.
    """
    ours, theirs = socket.socketpair()
    environment = {**os.environ, CHANNEL_VARIABLE: str(theirs.fileno()), _PARENT_VARIABLE: str(os.getpid())}
    # freed pages are kept by the allocator: bodies come and go all the time (+10 % pages/s, reference figures)
    environment.setdefault("MALLOC_TRIM_THRESHOLD_", "33554432")
    environment.setdefault("MALLOC_MMAP_THRESHOLD_", "33554432")
    try:
        process = subprocess.Popen(
            [sys.executable, "-m", "muniment", "worker"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            pass_fds=(theirs.fileno(), lock),
            env=environment,
            start_new_session=True,
        )
    finally:
        theirs.close()
    return Launched(process, ours)


def inherited_channel() -> socket.socket | None:
    """The socket that `launch_worker` left for this process; None when it was not launched so."""
    number = os.environ.pop(CHANNEL_VARIABLE, "")
    if not number.isdigit():
        return None
    try:
        return socket.socket(fileno=int(number))
    except OSError:
        return None


def die_with_parent() -> None:
    """Ask the kernel to kill this process when its parent dies (Linux; elsewhere the closed socket must do)."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.environ.get(_PARENT_VARIABLE) != str(os.getppid()):
            os._exit(1)
