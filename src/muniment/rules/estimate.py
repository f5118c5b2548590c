"""Estimate: how long a job still takes, by how fast its pages ended in the last minutes. All functions are pure."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from msgspec import Struct

__all__ = ["MARK_EVERY_S", "WINDOW_S", "Milestone", "time_left"]

WINDOW_S = 180.0
"""How far back marks are looked at."""
MARK_EVERY_S = 1.0
_LEAST_S = 10.0
"""A shorter time says nothing of the next."""
_GROWTH_S = 20.0
"""How far back the queue is compared: of one page that led to thousands, the rest of the window would say it grows."""


class Milestone(Struct, frozen=True):
    """A job at one moment."""

    at_s: float
    ended: int
    """Pages that this run has done with, captured or not."""
    queued: int


def time_left(to_do: int, marks: Sequence[Milestone], last_wait_s: float) -> float | None:
    """Seconds until `to_do` pages have ended, as long as the last wait that is known at least.

    None while there is no rate; infinite while more pages come in than end.
    """
    if not to_do or len(marks) < 2:
        return None
    first, last = marks[0], marks[-1]
    span, ended = last.at_s - first.at_s, last.ended - first.ended
    if span < _LEAST_S or ended <= 0:
        return None
    lately = next(mark for mark in marks if last.at_s - mark.at_s <= _GROWTH_S)
    if last.queued > lately.queued:
        return inf
    return max(to_do * span / ended, last_wait_s)
