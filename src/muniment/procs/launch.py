"""Launching a worker process that shares a socket with this one and never outlives it."""

from __future__ import annotations

import asyncio
import ctypes
import os
import resource
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from muniment.errors import ArchiveError, DiskFullError, MunimentError, UsageError
from muniment.model.advice import advice

__all__ = [
    "CHANNEL_VARIABLE",
    "INDEX_NOW",
    "OUT_OF_MEMORY",
    "WALK_NOW",
    "Indexer",
    "Launched",
    "die_with_parent",
    "ending",
    "inherited_channel",
    "launch_worker",
    "most_descriptors",
]

CHANNEL_VARIABLE = "MUNIMENT_CHANNEL"
OUT_OF_MEMORY = 12
"""The exit code of a worker that got no more memory; the number is that of ENOMEM."""
INDEX_NOW = b"now\n"
"""What the process that joins an index waits for."""
WALK_NOW = b"walk\n"
"""Before it, to have it walk and seal what is full."""
_PARENT_VARIABLE = "MUNIMENT_PARENT"
_ENOUGH_DESCRIPTORS = 1 << 16
_PR_SET_PDEATHSIG = 1


class Launched(Struct, frozen=True):
    """A worker process and this side of its socket."""

    process: subprocess.Popen[bytes]
    channel: socket.socket


def launch_worker(*locks: int) -> Launched:
    """Start `muniment worker` with its end of a socket pair and the directory's locks.

    It gets a session of its own, so that a Ctrl-C in the terminal reaches the orchestrator alone. Raises MunimentError
    when the system does not let it start.
    """
    try:
        return _launch_worker(locks)
    except OSError as error:
        raise MunimentError(f"no worker can be started: {error.strerror}{advice(error.errno)}") from error


def _launch_worker(locks: tuple[int, ...]) -> Launched:
    ours, theirs = socket.socketpair()
    environment = {**_environment(), CHANNEL_VARIABLE: str(theirs.fileno())}
    # freed pages are kept by the allocator: bodies come and go all the time (+10 % pages/s, reference figures)
    environment.setdefault("MALLOC_TRIM_THRESHOLD_", "33554432")
    environment.setdefault("MALLOC_MMAP_THRESHOLD_", "33554432")
    try:
        process = subprocess.Popen(
            [sys.executable, "-m", "muniment", "worker"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            pass_fds=(theirs.fileno(), *locks),
            env=environment,
            start_new_session=True,
        )
    except OSError:
        ours.close()
        raise
    finally:
        theirs.close()
    return Launched(process, ours)


class Indexer:
    """A process that walks, seals and indexes one full WARC of a directory, or, when it is told to, all that are left.

    Arrow takes more memory than all else that the orchestrator does, and its imports more time.
    """

    def __init__(self, process: asyncio.subprocess.Process, out: Path) -> None:
        self._process, self._out = process, out

    @classmethod
    async def start(cls, locks: Sequence[int], out: Path, name: str = "") -> Indexer:
        """Launch it with the directory's locks; without a name it makes itself ready, and waits for the other calls.

        Raises ArchiveError when the system does not let it start.
        """
        try:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                *("-m", "muniment", "index", str(out), *([name] if name else [])),
                stdin=asyncio.subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=tuple(locks),
                env={**_environment(), "ARROW_DEFAULT_MEMORY_POOL": "system"},
                start_new_session=True,
            )
        except OSError as error:
            raise ArchiveError(f"no index can be written: {error.strerror}{advice(error.errno)}") from error
        return cls(process, out)

    async def walked(self) -> bytes:
        """Let it walk and seal what is full; the line that it says, or nothing when it ended over it."""
        word, answer = self._process.stdin, self._process.stdout
        assert answer is not None
        if word is not None and not word.is_closing():  # that of one which was killed is closed
            with suppress(OSError):
                word.write(WALK_NOW)
                await word.drain()
        return await answer.readline()

    async def done(self) -> bytes:
        """Let it join what is sealed now, and wait until it has ended; what it said since.

        Raises ArchiveError when it could not; when there was no room for it, that is a DiskFullError.
        """
        word = self._process.stdin
        if word is not None and not word.is_closing():
            word.write(INDEX_NOW)
            word.close()
        out, said = await self._process.communicate()
        if self._process.returncode:
            text = said.decode("utf-8", "replace").strip().rpartition("\n")[2].removeprefix("muniment: ")
            why = text or ending(self._process.returncode)
            if self._process.returncode == DiskFullError.exit_code:
                raise DiskFullError(f"the index could not be written ({why})")
            raise ArchiveError(f"the index of {self._out} could not be written ({why}); give the same command again")
        return out


def ending(code: int) -> str:
    """How a process ended, for people, by its return code: `exit 3`, `killed by signal 9 (SIGKILL)`."""
    if code == OUT_OF_MEMORY:
        return "out of memory"
    if code >= 0:
        return f"exit {code}"
    known = -code in {*signal.Signals}
    return f"killed by signal {-code}" + (f" ({signal.Signals(-code).name})" if known else "")


def _environment() -> dict[str, str]:
    return {**os.environ, _PARENT_VARIABLE: str(os.getpid())}


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


def most_descriptors(least: int = 0) -> int:
    """Let this process open as many files and sockets as it may, and say how many that is.

    Raises UsageError when that is fewer than `least`.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < least:
        raise UsageError(f"a process may open only {hard} files here, and {least} are needed: raise it with ulimit -n")
    most = _ENOUGH_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, _ENOUGH_DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
        return most
    return min(soft, _ENOUGH_DESCRIPTORS) if soft != resource.RLIM_INFINITY else _ENOUGH_DESCRIPTORS
