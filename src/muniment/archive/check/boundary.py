"""Where two ranges of a file meet: what the first records behind the seam say of the last ones before it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from muniment.archive.check.ids import CONCURRENT_TO, WARCINFO_ID, IdHeaps

__all__ = ["NEAR", "OTHER_DATE", "Boundary", "EarlyReference", "Near", "date_near"]

NEAR = 8
"""A record mostly names one of so many before it."""
OTHER_DATE = "warc-date differs from that of the record in warc-concurrent-to"

Near = tuple[str, str]
"""The name of a record, and its date."""


class EarlyReference(Struct, frozen=True, array_like=True):
    """A name that a record near the beginning of its range uses; the record with that name may be before the seam."""

    field: int
    name: str
    offset: int
    date: str
    """Of the record that uses the name."""
    before: int
    """The number of records of the range before it."""


def date_near(name: str, near: Sequence[Near]) -> str | None:
    """The date of the last of some records that has this name; None when none has."""
    for other, date in reversed(near):
        if other == name:
            return date
    return None


class Boundary:
    """The end of what was read of a file so far."""

    def __init__(self) -> None:
        self._near: list[Near] = []
        self._warcinfo = ""

    def join(self, early: Sequence[EarlyReference], near: Sequence[Near], warcinfo: str, ids: IdHeaps) -> Iterator[int]:
        """Go on to the end of the next range: the offsets of records that have another date than those they name."""
        for one in early:
            if one.field == WARCINFO_ID:
                known = one.name == self._warcinfo
            else:
                date = date_near(one.name, self._near[one.before - NEAR :])
                known = date is not None
                if known and one.field == CONCURRENT_TO and date != one.date:
                    yield one.offset
            if not known:
                ids.used(one.field, one.name, one.offset)
        self._near = [*self._near, *near][-NEAR:]
        self._warcinfo = warcinfo or self._warcinfo
