"""Advice: what a person can do about what this machine does not give."""

from __future__ import annotations

import errno

__all__ = ["NO_MEMORY", "advice"]

NO_MEMORY = "no more memory; give the same command again, with a smaller --workers or --inflight"
"""The line for a MemoryError."""

_LOOK = "; check the disk, then give the same command again"
_RAISE = "; raise the limit (ulimit -n), then give the same command again"
_ADVICE = {errno.EIO: _LOOK, errno.EROFS: _LOOK, errno.EMFILE: _RAISE, errno.ENFILE: _RAISE}


def advice(number: int | None) -> str:
    """What to do about an error of the operating system, by its number: the end of a line, or nothing."""
    return _ADVICE.get(number or 0, "")
