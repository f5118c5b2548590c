"""Quantities for people: counts, sizes, durations."""

from __future__ import annotations

from math import inf

__all__ = ["counted", "duration_text", "size_text", "time_left_text"]


def counted(number: int, what: str) -> str:
    """So many of something: `1 page`, `1,200 pages`."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def size_text(size: float) -> str:
    """Bytes for people: `1.2 MB`, powers of 1000."""
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} TB"


def duration_text(seconds: float) -> str:
    """Seconds for people: `2:05` or `1:02:03`."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def time_left_text(seconds: float | None, growth: int = 0) -> str:
    """The estimated time that a job still takes, for people; empty without an estimate."""
    if seconds is None:
        return ""
    return f"queue growing (+{growth:,} a minute)" if seconds == inf else f"about {duration_text(seconds)} left"
