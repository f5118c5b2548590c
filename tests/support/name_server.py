"""A name server that can be taken down, for tests.

Every name has the same address, but these: one that ends in `.none.test` does not exist, nor does one without a dot;
one in `.late.test` does not exist when it is asked for first; one in `.empty.test` has no address, and one in
`.inside.test` a private one; one in `.mute.test` gets no answer, and one in `.sick.test` the answer that the server
failed.
"""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections import defaultdict
from typing import Self

__all__ = ["NameServer"]

_ANSWER, _FAILURE, _NO_SUCH_NAME = 0x8180, 0x8182, 0x8183
_INSIDE = socket.inet_aton("10.98.76.54")
_ADDRESS, _INTERNET = 1, 1
_TTL_S = 60
_LOOKS_UP_S = 0.05
_TIMES = struct.pack(">5I", 1, 300, 300, 300, _TTL_S)
_REMEMBERED = b"\0" + struct.pack(">HHIH", 6, _INTERNET, _TTL_S, 2 + len(_TIMES)) + b"\0\0" + _TIMES
"""The SOA of the root, as with each answer that a name does not exist: resolvers keep that for a minute."""


class NameServer:
    """Answers questions for addresses by UDP while its `with` block lasts and it is not `down`."""

    def __init__(self, address: str = "127.0.0.1", port: int = 0, *, gives: str = "127.0.0.1") -> None:
        self.address, self.port = address, port
        self.mute = False
        """It answers nothing at all, as when a network loses every packet."""
        self.asked: defaultdict[str, list[float]] = defaultdict(list)
        """When each name was asked for an IPv4 address (`time.monotonic`)."""
        self._gives = socket.inet_aton(gives)
        self._over = threading.Event()
        self._thread = threading.Thread()

    def __enter__(self) -> Self:
        """Begin to answer."""
        self.up()
        return self

    def __exit__(self, *_: object) -> None:
        """Answer no more."""
        self.down()

    def up(self) -> None:
        """Answer, where it answered before."""
        listener = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        listener.bind((self.address, self.port))
        listener.settimeout(_LOOKS_UP_S)
        self.port = listener.getsockname()[1]
        self._over.clear()
        self._thread = threading.Thread(target=self._serve, args=(listener,), daemon=True)
        self._thread.start()

    def down(self) -> None:
        """Be gone: who asks is refused."""
        self._over.set()
        self._thread.join()

    @property
    def names(self) -> set[str]:
        """The names that somebody asked for."""
        return set(self.asked)

    def _serve(self, listener: socket.socket) -> None:
        with listener:
            while not self._over.is_set():
                try:
                    asked, who = listener.recvfrom(4096)
                except TimeoutError:
                    continue
                if not self.mute and b"\x04mute\x04test\x00" not in asked:
                    listener.sendto(self._said(asked), who)

    def _said(self, asked: bytes) -> bytes:
        ends = asked.index(b"\0", 12) + 5
        question = asked[12:ends]
        name, for_ipv4 = _name(question), question[-4:] == struct.pack(">HH", _ADDRESS, _INTERNET)
        too_early = name.endswith(".late.test") and name not in self.asked
        if for_ipv4:
            self.asked[name].append(time.monotonic())
        known = not (too_early or "." not in name or name.endswith(".none.test"))
        code = _FAILURE if name.endswith(".sick.test") else _ANSWER if known else _NO_SUCH_NAME
        given = code == _ANSWER and for_ipv4 and not name.endswith(".empty.test")
        address = _INSIDE if name.endswith(".inside.test") else self._gives
        head = asked[:2] + struct.pack(">HHHHH", code, 1, int(given), 0, 0 if code != _NO_SUCH_NAME else 1)
        # the name is that of the question, twelve bytes from the beginning
        answer = struct.pack(">HHHIH", 0xC00C, _ADDRESS, _INTERNET, _TTL_S, 4) + address if given else b""
        return head + question + answer + (_REMEMBERED if code == _NO_SUCH_NAME else b"")


def _name(question: bytes) -> str:
    labels, at = [], 0
    while question[at]:
        labels.append(question[at + 1 : at + 1 + question[at]].decode())
        at += 1 + question[at]
    return ".".join(labels).lower()
