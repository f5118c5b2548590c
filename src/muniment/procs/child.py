"""A child of this process: waited for once, by whoever comes first, with what it used."""

from __future__ import annotations

import asyncio
import os
import select
import signal
import subprocess
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import IO

from muniment.model.process import Ending

__all__ = ["Child"]


class Child:
    """A process that was spawned. `ended` is called once, when its end is confirmed, with its exit code and use."""

    def __init__(self, spawned: subprocess.Popen[bytes], ended: Callable[[Ending], None] = lambda _: None) -> None:
        self._spawned, self._ended = spawned, ended
        self.pid = spawned.pid
        self.returncode: int | None = None
        """As `subprocess` has it: minus the signal's number when killed."""
        self._reaping = threading.Lock()
        # it is readable once the process has ended, and never means another one
        self._pidfd = os.pidfd_open(spawned.pid)

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
            if self.returncode is None:
                pid, status, usage = os.wait4(self.pid, os.WNOHANG)
                if pid:
                    self._reaped(os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime, usage.ru_maxrss)
            return self.returncode

    def _reaped(self, code: int, cpu_s: float, max_rss_kib: int) -> None:
        self.returncode = self._spawned.returncode = code
        os.close(self._pidfd)
        self._ended(Ending(code, False, int(cpu_s * 1000), max_rss_kib * 1024))

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end, from any thread; raises TimeoutError when that takes more than `timeout` seconds."""
        if self.returncode is None:
            ready = select.poll()
            ready.register(self._pidfd, select.POLLIN)
            ready.poll(None if timeout is None else timeout * 1000)
        code = self.poll()
        if code is None:
            raise TimeoutError(f"process {self.pid} did not end within {timeout} s")
        return code

    async def wait_async(self) -> int:
        """Wait for its end without a thread."""
        if self.poll() is None:
            loop, gone = asyncio.get_running_loop(), asyncio.Event()
            loop.add_reader(self._pidfd, gone.set)
            try:
                await gone.wait()
            finally:
                loop.remove_reader(self._pidfd)
            self.poll()
        assert self.returncode is not None
        return self.returncode

    def send_signal(self, number: signal.Signals) -> None:
        """Signal it, if it is there."""
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        """End it at once."""
        self.send_signal(signal.SIGKILL)
