"""A command that is spoken to over two pipes, its descriptors 3 and 4, and ends with this process."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from muniment.model.process import ProcessEnding
from muniment.procs.children.child import Child
from muniment.procs.children.launch import spawn
from muniment.procs.platform.linux import everyone, proportional_memory
from muniment.procs.registry import ProcessEntry, ProcessPlan, ProcessRegistry

__all__ = ["PipedChild", "launch_piped"]

# It becomes the command itself: its number stays, and the kernel ends it with us.
_BECOME = """
import ctypes, fcntl, os, sys
ctypes.CDLL(None).prctl(1, 9, 0, 0, 0)
if os.getppid() != int(sys.argv[1]):
    os._exit(1)
reading, writing = (fcntl.fcntl(int(number), fcntl.F_DUPFD, 10) for number in sys.argv[2:4])
os.dup2(reading, 3)
os.dup2(writing, 4)
os.execv(sys.argv[4], sys.argv[4:])
"""


class PipedChild:
    """Such a command, with what it has started: all of it is one session."""

    def __init__(self, child: Child, entry: ProcessEntry) -> None:
        self._child, self._entry = child, entry

    async def ended(self) -> int | None:
        """Wait for its end; the exit code."""
        code = await self._child.wait_async()
        self._end_session()
        return code

    def kill(self) -> None:
        """End it with all its processes, at once."""
        self._end_session()

    def _end_session(self) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._child.pid, signal.SIGKILL)

    def memory(self, allowed: int) -> int:
        """Bytes that it takes with all its processes, what they share counted once, where that may be over `allowed`.

        Below, it is what they take each: to count pages that are shared costs the kernel much.
        """
        ours = {pid: seen.rss or 0 for pid, seen in everyone().items() if seen.session == self._child.pid}
        alone = sum(ours.values())
        return alone if alone <= allowed else sum(map(proportional_memory, ours))

    @property
    def last_words(self) -> str:
        """The last line that it wrote, once it has ended."""
        lines = (self._entry.stderr.tail or self._entry.stderr.head).strip().splitlines()
        return lines[-1].strip() if lines else ""


def launch_piped(
    registry: ProcessRegistry, label: str, command: Sequence[str], home: Path, reading: int, writing: int
) -> PipedChild:
    """Start a command that reads and writes these descriptors as its 3 and 4, with `home` for its own files.

    Raises OSError.
    """
    plan = ProcessPlan(
        process_type="binary", label=label, command=tuple(command), pwd=str(home), environment=(("HOME", str(home)),)
    )
    entry = registry.enter(plan)
    become = (sys.executable, "-I", "-S", "-c", _BECOME, str(os.getpid()), str(reading), str(writing), *command)

    def ended(ending: ProcessEnding) -> None:
        entry.ended(ending)

    spawned = spawn(become, plan, entry, (reading, writing))
    entry.started(spawned.pid)
    return PipedChild(Child(spawned, ended), entry)
