"""The names of WARC files: which are taken, and which is next (decision 0163). Only the orchestrator has them."""

from __future__ import annotations

import heapq
import os
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from muniment.archive.index.journal import PARTS, journal_path
from muniment.archive.names import OPEN_SUFFIX, named, parted

__all__ = ["FileNames"]


class FileNames:
    """Gives out the names of a directory's files, each once, those of earlier prefixes included."""

    def __init__(self, out: Path, prefix: str) -> None:
        self._out, self._prefix = out, prefix
        self._taken: defaultdict[str, set[int]] = defaultdict(set)
        self._indexed: frozenset[str] = frozenset()
        self._whole = True
        self._next = 0
        self._free: list[int] = []
        """Numbers of this prefix that may be given out again; the lowest first."""

    def begin(self, indexed: Iterable[str], there: Iterable[str], *, whole: bool = True) -> None:
        """Take as used the files that the index knows, present or not, and others that are present.

        Without the whole index the free numbers are unknown: none is given out again.
        """
        self._indexed, self._whole = frozenset(indexed), whole
        for name in (*self._indexed, *there):
            if (place := parted(name)) is not None:
                self._taken[place[0]].add(place[1])
        own = self._taken[self._prefix]
        self._next = max(own, default=-1) + 1
        self._free = self._free_of(own)

    @property
    def any_taken(self) -> bool:
        """Whether any file is known."""
        return any(self._taken.values())

    def take(self) -> str:
        """The lowest free name; a name of another program's file is not free."""
        while True:
            number = heapq.heappop(self._free) if self._free else self._next
            self._next = max(self._next, number + 1)
            name = named(self._prefix, number)
            if not self._is_there(name):
                self._taken[self._prefix].add(number)
                return name

    def give_back(self, name: str) -> None:
        """A file of this name is gone; the name is free, unless the index has rows of it."""
        place = parted(name)
        if place is None or name in self._indexed:
            return
        self._taken[place[0]].discard(place[1])
        if place[0] == self._prefix:
            heapq.heappush(self._free, place[1])

    def _free_of(self, taken: set[int]) -> list[int]:
        return [number for number in range(max(taken, default=0)) if number not in taken] if self._whole else []

    def sizes(self) -> list[int]:
        """The bytes of each sealed file that is present, of every prefix that a run had."""
        with os.scandir(self._out) as found:
            places = [(entry, parted(entry.name)) for entry in found]
            return [entry.stat().st_size for entry, place in places if place is not None and place[0] in self._taken]

    def _is_there(self, name: str) -> bool:
        paths = self._out / name, self._out / (name + OPEN_SUFFIX), journal_path(self._out / PARTS, name)
        return any(map(os.path.lexists, paths))
