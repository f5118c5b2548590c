"""Numbers of the advisory locks that this program takes on PostgreSQL: of the schema, jobs, writers and hosts."""

from __future__ import annotations

import hashlib

from muniment.errors import BusyError, MunimentError, TrackerLostError

__all__ = ["RUNS", "SCHEMA_LOCK", "TURNS", "WRITER_LOCKS", "host_lock", "job_lock", "lock_taken"]

SCHEMA_LOCK = 0x4D75 << 48
"""The lock of the schema; the numbers of jobs and writers begin like it."""
WRITER_LOCKS = SCHEMA_LOCK | 1 << 47
"""The number of a connection that writes is added to it."""
RUNS, TURNS = 0, 1
"""Two locks of each job: of the process that runs it alone, and of those that write it beside each other."""
_HOST_LOCKS = 0x4D76 << 48


def job_lock(job_id: int, which: int) -> int:
    """A lock of a job."""
    return SCHEMA_LOCK | job_id << 16 | which


def host_lock(name: str) -> int:
    """The lock of a host, by a hash of its name."""
    digest = hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=6).digest()
    return _HOST_LOCKS | int.from_bytes(digest, "big")


def lock_taken(lock: int, name: str) -> MunimentError:
    """The error for a lock of a job or a writer that another process has."""
    if lock < WRITER_LOCKS:
        return BusyError(f"another run has this job of {name}; stop it first")
    return TrackerLostError(
        f"the tracker {name} was away, and another process has taken the place of this one; give the same command again"
    )
