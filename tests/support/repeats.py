"""Requests that a relay sends to its server again: at once, or long after, as networks and balancers may."""

from __future__ import annotations

import asyncio
import contextlib
import re
import time
from collections import deque

__all__ = ["Repeats"]

_MOST_KEPT = 40
_PATIENCE_S = 30.0
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)


class Repeats:
    """The finishes that passed last."""

    def __init__(self, target: tuple[str, int]) -> None:
        self._target = target
        self._kept: deque[bytes] = deque(maxlen=_MOST_KEPT)
        self._until = 0.0
        self.sent = 0
        """How many requests were sent again and got an answer."""

    def begin(self, seconds: float) -> None:
        """Send each finish again as soon as it has passed, for so long."""
        self._until = max(self._until, time.monotonic() + seconds)

    def requests(self, pending: bytearray) -> list[bytes]:
        """Take the complete requests out of what has passed on a connection; those that are finishes."""
        found = []
        while (end := pending.find(b"\r\n\r\n")) >= 0:
            length = _LENGTH.search(pending, 0, end)
            whole = end + 4 + (int(length[1]) if length else 0)
            if len(pending) < whole:
                break
            if b"/finish " in pending[: pending.find(b"\r\n")]:
                found.append(bytes(pending[:whole]))
            del pending[:whole]
        self._kept += found
        return found if time.monotonic() < self._until else []

    def kept(self) -> list[bytes]:
        """The finishes that passed last, whichever session they were of."""
        return list(self._kept)

    async def send(self, requests: list[bytes]) -> None:
        """Send requests again, each on a connection of its own; the answers go to nobody."""
        for request in requests:
            with contextlib.suppress(OSError, TimeoutError):
                async with asyncio.timeout(_PATIENCE_S):
                    reader, writer = await asyncio.open_connection(*self._target)
                    try:
                        writer.write(request)
                        self.sent += bool(await reader.read(1))
                    finally:
                        writer.close()
