"""A fork server: a program of its own that forks shims, and has each keep one command after the other.

It has one thread and few modules, so that a fork is cheap, and a shim that waits for its next command costs no fork.

Usage: shim_server.py SOCKET      (for each message with the descriptor of a lifeline, a shim is forked, which reads
                                  there what it is to keep)
"""

from __future__ import annotations

import gc
import marshal
import os
import select
import sys
from _socket import CMSG_SPACE, socket

if __name__ != "__main__":
    from muniment.procs import shim
else:
    sys.path.append(os.path.dirname(__file__))  # noqa: PTH120  (it loads nothing of the package)
    import shim  # type: ignore[import-not-found, no-redef]

HOW = ("-I", "-S", __file__)
"""Python's arguments to run this."""
SIZE = 8
"""Bytes of the length of an order that is sent to a shim, little-endian; with them come stdout and stderr."""
TAKEN, OVER, ENDED = b"taken", b"over ", b"ended "
"""What is said on a lifeline, a line each: by the shim that it has read an order, and that all of it has ended with an
exit code; by the server that the shim itself has ended."""
_LIFELINE = 3
"""The only descriptor of a shim beside the standard ones, when it is forked."""
_MOST_DESCRIPTORS = 1 << 20
_DESCRIPTOR = 4
"""Bytes of a descriptor in a message."""
_NOT_WHOLE = 127
"""The exit code of a shim whose launcher is gone in the middle of an order."""


def main(arguments: list[str]) -> int:
    """Serve; in a shim that was forked, keep what comes by its lifeline."""
    os.environ.pop(shim.KEEPS, None)
    _ForkServer(int(arguments[0])).serve()
    return shim.work(_LIFELINE, str(os.getppid()), _keep_all)


def _keep_all(keeper: shim.Keeper) -> int:
    """Keep one command after the other, until the launcher or the one that stands by is gone."""
    orders = _Orders(keeper.lifeline, keeper.first)
    while order := orders.next():
        code = keeper.keep(order)
        keeper.rest()
        orders.say(b"%b%d" % (OVER, code))
    return 0


class _Orders:
    """The orders that come to a shim by its lifeline."""

    def __init__(self, lifeline: int, first: int) -> None:
        self._lifeline, self._socket, self._space = lifeline, socket(fileno=lifeline), CMSG_SPACE(2 * _DESCRIPTOR)
        self._first = first
        self._waited = select.poll()
        for descriptor in (lifeline, first):
            self._waited.register(descriptor, select.POLLIN)

    def next(self) -> shim.Order | None:
        """The next order, whose outputs are those of this process from now on; None when there is no more."""
        if any(descriptor == self._first for descriptor, _ in self._waited.poll()):
            return None  # nobody stands by
        try:
            size, passed, _, _ = self._socket.recvmsg(SIZE, self._space)
        except OSError:
            return None  # the launcher is gone, and had not heard all
        if not size:
            return None
        # only its launcher can write there
        order = shim.Order(*marshal.loads(_read_exactly(self._lifeline, int.from_bytes(size, "little"))))  # noqa: S302
        for number, descriptor in enumerate(memoryview(passed[0][2]).cast("i"), 1):
            os.dup2(descriptor, number)
            os.close(descriptor)
        # a command is looked for there; to take over all variables would take longer than all the rest
        if "PATH" in order.environment:
            os.environ["PATH"] = order.environment["PATH"]
        else:
            os.environ.pop("PATH", None)
        # a launcher that gave this shim up has given the order to another one
        return order if self.say(TAKEN) else None

    def say(self, text: bytes) -> bool:
        """Write a line on the lifeline; whether the launcher is there."""
        try:
            os.write(self._lifeline, text + b"\n")
        except OSError:
            return False
        return True


class _ForkServer:
    """Forks a shim for each message, and writes on its lifeline when it has ended. It ends with its launcher."""

    def __init__(self, requests: int) -> None:
        self._requests, self._space = socket(fileno=requests), CMSG_SPACE(_DESCRIPTOR)
        self._awaited = select.poll()
        self._awaited.register(requests, select.POLLIN)
        self._shims: dict[int, tuple[int, int]] = {}

    def serve(self) -> None:
        """Serve until the launcher is gone; returns in each shim that is forked."""
        gc.disable()
        gc.freeze()  # a collection in a shim would copy what it shares with this process
        while True:
            for descriptor, _ in self._awaited.poll():
                if descriptor in self._shims:
                    self._reap(descriptor)
                elif self._fork():
                    return

    def _fork(self) -> bool:
        """Take a message; whether this is the shim that was forked for it."""
        said, passed, _, _ = self._requests.recvmsg(1, self._space)
        if not said:
            os._exit(0)  # the shims go on: each hears of it by its lifeline
        [lifeline] = memoryview(passed[0][2]).cast("i")
        pid = os.fork()
        if pid == 0:
            _become(lifeline)
            return True
        awaited = os.pidfd_open(pid)
        self._shims[awaited] = pid, lifeline
        self._awaited.register(awaited, select.POLLIN)
        return False

    def _reap(self, awaited: int) -> None:
        pid, lifeline = self._shims.pop(awaited)
        self._awaited.unregister(awaited)
        _, status = os.waitpid(pid, 0)
        try:
            os.write(lifeline, b"%b%d\n" % (ENDED, os.waitstatus_to_exitcode(status)))
        except OSError:
            pass  # nobody waits for it any more
        os.close(awaited)
        os.close(lifeline)


def _become(lifeline: int) -> None:
    """Make this process, which a fork server forked, like one that was started for its commands alone."""
    os.setsid()
    os.dup2(lifeline, _LIFELINE)
    os.closerange(_LIFELINE + 1, _MOST_DESCRIPTORS)


def _read_exactly(descriptor: int, size: int) -> bytes:
    pieces = []
    while size:
        piece = os.read(descriptor, size)
        if not piece:
            os._exit(_NOT_WHOLE)  # the launcher is gone
        pieces.append(piece)
        size -= len(piece)
    return b"".join(pieces)


if __name__ == "__main__":
    os._exit(main(sys.argv[1:]))
