"""The watchdog of a process that launches others: it runs a command if the process ends without disarming it.

A shell waits at the end of a pipe that only this process writes to: the smallest program that every machine has. It is
not a child of this process, so that ending this process with its children does not end it.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress

__all__ = ["Watchdog"]

# a shell gives what it runs beside itself nothing to read, unless that has another number meanwhile
_WAIT = 'exec 3<&0; { read -r over <&3 || exec "$@" 3<&-; } &'


class Watchdog:
    """A command that is run if this process ends before it revokes it; not run where there is no shell."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        end, self._writer = os.pipe()
        try:
            subprocess.run(
                ["/bin/sh", "-c", _WAIT, "sh", *command],
                cwd="/",
                env=environment,
                stdin=end,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                check=False,
            )
        except OSError:
            pass  # the next command of ours does its work
        finally:
            os.close(end)

    def revoke(self) -> None:
        """Disarm it: the process ends in good order."""
        with suppress(OSError):
            os.write(self._writer, b"over\n")
        os.close(self._writer)
