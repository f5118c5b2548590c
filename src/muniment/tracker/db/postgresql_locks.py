"""The numbers of this program's advisory locks on a PostgreSQL server."""

from __future__ import annotations

import hashlib

__all__ = ["LOCKS", "RUNS", "SCHEMA_LOCK", "TURNS", "WRITER_LOCKS", "host_lock", "job_lock"]

LOCKS = 0x4D75 << 48
"""Where the advisory locks of this program begin; after it come the job and which of its locks it is."""
SCHEMA_LOCK = LOCKS
WRITER_LOCKS = LOCKS | 1 << 47
"""After it comes the number of a connection that writes."""
_HOST_LOCKS = 0x4D76 << 48
"""After it comes a hash of a host's name."""
RUNS, TURNS = 0, 1
"""Two locks of each job: of who runs it alone, and of those who write it beside each other."""


def job_lock(job_id: int, which: int) -> int:
    """The lock of a job: `RUNS` or `TURNS`."""
    return LOCKS | job_id << 16 | which


def host_lock(name: str) -> int:
    """The lock of a host, by a hash of its name: two that have the same wait for each other, and no more."""
    hashed = hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=6).digest()
    return _HOST_LOCKS | int.from_bytes(hashed, "big")
