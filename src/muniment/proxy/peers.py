"""Who is at the other end of a connection on the loopback: a port of ours is for clients of this user alone."""

from __future__ import annotations

import os
import socket
import struct
from pathlib import Path

__all__ = ["peer_uid"]

_SOCK_DIAG, _BY_FAMILY, _REQUEST = 4, 20, 1
"""A family of netlink, and its message for one socket (sock_diag(7))."""
_HEADER = struct.Struct("=IHHII")
_ASKED = struct.Struct("=BBBBI")
_UID_AT = _HEADER.size + 4 + 48 + 12
_TABLE = Path("/proc/net/tcp")

Address = tuple[str, int]


def peer_uid(peer: Address, own: Address) -> int | None:
    """The user whose socket is bound to `peer` and connected to `own`, both of IPv4; None when there is none."""
    try:
        return _by_netlink(peer, own)
    except OSError:
        return _by_table(peer, own)


def _by_netlink(peer: Address, own: Address) -> int:
    """Ask the kernel for the one socket; raises OSError when it does not say."""
    ends = struct.pack("!HH", peer[1], own[1]) + _padded(peer[0]) + _padded(own[0])
    body = _ASKED.pack(socket.AF_INET, socket.IPPROTO_TCP, 0, 0, 0xFFFFFFFF) + ends + b"\0" * 4 + b"\xff" * 8
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, _SOCK_DIAG) as kernel:
        kernel.settimeout(1.0)
        kernel.send(_HEADER.pack(_HEADER.size + len(body), _BY_FAMILY, _REQUEST, 1, 0) + body)
        answer = kernel.recv(4096)
    if len(answer) < _UID_AT + 4 or _HEADER.unpack_from(answer)[1] != _BY_FAMILY:
        raise OSError("the kernel does not say")
    uid: int = struct.unpack_from("=I", answer, _UID_AT)[0]
    return uid


def _padded(address: str) -> bytes:
    return socket.inet_aton(address) + b"\0" * 12


def _by_table(peer: Address, own: Address) -> int | None:
    """Look it up in the table of all connections, where there is one; without it, nobody differs from us."""
    ends = [f"{socket.inet_aton(ip)[::-1].hex().upper()}:{port:04X}" for ip, port in (peer, own)]
    try:
        lines = _TABLE.read_text().splitlines()
    except OSError:
        return os.getuid()
    found = (line.split() for line in lines[1:])
    return next((int(fields[7]) for fields in found if fields[1:3] == ends), None)
