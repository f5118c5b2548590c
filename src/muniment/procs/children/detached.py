"""A command of ours that goes on by itself: in a session of its own, with a row of its own, below nothing."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence

from muniment.clock import monotonic
from muniment.errors import UsageError
from muniment.model.failure import advice
from muniment.procs.registry import environment_alone

__all__ = ["start_detached"]

_LOOK_S = 0.05
_MOST_TOLD = 2_000
_left: list[subprocess.Popen[bytes]] = []
"""Those that were started, until they are reaped."""


def start_detached(
    arguments: Sequence[str], *, begun: Callable[[], bool], patience_s: float, directory: str | None = None
) -> None:
    """Start `muniment ARGUMENTS` and wait until it has `begun`, or that long. Raises UsageError with its own words."""
    for one in [one for one in _left if one.poll() is not None]:
        _left.remove(one)
    with tempfile.TemporaryFile() as complaints:
        try:
            started = subprocess.Popen(
                [sys.executable, "-m", "muniment", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=complaints,
                env=environment_alone(),
                cwd=directory,
                start_new_session=True,
            )
        except OSError as error:
            raise UsageError(f"no crawl can be started: {error.strerror}{advice(error.errno)}") from None
        except ValueError:
            raise UsageError("no crawl can be started: its note or an option contains a NUL") from None
        _left.append(started)
        until = monotonic() + patience_s
        while monotonic() < until and not begun():
            code = started.poll()
            if code is not None:
                complaints.seek(0)
                said = complaints.read(_MOST_TOLD).decode("utf-8", "replace").strip().rpartition("\n")[2]
                if code and not begun():
                    raise UsageError(said.removeprefix("muniment: ") or f"the crawl ended with exit code {code}")
                return
            time.sleep(_LOOK_S)
