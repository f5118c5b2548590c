"""A fork server: it forks shims, each in a tenth of the time that a new interpreter would take to start."""

from __future__ import annotations

import asyncio
import errno
import marshal
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress

from muniment.procs import shim
from muniment.procs.children.child import Child

__all__ = ["ForkServer", "ForkedShim"]

_PATIENCE_S = 30.0
"""Seconds that a shim may take to begin its command. One that takes longer is of a server that was stopped."""
_ENDED = b"ended "


class ForkedShim:
    """A shim that a fork server forked, by its lifeline, on which the server writes how it ended."""

    def __init__(self, lifeline: socket.socket, said: bytes) -> None:
        lifeline.setblocking(False)
        self._lifeline, self._said = lifeline, said
        self._reading = threading.Lock()
        self.returncode = _code(said)
        """Minus the signal's number when killed; that of SIGKILL when nobody has seen its end."""

    def poll(self) -> int | None:
        """The exit code, or None while it runs."""
        with self._reading:
            while self.returncode is None:
                try:
                    piece = self._lifeline.recv(256)
                except BlockingIOError:
                    break
                except OSError:
                    piece = b""
                self._said += piece
                self.returncode = _code(self._said) if piece else -signal.SIGKILL
            return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end, from any thread; raises TimeoutError when that takes more than `timeout` seconds."""
        ready = select.poll()
        ready.register(self._lifeline, select.POLLIN)
        while (code := self.poll()) is None:
            if not ready.poll(None if timeout is None else timeout * 1000):
                raise TimeoutError(f"a shim did not end within {timeout} s")
        return code

    async def wait_async(self) -> int:
        """Wait for its end without a thread."""
        loop, readable = asyncio.get_running_loop(), asyncio.Event()
        if self.poll() is None:
            loop.add_reader(self._lifeline, readable.set)
        try:
            while (code := self.poll()) is None:
                await readable.wait()
                readable.clear()
        finally:
            loop.remove_reader(self._lifeline)
        return code


def _code(said: bytes) -> int | None:
    """The exit code in what was written on a lifeline."""
    last = said.rpartition(_ENDED)
    return int(last[2]) if last[1] and last[2].endswith(b"\n") else None


class ForkServer:
    """Forks shims, from any thread. Its process is started when it is needed, and once more when it was killed."""

    def __init__(self) -> None:
        self._turn = threading.Lock()
        self._process: Child | None = None
        self._requests: socket.socket | None = None

    def fork(
        self, arguments: Sequence[str], pwd: str, environment: Mapping[str, str], outputs: Sequence[int]
    ) -> tuple[ForkedShim, socket.socket]:
        """A shim with these arguments, its lifeline left out, and this side of its lifeline.

        Its command has begun, or cannot be run. Raises OSError when the system lets no server start.
        """
        order = marshal.dumps((list(arguments), pwd, dict(environment)))
        for _ in range(2):
            requests = self._ready()
            lifeline = _asked(requests, len(order).to_bytes(shim.SIZE, "little") + order, outputs)
            said = _first_line(lifeline)
            if said:
                return ForkedShim(lifeline, said), lifeline
            lifeline.close()
            self._drop(requests)
        raise OSError(errno.ECHILD, os.strerror(errno.ECHILD))

    def _ready(self) -> socket.socket:
        with self._turn:
            if self._requests is None:
                self._process, self._requests = _start()
            return self._requests

    def _drop(self, requests: socket.socket) -> None:
        """A server that was killed, or was stopped, is given up."""
        with self._turn:
            if self._requests is requests:
                self._end()

    def close(self) -> None:
        """End it. Shims that it forked go on."""
        with self._turn:
            self._end()

    def _end(self) -> None:
        if self._process is not None and self._requests is not None:
            self._requests.close()
            self._process.kill()
            self._process.wait()
            self._process = self._requests = None


def _start() -> tuple[Child, socket.socket]:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    # a shim starts with these blocked, so that none is lost
    before = signal.pthread_sigmask(signal.SIG_BLOCK, shim.ENDING)
    try:
        with theirs:
            spawned = subprocess.Popen(
                [sys.executable, *shim.HOW, "serve", str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
    except OSError:
        ours.close()
        raise
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return Child(spawned), ours


def _asked(requests: socket.socket, order: bytes, outputs: Sequence[int]) -> socket.socket:
    """The lifeline of a shim that was asked for; nobody is on its other side when the server is gone."""
    ours, theirs = socket.socketpair()
    ours.settimeout(_PATIENCE_S)
    with theirs, suppress(OSError):
        socket.send_fds(requests, [b"+"], [*outputs, theirs.fileno()])
        ours.sendall(order)
    return ours


def _first_line(lifeline: socket.socket) -> bytes:
    said = b""
    with suppress(OSError):
        while not said.endswith(b"\n") and (piece := lifeline.recv(256)):
            said += piece
    return said
