"""What a shim does where it cannot adopt: it seeks what its command began, by descent, session and a variable."""

from __future__ import annotations

import os
import signal
import subprocess

from muniment.procs.platform.system import RSS_UNIT, everyone, look, mark_of, send
from muniment.procs.tree import related

__all__ = ["Seeker"]


class Seeker:
    """The means of a shim whose command, and all that this begins, have a variable with a value of their own."""

    rss_unit = RSS_UNIT

    def __init__(self, variable: str, value: str) -> None:
        self._variable, self._value = variable, value

    def begin(self, command: list[str], _defaults: list[signal.Signals]) -> int:
        """Start the command in a session of its own; its number. Raises OSError."""
        # what has a handler here is the default there; posix_spawn has no sessions on some systems
        spawned = subprocess.Popen(command, start_new_session=True)
        spawned.returncode = 0  # it is waited for by its number
        return spawned.pid

    def ticks(self, pid: int) -> int:
        """When a process began; 0 when it is not there."""
        seen = look(pid)
        return seen.start_ticks if seen else 0

    def parent(self, pid: int) -> int:
        """The number of a process's parent; 0 when it is not there."""
        seen = look(pid)
        return seen.parent if seen else 0

    def left(self, command: int) -> list[tuple[int, int]]:
        """All that the command began and that is alive, as far as it can be found: number and moment of its start.

        Parents come before their children: a shell whose child is ended first would report an exit code of its own.
        """
        shims = {os.getpid(), os.getppid()}
        living = {pid: seen for pid, seen in everyone().items() if not seen.ended and pid not in shims}
        marked = {pid for pid in living if mark_of(pid, self._variable) == self._value}
        # a command that was never begun has the number 0, from which all descend
        roots = {os.getpid(), *marked, *([command] if command else [])}
        found = [(pid, living[pid].start_ticks) for pid in related(living, roots)]
        return sorted(found, key=lambda one: (one[0] != command, one[1], one[0]))

    def signal(self, pid: int, ticks: int, number: signal.Signals) -> None:
        """Signal a process, unless its number is another's by now."""
        send(pid, ticks, number)
