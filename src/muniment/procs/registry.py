"""The registry of this process: its own row and those that it launches, each written before its process starts.

Nothing that befalls the store ends what Muniment was asked to do: it is said once, and from then on nothing is kept.
"""

from __future__ import annotations

import logging
import os
import resource
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

from msgspec import Struct, structs

from muniment.clock import now_ms
from muniment.errors import MunimentError, ProcessError
from muniment.model.process import MachineBinary, Output, Process, ProcessEnding, ProcessType
from muniment.procs.command_text import plain_text, told_command, told_environment
from muniment.procs.files import STREAMS, ProcessFiles, summary
from muniment.procs.liveness import same_process
from muniment.procs.platform.identity import here, look, started_at, this_machine
from muniment.procs.platform.linux import RSS_UNIT, unnamed_file
from muniment.procs.store import Store
from muniment.procs.watchdog import Watchdog

__all__ = [
    "DEEPEST",
    "MARK",
    "MOST_LIVING",
    "PARENT",
    "ProcessEntry",
    "ProcessPlan",
    "ProcessRegistry",
    "environment_alone",
    "get_by_pid",
]

_T = TypeVar("_T")

MARK = "MUNIMENT_PROCESS"
"""The variable with the id of the process that is launched; its descendants inherit it."""
PARENT = "MUNIMENT_PARENT"
"""The variable with the number of the process that spawned it: whose parent has another is a descendant."""
DEEPEST = 64
"""Levels of processes that launch processes; more is a program that launches itself."""
MOST_LIVING = 4096
"""Processes of one tree at a time."""
_FILES = "processes"
_log = logging.getLogger(__name__)


class ProcessPlan(Struct, frozen=True, kw_only=True):
    """A process that is to be launched."""

    process_type: ProcessType
    label: str = ""
    command: tuple[str, ...]
    pwd: str | None = ""
    """Empty: that of this process. None: the directory of its own files."""
    environment: tuple[tuple[str, str], ...] = ()
    """Beside what this process has, if it inherits that."""
    inherits: bool = True
    """Whether it gets the environment of this process."""
    timeout: float | None = None
    """Seconds."""
    attempt: int = 1


class ProcessEntry:
    """A process in the registry, from before it is spawned until its end is noted."""

    def __init__(self, registry: ProcessRegistry, row: Process | None, files: ProcessFiles | None) -> None:
        self._registry, self.row, self.files = registry, row, files
        self._memory: dict[str, int] = {}
        self.stdout = self.stderr = Output()
        """What it wrote, once it has ended."""

    def environment(self, plan: ProcessPlan) -> dict[str, str]:
        """The environment of the process."""
        own = os.environ if plan.inherits else {}
        given = {**own, **dict(plan.environment), PARENT: str(os.getpid())}
        if self.row is not None:
            given[MARK] = self.row.id
        return given

    def output(self, stream: str) -> int:
        """A descriptor for its output: of its file, or of one without a name where there is no room for it."""
        if self.files:
            try:
                return self.files.open_output(stream)
            except OSError as error:
                self._registry.lose(error)
        self._memory[stream] = unnamed_file(stream)
        return os.dup(self._memory[stream])

    def reading(self, stream: str) -> int:
        """A descriptor for reading its output while it runs; the caller closes it. Raises OSError."""
        if stream in self._memory or self.files is None:
            return os.dup(self._memory[stream])
        return os.open(self.files.directory / f"{stream}.log", os.O_RDONLY | os.O_CLOEXEC)

    def _conclude(self) -> tuple[Output, Output]:
        on_disk = self.files.conclude() if self.files else (Output(), Output())
        held = (self._memory.pop(stream, None) for stream in STREAMS)
        stdout, stderr = (
            _remembered(memory) if memory is not None else kept for memory, kept in zip(held, on_disk, strict=True)
        )
        return stdout, stderr

    def started(self, pid: int, start_ticks: int | None = None) -> None:
        """Note that it runs."""
        if start_ticks is None:
            seen = look(pid)
            start_ticks = seen.start_ticks if seen else None
            if self.files:
                self.files.note_pid(pid)
        if self.row is not None:
            self._registry.started(self.row.id, pid, start_ticks)

    def ended(self, ending: ProcessEnding) -> None:
        """Note how it ended, which was confirmed."""
        self.stdout, self.stderr = self._conclude()
        if self.row is not None:
            self._registry.ended(self.row.id, ending, self.stdout, self.stderr)


class ProcessRegistry:
    """The rows that this process writes. Without a store it keeps none, and all else is as with one."""

    def __init__(
        self,
        store: Store | None = None,
        home: Path = Path(),
        process_type: ProcessType = "cli",
        label: str = "",
        database: str = "",
        *,
        silent: bool = False,
    ) -> None:
        """`home` is where processes have their own files; type and label are this process's, if it has no row yet.

        The store is in `home`, or in a `database`, by its URL. Of a `silent` one nothing is said when it is lost.
        """
        self._silent = silent
        self.store, self._home, self._database = store, home, database
        self._type, self._label = process_type, label
        self._current: Process | None = None
        self._watchdog: Watchdog | None = None
        self._arming = threading.Lock()
        self._whole: ProcessRegistry | None = None
        """Of a part of this process, the registry of the process."""
        self.prune_at = 0.0
        """By `clock.monotonic`: when what is old goes by itself."""

    # -- this process

    def current(self) -> Process | None:
        """The row of this process, made if there is none; None when nothing is kept. Callable from anywhere."""
        if self._current is None or self._current.pid != os.getpid():
            self._current = self._guarded(self._find_current)
        return self._current

    def own_tree(self) -> list[Process]:
        """The rows of this process and of all below it: those that run first, then those that were queued last."""
        mine = self.current()
        found = self._guarded(lambda store: store.below(mine.id)) if mine is not None else None
        return sorted(found or [], key=lambda row: (row.status == "exited", -row.queued_at))

    def part(self, process_type: ProcessType, label: str) -> ProcessRegistry:
        """The registry of a part of this process, with a row of its own below that of the process.

        What is launched with it is below that row. `leave` ends the part; its row has no time and no memory of its own.
        """
        part = ProcessRegistry(self.store, self._home, process_type, label, self._database, silent=self._silent)
        part._whole = self
        mine = self.current()
        if mine is not None:
            row = structs.replace(part._own_row(mine), started_at=now_ms())
            part._current = row
            part._guarded(lambda store: store.queue([row]))
        return part

    def _find_current(self, store: Store) -> Process:
        launcher = store.get(os.environ.get(MARK, ""))
        if launcher is not None and launcher.place == here():
            mine = self._adopted(store, launcher)
            if mine is not None:
                return mine
        known = get_by_pid(store, os.getpid())
        if known is not None:
            return known
        store.meet(this_machine())
        row = self._own_row(launcher or get_by_pid(store, os.getppid()))
        store.queue([row])
        return row

    def _adopted(self, store: Store, row: Process) -> Process | None:
        """The row that this process was launched with, unless its launcher was launched with it."""
        me = look(os.getpid())
        if me is None:
            return None
        if row.pid == me.pid and row.start_ticks == me.start_ticks:
            return row
        if row.status != "queued" or os.environ.get(PARENT) != str(os.getppid()):
            return None
        # the launcher has not come to note it yet
        store.started(row.id, me.pid, me.start_ticks, now_ms())
        return structs.replace(row, status="running", pid=me.pid, start_ticks=me.start_ticks)

    def _own_row(self, parent: Process | None) -> Process:
        me, now = look(os.getpid()), now_ms()
        plan = ProcessPlan(process_type=self._type, label=self._label, command=tuple(sys.orig_argv))
        row = _row(plan, parent, os.environ)
        return structs.replace(
            row,
            status="running",
            pid=os.getpid(),
            start_ticks=me.start_ticks if me else None,
            started_at=started_at(me) if me else now,
        )

    def leave(self, exit_code: int | None) -> None:
        """Note how this process ends, as the last thing it does."""
        self.leave_others(exit_code)
        if self._watchdog is not None and self._is_this():
            self._watchdog.revoke()
            self._watchdog = None

    def leave_others(self, exit_code: int | None) -> None:
        """Note how this process ends; what it launched is left to its watchdog, because it has no time to wait."""
        mine = self._current
        if self._whole is not None and mine is not None:
            self.ended(mine.id, ProcessEnding(exit_code), Output(), Output())
        elif (
            mine is not None and self._is_this() and not mine.directory
        ):  # else its launcher notes it, with what it said
            used = os.times()
            ending = ProcessEnding(exit_code, False, int((used.user + used.system) * 1000), _most_memory())
            self.ended(mine.id, ending, Output(), Output())

    def _is_this(self) -> bool:
        return self._current is not None and self._current.pid == os.getpid()

    # -- others

    def _start_watchdog(self, mine: Process) -> None:
        """If this process is killed, a sweep is to make its rows true at once, for nobody else may be left to."""
        where = ("--database", self._database) if self._database else ("--state", str(self._home.absolute()))
        command = (sys.executable, "-P", "-m", "muniment", "sweep", "--below", mine.id, *where)
        # it belongs to none of those that it looks for
        self._watchdog = Watchdog(command, environment_alone())

    def enter(self, plan: ProcessPlan, *, own_files: bool = True) -> ProcessEntry:
        """Queue a process. Raises ProcessError when its tree is too deep or too large to be meant.

        Without files of its own it writes where this process writes.
        """
        parent = self.current()
        if parent is None or self.store is None:
            return ProcessEntry(self, None, None)
        if parent.depth >= DEEPEST:
            raise ProcessError(f"{DEEPEST} levels of processes launched each other: {_first(plan)} is not launched")
        living = self._guarded(lambda store: store.living(parent.root_id))
        if living is not None and living >= MOST_LIVING:
            raise ProcessError(f"{living} processes of one command are alive: {_first(plan)} is not launched")
        row = _row(plan, parent, dict(plan.environment))
        if not own_files:
            self._guarded(lambda store: store.queue([row]))
            return ProcessEntry(self, row, None) if self.store is not None else ProcessEntry(self, None, None)
        files = ProcessFiles(self._home.absolute() / _FILES / row.id)
        own = str(files.directory)
        row = structs.replace(row, directory=own, pwd=own if plan.pwd is None else row.pwd)
        self._guarded(lambda store: store.queue([row]))
        try:
            files.make(row.cmd, row.pwd)
        except OSError as error:
            self.lose(error)
        return ProcessEntry(self, row, files) if self.store is not None else ProcessEntry(self, None, None)

    def seen(
        self, parent: Process, command: tuple[str, ...], pid: int, start_ticks: int, began_at: int, pwd: str = ""
    ) -> str:
        """Note a process that one of ours began by itself; the id of its row, or nothing without one."""
        label = Path(command[0]).name if command else ""
        plan = ProcessPlan(process_type="binary", command=command, label=label, pwd=pwd or parent.pwd)
        row = structs.replace(
            _row(plan, parent, {}),
            status="running",
            pid=pid or None,
            start_ticks=start_ticks or None,
            started_at=began_at or None,
        )
        self._guarded(lambda store: store.queue([row]))
        return row.id if self.store is not None else ""

    def found(self, name: str, path: str, version: str, sha256: str, provider: str) -> None:
        """Note a program of this machine, as a hook reported it."""
        mine, now, plain = here().machine_id, now_ms(), plain_text
        binary = MachineBinary(mine, plain(name), plain(path), plain(version), plain(sha256), plain(provider), now)
        self._guarded(lambda store: store.found(binary))

    def gone(self, process_id: str, ending: ProcessEnding) -> None:
        """Note the end of such a process."""
        self.ended(process_id, ending, Output(), Output())

    def started(self, process_id: str, pid: int, start_ticks: int | None) -> None:
        """Note that a process runs."""
        self._guarded(lambda store: store.started(process_id, pid, start_ticks, now_ms()))
        (self._whole or self)._need_watchdog()

    def _need_watchdog(self) -> None:
        mine = self.current()
        with self._arming:  # hooks are launched by several threads
            if mine is not None and self._watchdog is None:
                self._start_watchdog(mine)  # beside the first that is launched: it costs no time

    def ended(self, process_id: str, ending: ProcessEnding, stdout: Output, stderr: Output) -> None:
        """Note that a process has ended."""
        self._guarded(lambda store: store.ended(process_id, ending, now_ms(), stdout, stderr))

    def lose(self, error: Exception) -> None:
        """Keep nothing from here on, and say so."""
        if self.store is not None and not self._silent:
            _log.warning("processes are not recorded from here on: %s", error)
        self.store = None

    def _guarded(self, action: Callable[[Store], _T]) -> _T | None:
        if self.store is None:
            return None
        try:
            return action(self.store)
        except (MunimentError, OSError) as error:
            self.lose(error)
            return None


def get_by_pid(store: Store, pid: int) -> Process | None:
    """The row of the process that has a number here and now; None when it has none, or there is no such process."""
    seen = look(pid)
    if seen is None:
        return None
    now = now_ms()
    rows = store.by_pid(here(), pid)
    return next((row for row in rows if same_process(row, seen, seen_started_at=started_at(seen), now=now)), None)


def _remembered(memory: int) -> Output:
    with open(memory, "rb") as file:
        file.seek(0)
        return summary(file.read())


def _first(plan: ProcessPlan) -> str:
    return Path(plan.command[0]).name


def _most_memory() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * RSS_UNIT


def _cwd() -> str:
    try:
        return os.getcwd()  # noqa: PTH109
    except OSError:
        return ""


def environment_alone() -> dict[str, str]:
    """The environment of a process that is below nothing: it gets a row of its own."""
    return {name: value for name, value in os.environ.items() if name not in {MARK, PARENT}}


def _row(plan: ProcessPlan, parent: Process | None, environment: Mapping[str, str]) -> Process:
    place, now, made = here(), now_ms(), os.urandom(16).hex()
    return Process(
        id=made,
        parent_id=parent.id if parent else None,
        root_id=parent.root_id if parent else made,
        depth=parent.depth + 1 if parent else 0,
        attempt=plan.attempt,
        process_type=plan.process_type,
        label=plan.label,
        machine_id=place.machine_id,
        boot_id=place.boot_id,
        pid_namespace=place.pid_namespace,
        uid=os.geteuid(),
        cmd=told_command(plan.command),
        pwd=plain_text(plan.pwd or _cwd()),
        env=told_environment(environment),
        timeout=plan.timeout,
        queued_at=now,
        beat_at=now,
    )
