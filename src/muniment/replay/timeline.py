"""The timeline of a page: its captures in time, in groups by calendar where they are many."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import groupby

from msgspec import Struct

from muniment.replay.captures.catalog import Entry
from muniment.replay.captures.url_keys import full_stamp

__all__ = ["Tick", "status_of", "ticks_of"]

_MOST = 24
_MOST_STATUSES = 3
_DECADE, _YEAR, _MONTH, _DAY, _HOUR, _MINUTE, _SECOND, _ALL = 3, 4, 6, 8, 10, 12, 14, 20
"""Digits of a stamp that are alike within each unit."""


class Tick(Struct, frozen=True):
    """One capture, or a group of them, which begins with its first."""

    first: Entry
    label: str
    captures: int
    statuses: tuple[str, ...]
    """The most frequent one first."""
    told: str
    """The statuses, with their numbers in a group."""
    current: bool
    """The capture that is shown is in it."""


def ticks_of(captures: Sequence[Entry], shown: Entry) -> list[Tick]:
    """The captures of a page, which are sorted by time, as at most about two dozen ticks."""
    stamps = [full_stamp(one.at) for one in captures]
    if len(captures) <= _MOST:
        digits = next(
            (n for n in (_DAY, _MINUTE, _SECOND, _ALL) if len({one[:n] for one in stamps}) == len(stamps)), _ALL
        )
        groups = [[one] for one in captures]
    else:
        counts = {n: len({one[:n] for one in stamps}) for n in (_DECADE, _YEAR, _MONTH, _DAY, _HOUR, _MINUTE, _SECOND)}
        digits = max(
            (n for n, count in counts.items() if count <= _MOST), key=lambda n: (counts[n], -n), default=_DECADE
        )
        groups = [list(some) for _, some in groupby(captures, lambda one: full_stamp(one.at)[:digits])]
    one_day = len({one[:_DAY] for one in stamps}) == 1
    return [_tick(group, shown, digits, one_day=one_day) for group in groups]


def status_of(entry: Entry) -> str:
    """The status of a capture in words; some records have none."""
    return str(entry.status or entry.record_type)


def _tick(group: Sequence[Entry], shown: Entry, digits: int, *, one_day: bool) -> Tick:
    label = _label(full_stamp(group[0].at), digits, one_day=one_day)
    counts = Counter(map(status_of, group)).most_common()
    told = ", ".join(f"{count} × {status}" for status, count in counts[:_MOST_STATUSES])
    if len(group) == 1:
        told = status_of(group[0]) + ("" if group[0].whole else " incomplete")
    elif len(counts) > _MOST_STATUSES:
        told += " …"
    statuses = tuple(status for status, _ in counts)
    return Tick(group[0], label, len(group), statuses, told, any(map(shown.__eq__, group)))


def _label(stamp: str, digits: int, *, one_day: bool) -> str:
    """The time down to a unit; without its date where that is the same everywhere."""
    if digits == _DECADE:
        return f"{stamp[:_DECADE]}0s"
    date = "-".join(filter(None, (stamp[:4], stamp[4 : min(6, digits)], stamp[6 : min(8, digits)])))
    if digits <= _DAY:
        return date
    clock = ":".join(filter(None, (stamp[8:10], stamp[10 : min(12, digits)], stamp[12 : min(14, digits)])))
    clock += {_HOUR: "h", _ALL: f".{stamp[14:]}"}.get(digits, "")
    return clock if one_day else f"{date} {clock}"
