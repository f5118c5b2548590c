"""Running commands that are not ours: each has a shim, which ends its whole subtree and writes down how it ended."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from msgspec import structs

from muniment.clock import monotonic
from muniment.errors import ProcessError
from muniment.model.process import Process, ProcessEnding, ProcessType
from muniment.procs import shim, stop_timeouts
from muniment.procs.children.child import Child
from muniment.procs.children.fork_server import ForkedShim, ForkServer
from muniment.procs.children.launch import spawn
from muniment.procs.files import STREAMS, ProcessFiles, shim_report
from muniment.procs.platform.identity import look, send
from muniment.procs.registry import ProcessEntry, ProcessPlan, ProcessRegistry
from muniment.procs.stop import is_alive, kill_strays

__all__ = ["ChildRun", "launch"]

_LOOK_AGAIN_S = 0.05
_LAST_OF_A_SHELL = 128 + 64
"""A shim's exit code is that of its command as a shell has it: 128 and the number of a signal; there are 64."""


class _SpawnedShim(Child):
    """A shim with an interpreter of its own."""

    is_over = False

    def __init__(self, spawned: subprocess.Popen[bytes], lifeline: socket.socket, report: bytes) -> None:
        super().__init__(spawned)
        self.lifeline, self.report = lifeline, report

    def let_go(self) -> None:
        """Nothing more is wanted of it."""
        self.lifeline.close()


class ChildRun:
    """A command that was launched. It ends with this process, at the latest."""

    def __init__(
        self,
        registry: ProcessRegistry,
        entry: ProcessEntry,
        files: ProcessFiles,
        child: _SpawnedShim | ForkedShim,
    ) -> None:
        self._registry, self._entry, self._files, self._child = registry, entry, files, child
        self._kept = shim_report(child.report) or files.kept()
        self.ending: ProcessEnding | None = None
        """How it ended, once that is confirmed."""
        self._let_go = False

    def note_start(self) -> None:
        """Note that it runs, if it does."""
        if self._kept:
            self._entry.started(self._kept.pid, self._kept.start_ticks)

    @property
    def process(self) -> Process | None:
        """Its row as it is now; None when nothing is kept."""
        row, store = self._entry.row, self._registry.store
        return (store.get(row.id) if store else None) or row if row else None

    @property
    def directory(self) -> Path:
        """The directory of its files."""
        return self._files.directory

    @property
    def begun(self) -> bool:
        """Whether the command could be run at all."""
        return self._kept is not None

    @property
    def row(self) -> Process | None:
        """Its row as it was queued; None when nothing is kept."""
        return self._entry.row

    @property
    def keepers(self) -> tuple[int, ...]:
        """The numbers of its shims, from whom all descend that it begins."""
        return tuple(pid for pid, _ in self._kept.shims) if self._kept else ()

    @property
    def command_pid(self) -> int:
        """The number of the command; 0 when it could not be run."""
        return self._kept.pid if self._kept else 0

    def reading(self, stream: str) -> int:
        """A descriptor for reading its output while it runs; the caller closes it. Raises OSError."""
        return self._entry.reading(stream)

    async def leaving(self) -> None:
        """Wait, without a thread, until its shim has ended; `poll` then says how, unless the other shim goes on."""
        await self._child.wait_async()

    def end(self) -> None:
        """Have it and all that it began end, gracefully and then by force, without waiting for that."""
        if self.ending is None:  # otherwise its shim may keep another command
            with suppress(OSError):  # it has ended
                self._child.lifeline.shutdown(socket.SHUT_WR)

    def force(self) -> None:
        """End at once what is left of it, shims that were stopped too; what cannot be killed is left."""
        if self._entry.row is not None and (row := self.process):
            with suppress(ProcessError):
                kill_strays([row])

    def is_alive(self) -> bool:
        """Whether the command itself runs now."""
        row = self.process
        return self.poll() is None and (row is None or is_alive(row))

    def poll(self) -> ProcessEnding | None:
        """The end of the command, or None while it or a descendant runs. When it is known, `let_go`."""
        if self.ending is None and self._child.poll() is not None and (self._child.is_over or not self._is_kept()):
            self._conclude()
        return self.ending

    def let_go(self) -> None:
        """Have a shim that said that all has ended keep the next command: nothing here is about that shim any more."""
        if self.ending is not None and self._child.is_over and not self._let_go:
            self._let_go = True
            self._child.let_go()

    def _is_kept(self) -> bool:
        """Whether one that stands by was killed, and the other one still ends what both kept."""
        known = self._kept.shims if self._kept else ()
        seen = [(look(pid), ticks) for pid, ticks in known]
        living = [one for one, ticks in seen if one and one.start_ticks == ticks and not one.ended]
        return bool(living) and not any(one.state in "Tt" for one in living)

    def wait(self, timeout: float | None = None) -> ProcessEnding:
        """Wait until it and all that it began have ended, and let go; raises TimeoutError after so many seconds."""
        over_at = None if timeout is None else monotonic() + timeout
        self._child.wait(timeout)
        while (ending := self.poll()) is None:
            if over_at is not None and monotonic() > over_at:
                raise TimeoutError(f"what process {self.command_pid} began did not end within {timeout} s")
            time.sleep(_LOOK_AGAIN_S)
        self.let_go()
        return ending

    def kill(self, number: signal.Signals = signal.SIGTERM) -> bool:
        """Signal the command itself; whether it was there. Its end is noted when it is seen to have ended."""
        return self._kept is not None and send(self._kept.pid, self._kept.start_ticks, number)

    def terminate(self) -> ProcessEnding:
        """End it and all that it began, gracefully and then by force."""
        if self.poll() is None:
            self.end()
        return self.wait()

    def _conclude(self) -> None:
        if not self._child.is_over:
            self._child.let_go()
            self.ending = self._files.ending() or self._without_shim()
        else:
            self.ending = self._files.ending() or self._told_by_shim()
        self._entry.ended(self.ending)
        if not self._entry.files:
            shutil.rmtree(self._files.directory, ignore_errors=True)

    def _without_shim(self) -> ProcessEnding:
        """The end of what a shim kept that was killed itself, or had no room to write it down."""
        row = self.process
        killed = kill_strays([row]) if row else set()
        if ending := self._files.ending():
            return ending
        if self._kept and self._kept.pid in killed:
            return ProcessEnding(-signal.SIGKILL)
        if self._kept and (self._child.returncode or 0) < 0:
            return ProcessEnding(None)  # that of the shim says nothing of what it kept
        return self._told_by_shim()

    def _told_by_shim(self) -> ProcessEnding:
        """The end by the exit code of the shim, which is that of the command as a shell has it."""
        code = self._child.returncode
        if code is None:
            return ProcessEnding(None)
        return ProcessEnding(128 - code if 128 < code <= _LAST_OF_A_SHELL else code)


def launch(
    registry: ProcessRegistry,
    command: Sequence[str],
    *,
    process_type: ProcessType = "binary",
    label: str = "",
    pwd: str | None = None,
    environment: Mapping[str, str] | None = None,
    timeout: float | None = None,
    attempt: int = 1,
    background: bool = False,
    inherits: bool = True,
    grace_s: float = stop_timeouts.COMMAND_S,
    nice: int = 0,
    server: ForkServer | None = None,
) -> ChildRun:
    """Run a command, to its end unless in the `background`; in its own directory, unless `pwd` names another.

    Unless it `inherits`, its environment is what is given and nothing else. When it is asked to end it has `grace_s`
    seconds. With a `server` its shim is forked there. Its row is there before it is. Raises ProcessError when its tree
    is too deep or too large, OSError when not even a temporary directory can be made for it.
    """
    plan = ProcessPlan(
        process_type=process_type,
        label=label,
        command=tuple(command),
        pwd=pwd,
        environment=tuple((environment or {}).items()),
        timeout=timeout,
        attempt=attempt,
        inherits=inherits,
    )
    entry = registry.enter(plan)
    files = entry.files or ProcessFiles(Path(tempfile.mkdtemp(prefix="muniment-")))
    plan = structs.replace(plan, pwd=pwd or str(files.directory))
    words = [str(files.directory), str(grace_s), str(timeout or 0), str(nice), *command]
    child = _forked(server, words, plan, entry) if server else _spawned(words, plan, entry)
    run = ChildRun(registry, entry, files, child)
    run.note_start()
    if not background:
        run.wait()
    return run


def _spawned(words: list[str], plan: ProcessPlan, entry: ProcessEntry) -> _SpawnedShim:
    """A shim in an interpreter of its own, which has begun the command if that can be run."""
    if entry.row is not None:
        plan = structs.replace(plan, environment=(*plan.environment, (shim.KEEPS, entry.row.id)))
    ours, theirs = socket.socketpair()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, shim.ENDING)
    try:
        with theirs:
            kept = [sys.executable, *shim.HOW, words[0], str(theirs.fileno()), *words[1:]]
            spawned = spawn(kept, plan, entry, [theirs.fileno()])
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    # what it is, or nothing when it could not be run
    return _SpawnedShim(spawned, ours, ours.recv(256))


def _forked(server: ForkServer, words: list[str], plan: ProcessPlan, entry: ProcessEntry) -> ForkedShim:
    """The same of a fork server."""
    outputs = [entry.output(stream) for stream in STREAMS]
    try:
        return server.fork(words, plan.pwd or "", entry.environment(plan), outputs)
    except OSError:
        entry.ended(ProcessEnding(None))
        raise
    finally:
        for opened in outputs:
            os.close(opened)
