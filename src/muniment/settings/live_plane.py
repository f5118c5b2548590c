"""The words of the options of the live plane."""

from __future__ import annotations

from muniment.errors import UsageError

__all__ = ["LOG_KEEP", "REAP_AFTER_S", "ROLES", "ROLES_HELP", "parse_roles"]

ROLES = ("analyzer", "broadcaster", "trimmer", "reaper", "taker")
"""What a process may do in the live plane."""
ROLES_HELP = f"What this process does there: all, or some of {', '.join(ROLES)}."
"""The help of the option."""
LOG_KEEP = 10_000
"""Entries of a running job's log that stay in Redis."""
REAP_AFTER_S = 7200.0
"""Without a heartbeat for so long, a job has failed."""


def parse_roles(text: str) -> frozenset[str]:
    """Roles in the live plane, by a comma between two; raises UsageError for another word."""
    words = [word.strip() for word in text.split(",")]
    if unknown := [word for word in words if word not in {*ROLES, "all"}]:
        raise UsageError(f"--redis-roles: {unknown[0]!r} is not a role; these are: {', '.join(ROLES)}, all")
    return frozenset(ROLES if "all" in words else words)
