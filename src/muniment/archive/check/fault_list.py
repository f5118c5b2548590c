"""The faults of a check: of each file the first ones, and how many more there are."""

from __future__ import annotations

from msgspec import Struct

__all__ = ["Fault", "FaultList"]

_MOST = 1000
"""A file with more is broken as a whole; the rest is counted, not listed."""


class Fault(Struct, frozen=True):
    """One thing that is wrong, and where."""

    file: str
    offset: int
    """Of the gzip member within the file; -1 when the fault has no place in it."""
    code: str
    """docs/check.md lists them."""
    text: str


class FaultList:
    """The faults of one file: the same ones are listed in whatever order they were found."""

    def __init__(self) -> None:
        self._held: list[Fault] = []
        self._more = 0

    def add(self, fault: Fault) -> None:
        """Take one in."""
        self._held.append(fault)
        if len(self._held) > 2 * _MOST:
            self._cut()

    def add_more(self, count: int) -> None:
        """The number of faults after the end of a list that was cut."""
        self._more += count

    def listed(self) -> list[Fault]:
        """The first ones, in order of their places."""
        self._cut()
        return self._held

    def more(self) -> int:
        """The number of faults that are not listed."""
        self._cut()
        return self._more

    def _cut(self) -> None:
        self._held.sort(key=_order)
        self._more += max(len(self._held) - _MOST, 0)
        del self._held[_MOST:]


def _order(fault: Fault) -> tuple[int, str, str]:
    return fault.offset, fault.code, fault.text
