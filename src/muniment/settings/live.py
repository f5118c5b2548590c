"""The words of the options of the live plane."""

from __future__ import annotations

from muniment.errors import UsageError

__all__ = ["ROLES", "parse_roles"]

ROLES = ("analyzer", "broadcaster", "trimmer", "reaper", "taker")
"""What a process may do in the live plane."""


def parse_roles(text: str) -> frozenset[str]:
    """Roles in the live plane, by a comma between two; raises UsageError for another word."""
    words = [word.strip() for word in text.split(",")]
    if unknown := [word for word in words if word not in {*ROLES, "all"}]:
        raise UsageError(f"--redis-roles: {unknown[0]!r} is not a role; these are: {', '.join(ROLES)}, all")
    return frozenset(ROLES if "all" in words else words)
