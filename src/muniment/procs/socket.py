"""The socket in an output directory by which a run is told of changes: one line of JSON in, one line out.

It is bound and reached by a short way to its directory: a socket's own path holds 107 bytes at most (unix(7)).
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["LONGEST_LINE", "ask", "listen", "stop_listening"]

LONGEST_LINE = 1 << 20
"""Bytes of a question or an answer."""

_NAME = "control"
_PATIENCE_S = 10.0


@contextmanager
def _address(out: Path) -> Iterator[str]:
    directory = os.open(out / "parts", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{directory}/{_NAME}"
    finally:
        os.close(directory)


def listen(out: Path) -> socket.socket:
    """The socket of the run that holds the directory; one that a killed run left is replaced. Raises OSError."""
    (out / "parts").mkdir(exist_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with _address(out) as address:
            Path(address).unlink(missing_ok=True)
            listener.bind(address)
            Path(address).chmod(0o600)
        listener.listen()
    except OSError:
        listener.close()
        raise
    return listener


def stop_listening(out: Path) -> None:
    """Remove the socket's name."""
    (out / "parts" / _NAME).unlink(missing_ok=True)


def ask(out: Path, question: bytes) -> bytes | None:
    """The answer of the run in a directory to one line; None when no run takes questions there now."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asking:
        asking.settimeout(_PATIENCE_S)
        try:
            with _address(out) as address:
                asking.connect(address)
            asking.sendall(question + b"\n")
            answer = bytearray()
            while len(answer) <= LONGEST_LINE and (more := asking.recv(1 << 16)):
                answer += more
        except OSError:
            return None
    return bytes(answer) if answer.endswith(b"\n") else None
