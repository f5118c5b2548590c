"""One try of a hook: launched, its output read while it runs, its bounds kept, and how it ended."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from contextlib import suppress
from math import inf
from pathlib import Path

from msgspec import Struct

from muniment.clock import monotonic, now_ms
from muniment.errors import MunimentError
from muniment.model.process import Process, ProcessEnding
from muniment.procs import stop_timeouts
from muniment.procs.children.fork_server import ForkServer
from muniment.procs.children.run import ChildRun, launch
from muniment.procs.hooks.left_files import FolderState, folder_state
from muniment.procs.hooks.tree_watch import TreeWatch, WatchedTree
from muniment.procs.registry import ProcessRegistry
from muniment.rules.hooks.outcomes import Cut
from muniment.rules.hooks.records import LineReader

__all__ = ["HookCommand", "HookProcess"]

_NICE = 10
_FIRST_LOOK_S, _LAST_LOOK_S = 0.02, 0.2
_PIECE = 256 << 10
_FROZEN_S = 5.0
"""Seconds beyond all others after which a shim counts as stopped, and is ended by force."""
_CANNOT_RUN = 127
"""The exit code of a shim whose command cannot be run."""


class HookCommand(Struct, frozen=True, kw_only=True):
    """A hook as it is run."""

    label: str
    words: tuple[str, ...]
    directory: Path
    """It works there."""
    environment: tuple[tuple[str, str], ...]
    """All of it."""
    timeout_s: float
    most_output: int
    most_memory: int
    attempt: int
    background: bool


class HookProcess:
    """A hook that runs. `heard` gets each line of its output, None for one that is too long."""

    def __init__(
        self,
        command: HookCommand,
        registry: ProcessRegistry,
        server: ForkServer,
        watch: TreeWatch,
        heard: Callable[[bytes | None], None],
    ) -> None:
        self._command, self._registry, self._watch, self._heard = command, registry, watch, heard
        self._server = server
        self._lines = LineReader()
        self._run: ChildRun | None = None
        self._reading: dict[str, int] = {}
        self._read = 0
        self.before: FolderState = {}
        """The files of its folder when it began."""
        self.after: FolderState = {}
        """Those that were there when it had ended."""
        self.ready = asyncio.Event()
        """It has written a line, or ended."""
        self.started_at, self._began = now_ms(), monotonic()
        self.duration_ms = 0
        self._force_at = (
            inf if command.background else self._began + command.timeout_s + stop_timeouts.HOOK_S + _FROZEN_S
        )
        self.asked = False
        """It was asked to end with its page."""
        self.cut: Cut = ""
        self.text = ""
        self.ending = ProcessEnding(None)
        self.process_id = ""
        self._task: asyncio.Task[None] | None = None
        self._tree: WatchedTree | None = None

    async def start(self) -> None:
        """Launch it; one that cannot be run has ended when this returns."""
        try:
            self._run = await asyncio.to_thread(self._launch)
        except (OSError, MunimentError) as error:
            self.refuse(getattr(error, "strerror", None) or str(error))
            return
        row = self._run.row
        self.process_id = row.id if row else ""
        self._task = asyncio.create_task(self._follow(self._run))

    def refuse(self, why: str) -> None:
        """It is not launched, and has ended."""
        self.before = self.after = folder_state(self._command.directory)
        self.cut, self.text = "cannot-run", why
        self.ready.set()

    def _launch(self) -> ChildRun:
        command = self._command
        command.directory.mkdir(parents=True, exist_ok=True)
        self.before = folder_state(command.directory)
        run = launch(
            self._registry,
            command.words,
            process_type="hook",
            label=command.label,
            pwd=str(command.directory),
            environment=dict(command.environment),
            timeout=None if command.background else command.timeout_s,
            attempt=command.attempt,
            background=True,
            inherits=False,
            grace_s=stop_timeouts.HOOK_S,
            nice=_NICE,
            server=self._server,
        )
        self._reading = {stream: run.reading(stream) for stream in ("stdout", "stderr")}
        return run

    @property
    def row(self) -> Process | None:
        """The row of its process; None when nothing is kept."""
        return self._run.row if self._run is not None else None

    def enters(self, pid: int | None) -> bool:
        """Whether a number that the hook named has no row yet; from now on it has one."""
        tree = self._tree
        if tree is None or pid is None:
            return True
        if pid in tree.entered or any(number == pid and row for (number, _), row in tree.seen.items()):
            return False
        tree.entered.add(pid)
        return True

    async def ended(self) -> None:
        """Wait until it has ended, and all that it began."""
        if self._task is not None:
            await self._task

    @property
    def over(self) -> bool:
        """Whether it has ended."""
        return self._task is None or self._task.done()

    async def ask(self) -> None:
        """A background hook is to end with its page: SIGTERM, and its own time to finish."""
        if self._run is None or self._task is None or self._task.done():
            return
        self.asked = True
        await asyncio.to_thread(self._run.kill)
        await self.bound()

    async def bound(self, *, ask: bool = False) -> None:
        """Give it its own time from now on, then end it; with `ask` it is asked first, and has that time once more."""
        if self._task is None:
            return
        _, waiting = await asyncio.wait([self._task], timeout=self._command.timeout_s)
        if waiting and ask:
            await self.ask()
        elif waiting:
            self.stop("timeout", f"did not end within {self._command.timeout_s:g} s")
            await self._task

    def stop(self, cut: Cut, text: str) -> None:
        """End it and all that it began; the first reason counts."""
        if not self.cut:
            self.cut, self.text = cut, text
        if self._run is not None and not self.over:
            self._force_at = min(self._force_at, monotonic() + stop_timeouts.HOOK_S + _FROZEN_S)
            self._run.end()

    async def _follow(self, run: ChildRun) -> None:
        tree = WatchedTree(run.row, run.keepers, run.command_pid, self._command.most_memory, self._too_heavy)
        self._tree = tree
        self._watch.add(tree)
        leaving = asyncio.ensure_future(run.leaving())
        look_s = _FIRST_LOOK_S
        try:
            while not (await asyncio.wait([leaving], timeout=look_s))[0]:
                self._look()
                if monotonic() > self._force_at:
                    await asyncio.to_thread(run.force)
                look_s = min(_LAST_LOOK_S, look_s * 1.5)
            while (ending := await asyncio.to_thread(self._conclude, run)) is None:  # noqa: ASYNC110  (the other shim)
                await asyncio.sleep(_FIRST_LOOK_S)
            self._end(run, ending)
        finally:
            leaving.cancel()
            await self._watch.remove(tree)
            self.ready.set()
            run.let_go()  # the last of all: another hook may have its shim from here on

    def _look(self) -> None:
        """Take in what it has written, and see whether that is too much."""
        self._take(self._reading["stdout"])
        for stream, descriptor in self._reading.items():
            if os.fstat(descriptor).st_size > self._command.most_output:
                self.stop("output-limit", f"more than {self._command.most_output} bytes on {stream}")

    def _take(self, descriptor: int) -> None:
        while self._read < self._command.most_output:
            piece = os.pread(descriptor, min(_PIECE, self._command.most_output - self._read), self._read)
            if not piece:
                return
            self._read += len(piece)
            for line in self._lines.feed(piece):
                self._heard(line)
                self.ready.set()

    def _conclude(self, run: ChildRun) -> ProcessEnding | None:
        """Cut its output to the limit and have its end noted."""
        for descriptor in self._reading.values():
            if os.fstat(descriptor).st_size > self._command.most_output:
                with suppress(OSError):
                    os.truncate(f"/proc/self/fd/{descriptor}", self._command.most_output)
        ending = run.poll()
        if ending is not None:
            self.after = folder_state(self._command.directory)
        return ending

    def _end(self, run: ChildRun, ending: ProcessEnding) -> None:
        over = [name for name, fd in self._reading.items() if os.fstat(fd).st_size >= self._command.most_output]
        self._take(self._reading["stdout"])
        if rest := self._lines.end():
            self._heard(rest)
        if over and not self.cut:
            self.cut, self.text = "output-limit", f"more than {self._command.most_output} bytes on {over[0]}"
        said = os.pread(self._reading["stderr"], 4096, 0)
        for descriptor in self._reading.values():
            os.close(descriptor)
        self.ending, self.duration_ms = ending, int((monotonic() - self._began) * 1000)
        if ending.timed_out and not self.cut:
            self.cut, self.text = "timeout", f"over {self._command.timeout_s:g} s"
        if not run.begun and not self.cut and ending.exit_code in (None, _CANNOT_RUN):
            self.cut, self.text = "cannot-run", _first_line(said)

    def _too_heavy(self, used: int) -> None:
        loop = self._task.get_loop() if self._task is not None else None
        if loop is not None:
            loop.call_soon_threadsafe(self._end_heavy, used)

    def _end_heavy(self, used: int) -> None:
        if not self.over:  # otherwise what was looked at may be the next hook of its shim
            self.stop("memory", f"{used} bytes, more than {self._command.most_memory}")


def _first_line(said: bytes) -> str:
    return said.decode("utf-8", "replace").strip().partition("\n")[0][:500]
