"""Processes that check stretches; nothing of them is left behind when the check is stopped."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkContext, SpawnContext
from multiprocessing.process import BaseProcess

import msgspec

from muniment.archive.check_file import Checker, Read, Stretch
from muniment.errors import ArchiveError
from muniment.lifetime import TOLD_BY_THE_KERNEL, end_with

__all__ = ["Pool"]

_READ = msgspec.msgpack.Decoder(Read)


class Pool:
    """So many processes, each with one stretch at a time; a context manager that ends them, whatever happened."""

    def __init__(self, count: int) -> None:
        # A fork would inherit the locks of pyarrow's threads, and of those of macOS, which are in every process there;
        # where neither is, a fork is the fastest start.
        threads = "pyarrow" in sys.modules or not TOLD_BY_THE_KERNEL
        context = multiprocessing.get_context("spawn") if threads else multiprocessing.get_context("fork")
        if threads:
            from multiprocessing import resource_tracker  # noqa: PLC0415  (a fork has no need of it)

            resource_tracker.ensure_running()  # else the first child starts it, and what is blocked below is not then
        self._idle: list[Connection] = []
        self._busy: dict[Connection, Stretch] = {}
        self._processes: list[BaseProcess] = []
        # Ctrl-C reaches the whole group: blocked here, it is blocked in the children for good, and they stay quiet.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            for _ in range(count):
                self._start(context)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def _start(self, context: SpawnContext | ForkContext) -> None:
        ours, theirs = context.Pipe()
        # A forked child holds the ends of its elder siblings, too: no pipe would tell it of its parent's death.
        process = context.Process(target=_serve, args=(theirs, os.getpid()), daemon=True)
        process.start()
        theirs.close()
        self._processes.append(process)
        self._idle.append(ours)

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes:
            process.kill()
        for process in self._processes:
            process.join()
        for connection in (*self._idle, *self._busy):
            connection.close()

    def read(
        self, next_stretch: Callable[[], Stretch | None], meanwhile: Callable[[], None]
    ) -> Iterator[tuple[Stretch, Read]]:
        """Each stretch with what it holds, in the order in which they get ready; `meanwhile` runs once beside them."""
        self._give(next_stretch)
        meanwhile()
        while self._busy:
            for ready in wait(list(self._busy)):
                assert isinstance(ready, Connection)
                try:
                    read = _READ.decode(ready.recv_bytes())
                except (EOFError, ConnectionError):
                    raise ArchiveError("a process of the check was killed; is there enough memory?") from None
                stretch = self._busy.pop(ready)
                self._idle.append(ready)
                self._give(next_stretch)
                yield stretch, read
                # what came of it may be another stretch
                self._give(next_stretch)

    def _give(self, next_stretch: Callable[[], Stretch | None]) -> None:
        while self._idle and (stretch := next_stretch()) is not None:
            connection = self._idle.pop()
            connection.send(stretch)
            self._busy[connection] = stretch


def _serve(connection: Connection, parent: int) -> None:
    end_with(parent)
    while True:
        try:
            stretch: Stretch = connection.recv()
            connection.send_bytes(msgspec.msgpack.encode(Checker(stretch).run()))
        except (EOFError, OSError):
            return
