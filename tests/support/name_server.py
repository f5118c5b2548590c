"""A name server that can be taken down, for tests.

Every name has the same address, unless it ends in `.none.test`, or in `.mute.test`, for which there is no answer. One
that ends in `.late.test` does not exist when it is asked for first. Names without a dot do not exist.
"""

from __future__ import annotations

import socket
import struct
import threading
from typing import Self

__all__ = ["NameServer"]

_ANSWER, _NO_SUCH_NAME = 0x8180, 0x8183
_ADDRESS, _INTERNET = 1, 1
_TTL_S = 60
_LOOKS_UP_S = 0.05


class NameServer:
    """Answers questions for addresses by UDP while its `with` block lasts and it is not `down`."""

    def __init__(self, address: str = "127.0.0.1", port: int = 0, *, gives: str = "127.0.0.1") -> None:
        self.address, self.port = address, port
        self.mute = False
        """It answers nothing at all, as when a network loses every packet."""
        self._asked: set[bytes] = set()
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
        return {_name(question) for question in self._asked}

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
        too_early = question[:-4].endswith(b"\x04late\x04test\x00") and question not in self._asked
        self._asked.add(question)
        single = len(question) == question[0] + 6
        known = not (too_early or single or question[:-4].endswith(b"\x04none\x04test\x00"))
        given = known and question[-4:] == struct.pack(">HH", _ADDRESS, _INTERNET)
        head = asked[:2] + struct.pack(">HHHHH", _ANSWER if known else _NO_SUCH_NAME, 1, int(given), 0, 0)
        # the name is that of the question, twelve bytes from the beginning
        answer = struct.pack(">HHHIH", 0xC00C, _ADDRESS, _INTERNET, _TTL_S, 4) + self._gives if given else b""
        return head + question + answer


def _name(question: bytes) -> str:
    labels, at = [], 0
    while question[at]:
        labels.append(question[at + 1 : at + 1 + question[at]].decode())
        at += 1 + question[at]
    return ".".join(labels).lower()
