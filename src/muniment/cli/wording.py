"""Words for numbers, for commands that have nothing else to display and begin at once."""

from __future__ import annotations

__all__ = ["counted"]


def counted(number: int, what: str) -> str:
    """So many of something: `1 page`, `1,200 pages`."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"
