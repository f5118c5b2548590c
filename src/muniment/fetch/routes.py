"""Routes: whether this machine knows a way to anybody."""

from __future__ import annotations

import socket

__all__ = ["any_route"]

_ELSEWHERE = ((socket.AF_INET, "192.0.2.1"), (socket.AF_INET6, "2001:db8::1"))
"""Addresses that nobody has (RFC 5737, RFC 3849): what has a route to them has one to the rest of the world."""
_DISCARD = 9


def any_route() -> bool:
    """Whether there is a route to public addresses, of either family; only the kernel is asked, nothing is sent."""
    return any(_has_route(family, address) for family, address in _ELSEWHERE)


def _has_route(family: int, address: str) -> bool:
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((address, _DISCARD))
    except OSError:
        return False
    return True
