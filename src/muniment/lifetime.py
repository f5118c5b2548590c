"""A child that does not outlive its parent."""

from __future__ import annotations

import ctypes
import os
import signal
import threading
import time

__all__ = ["TOLD_BY_THE_KERNEL", "end_with"]

_PR_SET_PDEATHSIG = 1
_LOOK_AGAIN_S = 0.2
_prctl = getattr(ctypes.CDLL(None, use_errno=True), "prctl", None)

TOLD_BY_THE_KERNEL = _prctl is not None
"""Whether the kernel kills a child with its parent, whatever the child does or waits for: Linux."""


def end_with(parent: int) -> None:
    """End this process when its parent does, whose number this is; at once when that has ended before."""
    if _prctl is not None:
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)
    if _prctl is None:
        threading.Thread(target=_watch, args=(parent,), name="waits for its parent's end", daemon=True).start()


def _watch(parent: int) -> None:
    # an orphan is given to the first process of the system
    while os.getppid() == parent:
        time.sleep(_LOOK_AGAIN_S)
    os._exit(1)
