"""Which process is which: what this machine tells of processes, and which of them may be judged from here.

A number alone means nothing, for numbers are used again. With the moment at which it began, as the kernel noted it, and
where the number counts, it is one process for ever, whatever is done to the clock.
"""

from __future__ import annotations

import os
from functools import cache

from muniment.clock import now_ms
from muniment.model.process import Machine, Process, ProcessPlace
from muniment.procs.platform.linux import booted_at, everyone, look, mark_of, place, send, started_at

__all__ = [
    "booted_at",
    "everyone",
    "here",
    "is_own",
    "look",
    "mark_of",
    "send",
    "started_at",
    "this_machine",
    "within_reach",
]


def here() -> ProcessPlace:
    """Where the numbers of processes mean what they mean to this one."""
    return place()


@cache
def this_machine() -> Machine:
    """What there is to know of this machine; nothing but the machine itself is asked."""
    system = os.uname()
    return Machine(
        id=here().machine_id,
        hostname=system.nodename,
        system=f"{system.sysname} {system.release} {system.machine}",
        cpus=os.cpu_count() or 1,
        boot_id=here().boot_id,
        seen_at=now_ms(),
    )


def is_own(row: Process) -> bool:
    """Whether a row is of this user, or this is root: processes of others may be hidden, and their files are closed."""
    return os.geteuid() in (0, row.uid)


def within_reach(row: Process) -> bool:
    """Whether the process of a row, if there is one, can be seen and signalled from here."""
    return row.place == here() and is_own(row)
