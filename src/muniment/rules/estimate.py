"""Estimate: how long a job still takes, by how fast its pages ended in the last minutes. All functions are pure."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from msgspec import Struct

__all__ = ["MARK_EVERY_S", "WINDOW_S", "Milestone", "growth", "time_left"]

WINDOW_S = 180.0
"""How far back marks are looked at."""
MARK_EVERY_S = 1.0
_LEAST_S = 10.0
"""A shorter time says nothing of the next."""
_GROWTH_S = 60.0
"""How far back pages that were found are compared with those that ended."""
_FEW_FOUND = 0.8
"""With fewer pages found for each that ended, the queue will be empty at some time."""


class Milestone(Struct, frozen=True):
    """A job at one moment."""

    at_s: float
    ended: int
    """Pages that this run has done with, captured or not."""
    queued: int


def growth(marks: Sequence[Milestone]) -> int | None:
    """By how many pages the queue grew a minute in the last one; None while few pages were found for those that ended.

    None as well while too little time has passed.
    """
    if not marks:
        return None
    last = marks[-1]
    first = next(mark for mark in marks if last.at_s - mark.at_s <= _GROWTH_S)
    span, ended, more = last.at_s - first.at_s, last.ended - first.ended, last.queued - first.queued
    if span < _LEAST_S or more + ended < _FEW_FOUND * ended or more + ended <= 0:
        return None
    return max(0, round(more * 60 / span))


def time_left(to_do: int, marks: Sequence[Milestone], last_wait_s: float) -> float | None:
    """Seconds until `to_do` pages have ended, as long as the last wait that is known at least.

    None while there is no rate; infinite while about as many pages come in as end.
    """
    if not to_do or len(marks) < 2:
        return None
    first, last = marks[0], marks[-1]
    span, ended = last.at_s - first.at_s, last.ended - first.ended
    if span < _LEAST_S or ended <= 0:
        return None
    if growth(marks) is not None:
        return inf
    return max(to_do * span / ended, last_wait_s)
