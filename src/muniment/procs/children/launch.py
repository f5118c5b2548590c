"""Launching workers and indexers: each is in the registry first, and none outlives this process."""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import socket
import subprocess
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

from msgspec import Struct

from muniment.errors import ArchiveError, DiskFullError, MunimentError, UsageError
from muniment.lifetime import end_with
from muniment.model.failure import advice
from muniment.model.process import ProcessEnding
from muniment.procs.children.child import Child
from muniment.procs.files import KEPT
from muniment.procs.registry import PARENT, ProcessEntry, ProcessPlan, ProcessRegistry

__all__ = [
    "CHANNEL_VARIABLE",
    "INDEX_NOW",
    "OUT_OF_MEMORY",
    "STOCK",
    "VERIFY_NOW",
    "Indexer",
    "LaunchedWorker",
    "die_with_parent",
    "ending",
    "inherited_channel",
    "launch_worker",
    "most_descriptors",
    "spawn",
]

CHANNEL_VARIABLE = "MUNIMENT_CHANNEL"
OUT_OF_MEMORY = 12
"""The exit code of a worker that got no more memory; the number is that of ENOMEM."""
INDEX_NOW = b"now\n"
"""What the process that joins an index waits for."""
VERIFY_NOW = b"verify\n"
"""Before it, to have it verify and seal what is full."""
STOCK = "--stock"
"""In place of a file's name: on "verify" it lists the files, on "index" it indexes the unknown ones."""
_LONGEST_LINE = 1 << 28
_ENOUGH_DESCRIPTORS = 1 << 16


class LaunchedWorker(Struct, frozen=True):
    """A worker process and this side of its socket."""

    process: Child
    channel: socket.socket


def launch_worker(
    *locks: int, registry: ProcessRegistry | None = None, label: str = "fetcher", command: str = "worker"
) -> LaunchedWorker:
    """Start `muniment worker`, or another `command` like it, with its end of a socket pair and the directory's locks.

    It gets a session of its own, so that a Ctrl-C in the terminal reaches the orchestrator alone. Raises MunimentError
    when the system does not let it start.
    """
    try:
        return _launch_worker(locks, registry or ProcessRegistry(), label, command)
    except OSError as error:
        raise MunimentError(f"no worker can be started: {error.strerror}{advice(error.errno)}") from error


def _launch_worker(locks: tuple[int, ...], registry: ProcessRegistry, label: str, command: str) -> LaunchedWorker:
    ours, theirs = socket.socketpair()
    # freed pages are kept by the allocator: bodies come and go all the time (+10 % pages/s, reference figures)
    kept = {name: os.environ.get(name, "33554432") for name in _KEPT_PAGES}
    plan = _our_own(label, [command], {**kept, CHANNEL_VARIABLE: str(theirs.fileno())})
    entry = registry.enter(plan)

    def ended(ending: ProcessEnding) -> None:
        entry.ended(ending)
        _pass_on(entry)

    try:
        spawned = spawn(plan.command, plan, entry, (theirs.fileno(), *locks))
    except OSError:
        ours.close()
        raise
    finally:
        theirs.close()
    entry.started(spawned.pid)
    return LaunchedWorker(Child(spawned, ended), ours)


_KEPT_PAGES = ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_")


def _our_own(label: str, arguments: Sequence[str], environment: dict[str, str]) -> ProcessPlan:
    command = (sys.executable, "-m", "muniment", *arguments)
    return ProcessPlan(process_type="worker", label=label, command=command, environment=tuple(environment.items()))


def spawn(
    command: Sequence[str],
    plan: ProcessPlan,
    entry: ProcessEntry,
    descriptors: Iterable[int],
    *,
    stdin: int = subprocess.DEVNULL,
    stdout: int | None = None,
) -> subprocess.Popen[bytes]:
    """Start the process of an entry in a session of its own, its output in its files."""
    out = entry.output("stdout") if stdout is None else stdout
    err = entry.output("stderr")
    try:
        spawned = subprocess.Popen(
            command,
            cwd=plan.pwd or None,
            stdin=stdin,
            stdout=out,
            stderr=err,
            pass_fds=tuple(descriptors),
            env=entry.environment(plan),
            start_new_session=True,
        )
    except OSError:
        entry.ended(ProcessEnding(None))
        raise
    finally:
        for opened in (*([out] if stdout is None else []), err):
            os.close(opened)
    return spawned


def _pass_on(entry: ProcessEntry) -> None:
    """Say what a worker said, for whoever watches; of very much, the first and the last."""
    said = entry.stderr
    if said.size:
        gap = "\n...\n" if said.size > 2 * KEPT else ""
        with suppress(OSError, ValueError):
            sys.stderr.write(f"{said.head}{gap}{said.tail}")
            sys.stderr.flush()


class Indexer:
    """A process that verifies, seals and indexes one full WARC of a directory, or, on request, all that are left.

    Arrow takes more memory than all else that the orchestrator does, and its imports more time.
    """

    def __init__(self, process: Child, entry: ProcessEntry, out: Path) -> None:
        self._process, self._entry, self._out = process, entry, out
        self._said = asyncio.StreamReader(_LONGEST_LINE)
        self._pipe: asyncio.BaseTransport | None = None

    @classmethod
    async def start(
        cls, locks: Sequence[int], out: Path, name: str = "", registry: ProcessRegistry | None = None
    ) -> Indexer:
        """Launch it with the directory's locks; without a name it makes itself ready, and waits for the other calls.

        Raises ArchiveError when the system does not let it start.
        """
        arguments = ["index", str(out), *([name] if name else [])]
        plan = _our_own("index", arguments, {"ARROW_DEFAULT_MEMORY_POOL": "system"})
        try:
            entry = (registry or ProcessRegistry()).enter(plan)
            spawned = spawn(plan.command, plan, entry, locks, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        except OSError as error:
            raise ArchiveError(f"no index can be written: {error.strerror}{advice(error.errno)}") from error
        entry.started(spawned.pid)
        indexer = cls(Child(spawned, entry.ended), entry, out)
        loop = asyncio.get_running_loop()
        indexer._pipe, _ = await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(indexer._said), spawned.stdout
        )
        return indexer

    async def walked(self) -> bytes:
        """Let it verify and seal what is full; the line that it says, or nothing when it ended over it."""
        self._tell(VERIFY_NOW)
        return await self._said.readline()

    async def done(self) -> bytes:
        """Let it join what is sealed now, and wait until it has ended; what it said since.

        Raises ArchiveError when it could not; when there was no room for it, that is a DiskFullError.
        """
        self._tell(INDEX_NOW)
        with suppress(OSError):
            self._word.close()
        said = await self._said.read()
        if self._pipe is not None:
            self._pipe.close()
        code = await self._process.wait_async()
        if code:
            complaint = (self._entry.stderr.tail or self._entry.stderr.head).strip().rpartition("\n")[2]
            why = complaint.removeprefix("muniment: ") or ending(code)
            if code == DiskFullError.exit_code:
                raise DiskFullError(f"the index could not be written ({why})")
            raise ArchiveError(f"the index of {self._out} could not be written ({why}); give the same command again")
        return said

    def kill(self) -> None:
        """End it at once."""
        self._process.kill()

    @property
    def _word(self) -> IO[bytes]:
        assert self._process.stdin is not None
        return self._process.stdin

    def _tell(self, word: bytes) -> None:
        # one that was killed hears nothing
        with suppress(OSError, ValueError):
            self._word.write(word)
            self._word.flush()


def ending(code: int) -> str:
    """The end of a process, for people, by its return code: `exit 3`, `killed by signal 9 (SIGKILL)`."""
    if code == OUT_OF_MEMORY:
        return "out of memory"
    if code >= 0:
        return f"exit {code}"
    known = -code in {*signal.Signals}
    return f"killed by signal {-code}" + (f" ({signal.Signals(-code).name})" if known else "")


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
    """End this process when the one that spawned it does."""
    end_with(int(os.environ.get(PARENT) or 0))


def most_descriptors(least: int = 0) -> int:
    """Let this process open as many files and sockets as it may, and say how many that is.

    Raises UsageError when that is fewer than `least`.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < least:
        raise UsageError(f"the limit of open files is {hard}, and {least} are needed: raise it with ulimit -n")
    allowed = _ENOUGH_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, _ENOUGH_DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < allowed:
        # a system may have a limit beside the one that it reports
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
        except (ValueError, OSError):
            return soft
    return allowed
