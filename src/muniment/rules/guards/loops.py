"""Loops: addresses that repeat themselves, as relative links make them that a server answers wherever they lead."""

from __future__ import annotations

import re
from collections import Counter

__all__ = ["is_loop"]

_MOST_SEGMENTS, _MOST_ALIKE, _IN_A_ROW = 20, 3, 3
_PARTS = re.compile(r"[&;]")


def is_loop(url: str) -> bool:
    """Whether a normalised URL has more than 20 segments, three equal groups in a row, or one thing four times.

    That thing is a segment, or a parameter with its value.
    """
    path, _, query = url.partition("#")[0].partition("?")
    if path.count("/") > _MOST_SEGMENTS + 3:
        return True
    segments = [one for one in path.split("/")[3:] if one]
    if len(segments) > _MOST_SEGMENTS:
        return True
    if len(set(segments)) < len(segments) and (_most(segments) > _MOST_ALIKE or _repeats(segments)):
        return True
    return "=" in query and _most([one for one in _PARTS.split(query, 1000) if "=" in one]) > _MOST_ALIKE


def _most(parts: list[str]) -> int:
    return max(Counter(parts).values(), default=0)


def _repeats(segments: list[str]) -> bool:
    """Whether a group of segments comes three times in a row."""
    for size in range(1, len(segments) // _IN_A_ROW + 1):
        for at in range(len(segments) - size * _IN_A_ROW + 1):
            group = segments[at : at + size]
            if all(segments[at + size * n : at + size * (n + 1)] == group for n in range(1, _IN_A_ROW)):
                return True
    return False
