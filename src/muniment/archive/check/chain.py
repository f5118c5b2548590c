"""The ranges of one file in their order: each counts from where the one before it was found to end.

A border is a place where a record seems to begin. Within a stored member there may be such places, too, when it holds
another WARC as it is: what was read from there is dropped, and the file is read on from where that member ends. So each
byte is read twice at most, and what comes out is what a reading in one piece gives.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Iterator
from pathlib import Path

from msgspec import structs

from muniment.archive.check.range_checker import FileRange, RangeReport
from muniment.archive.warc.inflate import next_record

__all__ = ["Chain"]


class Chain:
    """One file on its way through the check, in ranges of about `size` bytes; `whole` is all of it."""

    def __init__(self, whole: FileRange, size: int) -> None:
        self.again: FileRange | None = None
        """A range to read before all else: none that was handed out begins where it does."""
        self._whole, self._size = whole, size
        self._at = self._divided = whole.start
        """Up to here the file is taken in, and divided."""
        self._begun: list[int] = []
        self._waiting: dict[int, RangeReport] = {}

    @property
    def done(self) -> bool:
        """All of the file is taken in."""
        return self._at >= self._whole.end

    @property
    def waiting(self) -> int:
        """The number of ranges that are read and wait for one before them."""
        return len(self._waiting)

    def ranges(self) -> Iterator[FileRange]:
        """The file divided, as far as it is not taken in already."""
        limit = self._whole.end
        while (start := self._divided) < limit:
            wanted = start + self._size
            self._divided = next_record(Path(self._whole.path), wanted, limit) if wanted < limit else limit
            yield self._between(start, self._divided)

    def take(self, file_range: FileRange, read: RangeReport) -> Iterator[tuple[int, RangeReport]]:
        """With one more range read, what can be taken in by now, in order: each with where it begins."""
        if file_range.start >= self._at:
            self._waiting[file_range.start] = read
        while (found := self._waiting.pop(self._at, None)) is not None:
            start, self._at = self._at, found.end
            self._go_on()
            yield start, found

    def _go_on(self) -> None:
        """Drop what began within the last member, and see to it that somebody reads what follows."""
        del self._begun[: bisect_right(self._begun, self._at - 1)]
        for start in [start for start in self._waiting if start < self._at]:
            del self._waiting[start]
        if self._at >= self._divided:
            self._divided = self._at
        elif self._at not in self._begun[:1]:
            self.again = self._between(self._at, self._begun[0] if self._begun else self._divided)

    def _between(self, start: int, end: int) -> FileRange:
        insort(self._begun, start)
        return structs.replace(self._whole, start=start, end=end)
