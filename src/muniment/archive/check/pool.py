"""Processes that check ranges; nothing of them is left behind when the check is stopped."""

from __future__ import annotations

import multiprocessing
import os
import resource
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkContext, SpawnContext
from multiprocessing.process import BaseProcess
from typing import Protocol

import msgspec

from muniment.archive.check.range_checker import FileRange, RangeChecker, RangeReport
from muniment.errors import ArchiveError
from muniment.lifetime import end_with
from muniment.model.process import ProcessEnding

__all__ = ["CheckPool", "Enrol", "ProcessRow", "worthwhile_processes"]

_READ = msgspec.msgpack.Decoder(RangeReport)
_LAST_WORD = msgspec.msgpack.Decoder(tuple[int, ProcessEnding])
_RSS_UNIT = 1024
"""Bytes that the kernel counts memory in."""
_MOMENT_S = 0.2
"""In which a signal that went to all of them has come to this process, too."""
_WORTH_PROCESSES = 16 << 20
"""Below so many bytes a directory is checked before other processes have started."""


def worthwhile_processes(size: int) -> int:
    """How many processes a check of so many bytes is divided among."""
    return (os.cpu_count() or 1) if size > _WORTH_PROCESSES else 1


class ProcessRow(Protocol):
    """The row of a process that is about to be started."""

    def started(self, pid: int) -> None:
        """Note that it runs."""

    def ended(self, ending: ProcessEnding) -> None:
        """Note how it ended."""


Enrol = Callable[[], ProcessRow | None]
"""What makes a row before its process is started, where rows are kept."""


class CheckPool:
    """So many processes, each with one range at a time; a context manager that ends them, whatever happened."""

    def __init__(self, count: int, enrol: Enrol = lambda: None) -> None:
        # A fork would inherit the locks of pyarrow's threads; without them it is the fastest start.
        threads = "pyarrow" in sys.modules
        context = multiprocessing.get_context("spawn") if threads else multiprocessing.get_context("fork")
        if threads:
            from multiprocessing import resource_tracker  # noqa: PLC0415  (a fork has no need of it)

            resource_tracker.ensure_running()  # else the first child starts it, and what is blocked below is not then
        self._idle: list[Connection] = []
        self._busy: dict[Connection, FileRange] = {}
        self._processes: list[tuple[BaseProcess, ProcessRow | None]] = []
        self._endings: dict[int, ProcessEnding] = {}
        self._enrol = enrol
        # Ctrl-C and a hangup reach the whole group: blocked here, they are in the children for good, which stay quiet.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGHUP, signal.SIGTERM})
        try:
            for _ in range(count):
                self._start(context)
            # what came meanwhile is raised here
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        except BaseException:
            self._end()
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            raise

    def _start(self, context: SpawnContext | ForkContext) -> None:
        ours, theirs = context.Pipe()
        row = self._enrol()
        # A forked child holds the ends of its elder siblings, too: no pipe would tell it of its parent's death.
        process = context.Process(target=_serve, args=(theirs, os.getpid()), daemon=True)
        process.start()
        self._processes.append((process, row))
        theirs.close()
        self._idle.append(ours)
        if row is not None and process.pid is not None:
            row.started(process.pid)

    def __enter__(self) -> CheckPool:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self._let_end()
        self._end()

    def _end(self) -> None:
        for process, _row in self._processes:
            if process.pid not in self._endings:
                process.kill()
        for process, row in self._processes:
            process.join()
            if row is not None:
                row.ended(self._endings.get(process.pid or 0, ProcessEnding(process.exitcode)))
        for connection in (*self._idle, *self._busy):
            connection.close()

    def _let_end(self) -> None:
        """Have those that are done end by themselves, and say what they used."""
        for connection in self._idle:
            with suppress(OSError, EOFError, msgspec.DecodeError):
                connection.send(None)
                pid, ending = _LAST_WORD.decode(connection.recv_bytes())
                self._endings[pid] = ending

    def read(
        self, next_range: Callable[[], FileRange | None], meanwhile: Callable[[], None]
    ) -> Iterator[tuple[FileRange, RangeReport]]:
        """Each range with what it holds, in the order in which they get ready; `meanwhile` runs once beside them."""
        self._give(next_range)
        meanwhile()
        while self._busy:
            for ready in wait(list(self._busy)):
                assert isinstance(ready, Connection)
                try:
                    read = _READ.decode(ready.recv_bytes())
                except (EOFError, ConnectionError):
                    time.sleep(_MOMENT_S)  # a signal to the whole group ends this in its own way
                    raise ArchiveError(
                        "a process of the check was killed, perhaps for lack of memory; give the command again"
                    ) from None
                file_range = self._busy.pop(ready)
                self._idle.append(ready)
                self._give(next_range)
                yield file_range, read
                # what came of it may be another range
                self._give(next_range)

    def _give(self, next_range: Callable[[], FileRange | None]) -> None:
        while self._idle and (file_range := next_range()) is not None:
            connection = self._idle.pop()
            connection.send(file_range)
            self._busy[connection] = file_range


def _serve(connection: Connection, parent: int) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # a fork has what its parent does at a signal
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
    end_with(parent)
    with suppress(EOFError, OSError):
        while (file_range := connection.recv()) is not None:
            connection.send_bytes(msgspec.msgpack.encode(RangeChecker(file_range).run()))
        connection.send_bytes(msgspec.msgpack.encode((os.getpid(), _used())))


def _used() -> ProcessEnding:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return ProcessEnding(0, cpu_ms=int((used.ru_utime + used.ru_stime) * 1000), max_rss=used.ru_maxrss * _RSS_UNIT)
