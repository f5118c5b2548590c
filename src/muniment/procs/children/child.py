"""A child of this process: waited for once, by whoever comes first, with what it used."""

from __future__ import annotations

import asyncio
import os
import select
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import IO

from muniment.clock import monotonic
from muniment.model.process import ProcessEnding
from muniment.procs.platform.linux import Awaited

__all__ = ["Child"]

_TRACED_S = 0.05
"""Who traces a process (a debugger, a profiler) hears of its end first: how often to look whether it has."""


class Child:
    """A process that was spawned. `ended` is called once, when its end is confirmed, with its exit code and use."""

    def __init__(
        self, spawned: subprocess.Popen[bytes], ended: Callable[[ProcessEnding], None] = lambda _: None
    ) -> None:
        self._spawned, self._ended = spawned, ended
        self.pid = spawned.pid
        self.returncode: int | None = None
        """As `subprocess` has it: minus the signal's number when killed."""
        self._reaping = threading.Lock()
        self._awaited = Awaited(spawned.pid)

    @property
    def stdin(self) -> IO[bytes] | None:
        """Its standard input, if that is a pipe."""
        return self._spawned.stdin

    @property
    def stdout(self) -> IO[bytes] | None:
        """Its standard output, if that is a pipe."""
        return self._spawned.stdout

    def poll(self) -> int | None:
        """The exit code, or None while it runs."""
        with self._reaping:
            if self.returncode is None and (ending := self._awaited.ending()):
                code, cpu_s, max_rss = ending
                self.returncode = self._spawned.returncode = code
                self._ended(ProcessEnding(code, False, int(cpu_s * 1000), max_rss))
            return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end, from any thread; raises TimeoutError when that takes more than `timeout` seconds."""
        if self.returncode is None:
            end = None if timeout is None else monotonic() + timeout
            ready = select.poll()
            ready.register(self._awaited.descriptor, select.POLLIN)
            ended = ready.poll(None if timeout is None else timeout * 1000)
            while ended and self.poll() is None and (end is None or monotonic() < end):
                time.sleep(_TRACED_S)
        code = self.poll()
        if code is None:
            raise TimeoutError(f"process {self.pid} did not end within {timeout} s")
        return code

    async def wait_async(self) -> int:
        """Wait for its end without a thread."""
        if self.poll() is None:
            loop, gone = asyncio.get_running_loop(), asyncio.Event()
            loop.add_reader(self._awaited.descriptor, gone.set)
            try:
                await gone.wait()
            finally:
                loop.remove_reader(self._awaited.descriptor)
        while (code := self.poll()) is None:  # noqa: ASYNC110 (nobody tells when a tracer has heard)
            await asyncio.sleep(_TRACED_S)
        return code

    def send_signal(self, number: signal.Signals) -> None:
        """Signal it, if it is there."""
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        """End it at once."""
        self.send_signal(signal.SIGKILL)
