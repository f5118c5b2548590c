"""The live plane in the environment, and the words of its options."""

from __future__ import annotations

import os

from muniment.errors import UsageError

__all__ = ["ROLES", "parse_roles", "redis_given", "redis_password_given"]

ROLES = ("analyzer", "broadcaster", "trimmer", "reaper", "taker")
"""What a process may do in the live plane."""


def parse_roles(text: str) -> frozenset[str]:
    """Roles in the live plane, by a comma between two; raises UsageError for another word."""
    words = [word.strip() for word in text.split(",")]
    if unknown := [word for word in words if word not in {*ROLES, "all"}]:
        raise UsageError(f"--redis-roles: {unknown[0]!r} is not a role; these are: {', '.join(ROLES)}, all")
    return frozenset(ROLES if "all" in words else words)


def redis_given() -> str:
    """MUNIMENT_REDIS: the URL of Redis where none is given on the command line; it may have a password."""
    return os.environ.get("MUNIMENT_REDIS", "").strip()


def redis_password_given() -> str:
    """MUNIMENT_REDIS_PASSWORD: the password of Redis."""
    return os.environ.get("MUNIMENT_REDIS_PASSWORD", "")
