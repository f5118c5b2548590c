"""The socket that a server of people or of pipelines listens on."""

from __future__ import annotations

import socket

from muniment.errors import UsageError

__all__ = ["listener"]

_BACKLOG = 1024


def listener(host: str, port: int, option: str) -> socket.socket:
    """A socket that listens at an address; raises UsageError, which names the option that chooses another.

    Its protocol is that of `getaddrinfo`: asyncio sends small answers at once (TCP_NODELAY) only where a socket names
    TCP, and else a client waits 40 ms for the body behind a head.
    """
    try:
        (family, kind, protocol, _, address), *_ = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        made = socket.socket(family, kind, protocol)
    except OSError as error:
        raise UsageError(f"{option} {host}:{port}: {error.strerror or error}") from None
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind(address)
        # two may bind an address, and one may listen on it
        made.listen(_BACKLOG)
    except OSError as error:
        made.close()
        reason = error.strerror or error
        raise UsageError(f"cannot listen on {host}:{port}: {reason}; choose another with {option}") from None
    return made
