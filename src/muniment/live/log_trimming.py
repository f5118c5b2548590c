"""How far the log of a job is trimmed in Redis."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

__all__ = ["MOST_ENTRIES", "cuts", "trimmed_to"]

MOST_ENTRIES = 100_000
"""Of a job in Redis, however far others are behind."""
_TRIM_BY = 500
"""Entries that are taken out at once, so that not every batch has a command for it."""


def cuts(roles: AbstractSet[str]) -> bool:
    """Whether a process with these roles cuts the log without a look at what others have read."""
    return {"analyzer", "broadcaster", "trimmer"} <= roles


def trimmed_to(score: int, trimmed: int, read: int, keep: int, roles: AbstractSet[str]) -> int:
    """The last score that is to leave, of a log that goes to `score` and is trimmed to `trimmed`.

    Others have read it to `read`; a trimmer keeps `keep` entries. It stays where it is when few would leave.
    """
    most = MOST_ENTRIES
    if "trimmer" in roles:
        most = keep if cuts(roles) else max(keep, score - read)
    to = score - min(most, MOST_ENTRIES)
    return to if to - trimmed >= max(1, min(_TRIM_BY, keep)) else trimmed
