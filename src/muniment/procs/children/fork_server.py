"""A fork server: it forks shims, each in a tenth of the time that a new interpreter would take to start.

A shim whose command has ended, and all that it began, waits for the next one.
"""

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

from muniment.procs import shim, shim_server
from muniment.procs.children.child import Child

__all__ = ["ForkServer", "ForkedShim"]

_PATIENCE_S = 30.0
"""Seconds that a shim may take to begin its command. One that takes longer is of a server that was stopped."""
_MOST_IDLE = 16
"""Shims that wait for their next command."""
_TO_THE_END = 1 << 20
_LAST_S = 2.0
"""Seconds in which those end when there is none."""


class ForkedShim:
    """A shim that a fork server forked, for one command. Its end is read from its lifeline."""

    def __init__(self, server: ForkServer, lifeline: socket.socket, said: bytes) -> None:
        lifeline.setblocking(False)
        self._server, self.lifeline, self._said = server, lifeline, said
        self._reading = threading.Lock()
        self.returncode = _code(said)
        """Minus the signal's number when killed; that of SIGKILL when nobody has seen its end."""

    @property
    def report(self) -> bytes:
        """What it has said of its command when that began; something else when that cannot be run."""
        return self._said.partition(b"\n")[2].partition(b"\n")[0]

    @property
    def is_over(self) -> bool:
        """Whether it has said itself that nothing of its command is left."""
        return self.returncode is not None and shim_server.OVER in self._said

    def let_go(self) -> None:
        """Nothing more is wanted of it: it waits for its next command, if it can."""
        if self.is_over:
            self._server.take_back(self.lifeline)
        else:
            self.lifeline.close()

    def poll(self) -> int | None:
        """The exit code, or None while it runs."""
        with self._reading:
            while self.returncode is None:
                try:
                    piece = self.lifeline.recv(256)
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
        ready.register(self.lifeline, select.POLLIN)
        while (code := self.poll()) is None:
            if not ready.poll(None if timeout is None else timeout * 1000):
                raise TimeoutError(f"a shim did not end within {timeout} s")
        return code

    async def wait_async(self) -> int:
        """Wait for its end without a thread."""
        loop, readable = asyncio.get_running_loop(), asyncio.Event()
        if self.poll() is None:
            loop.add_reader(self.lifeline, readable.set)
        try:
            while (code := self.poll()) is None:
                await readable.wait()
                readable.clear()
        finally:
            loop.remove_reader(self.lifeline)
        return code


def _code(said: bytes) -> int | None:
    """The exit code in what was written on a lifeline; what a shim says itself goes before what its server says."""
    for word in (shim_server.OVER, shim_server.ENDED):
        code, whole, _ = said.partition(word)[2].partition(b"\n")
        if whole:
            return int(code)
    return None


class ForkServer:
    """Forks shims, from any thread. Its process is started when it is needed, and once more when it was killed."""

    def __init__(self) -> None:
        self._turn = threading.Lock()
        self._process: Child | None = None
        self._requests: socket.socket | None = None
        self._idle: list[socket.socket] = []
        """The lifelines of shims that wait."""

    def fork(
        self, arguments: Sequence[str], pwd: str, environment: Mapping[str, str], outputs: Sequence[int]
    ) -> ForkedShim:
        """A shim with these arguments, its lifeline left out.

        Its command has begun, or cannot be run. All have one nice value. Raises OSError when the system lets no server
        start.
        """
        order = marshal.dumps((list(arguments), pwd, dict(environment)))
        while (lifeline := self._waiting()) is not None:
            if said := _taken(lifeline, order, outputs):
                return ForkedShim(self, lifeline, said)
        for _ in range(2):
            requests = self._ready()
            lifeline = _asked(requests)
            if said := _taken(lifeline, order, outputs):
                return ForkedShim(self, lifeline, said)
            self._drop(requests)
        raise OSError(errno.ECHILD, os.strerror(errno.ECHILD))

    def take_back(self, lifeline: socket.socket) -> None:
        """A shim waits for its next command."""
        with self._turn:
            if self._process is not None and len(self._idle) < _MOST_IDLE:
                self._idle.append(lifeline)
                return
        lifeline.close()

    def _waiting(self) -> socket.socket | None:
        """A shim that waits, and is there."""
        with self._turn:
            while self._idle:
                if not _has_ended(lifeline := self._idle.pop()):
                    return lifeline
                lifeline.close()
        return None

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
        """End it, and the shims that wait. Others go on."""
        with self._turn:
            idle, self._idle = self._idle, []
            for lifeline in idle:
                with suppress(OSError):
                    lifeline.shutdown(socket.SHUT_WR)
            for lifeline in idle:
                lifeline.settimeout(_LAST_S)
                _lines(lifeline, _TO_THE_END)
                lifeline.close()
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
                [sys.executable, *shim_server.HOW, str(theirs.fileno())],
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


def _asked(requests: socket.socket) -> socket.socket:
    """The lifeline of a shim that was asked for; nobody is on its other side when the server is gone."""
    ours, theirs = socket.socketpair()
    with theirs, suppress(OSError):
        socket.send_fds(requests, [b"+"], [theirs.fileno()])
    return ours


def _taken(lifeline: socket.socket, order: bytes, outputs: Sequence[int]) -> bytes:
    """What a shim says of an order; nothing of one that has not taken it, which is let go."""
    lifeline.settimeout(_PATIENCE_S)
    said = b""
    with suppress(OSError):
        socket.send_fds(lifeline, [len(order).to_bytes(shim_server.SIZE, "little")], outputs)
        lifeline.sendall(order)
        said = _lines(lifeline, 2)
    if said.startswith(shim_server.TAKEN):
        return said
    lifeline.close()
    return b""


def _lines(lifeline: socket.socket, most: int) -> bytes:
    """So many lines of what is said, or all until its end, or until nothing comes any more."""
    said = b""
    with suppress(OSError):
        while said.count(b"\n") < most and (piece := lifeline.recv(256)):
            said += piece
    return said


def _has_ended(lifeline: socket.socket) -> bool:
    """Whether a shim that waits, and has nothing to say, has ended."""
    try:
        lifeline.recv(256)
    except BlockingIOError:
        return False
    except OSError:
        pass
    return True
