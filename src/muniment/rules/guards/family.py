"""Families: the pages of a host whose addresses have one shape, and when they are set aside as a trap.

A page is barren when it has nothing that its host did not show before. What is set aside is not asked for, but for a
sample, by which it is released when it was wrongly taken for a trap.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

__all__ = ["BARREN", "BARREN_LOOPS", "DUPLICATES", "LOOPS", "TRAP", "TRAPS", "Family", "Guard", "sample_due"]

Guard = Literal["", "barren", "loops", "duplicates"]
BARREN: Guard = "barren"
LOOPS: Guard = "loops"
DUPLICATES: Guard = "duplicates"
TRAPS = "trap"
"""The name of the ignore set that shows what is set aside."""
TRAP = "trap: "
"""How the reason of a page begins that is set aside."""
BARREN_LOOPS = 5
"""Barren pages in a row until a family of loops is set aside."""
_SAMPLE_OF, _EVEN_SAMPLES = 50, 10
_MOST_RELEASES = 10
_RECENT = 3


class Family(Struct):
    """What is known of a family; it changes as its pages are fetched."""

    shape: str
    guard: Guard
    """The one that watches it."""
    asked: int = 0
    """Pages that were fetched since one was barren."""
    barren: int = 0
    """Of them, those since the last one that was not."""
    skipped: int = 0
    """Pages that were set aside."""
    sampled: int = 0
    """Pages that were asked for although their family is set aside."""
    since: int = 0
    """Unix ms when it was set aside; 0 while it is not."""
    until_id: int = 0
    """The highest number of a page when it was set aside: later ones were judged when they were found."""
    releases: int = 0
    patience: int = 1
    """By how much its budget grew, because what it led to was not barren."""
    led: int = 0
    """Pages found first through its pages that were not barren."""
    freed: bool = False
    """An operator let it go on for good."""
    recent: tuple[int, ...] = ()
    """The numbers of the last barren pages."""

    @property
    def reason(self) -> str:
        """Why its pages are skipped."""
        return f"{TRAP}{self.guard}: {self.shape}"

    def add(self, page_id: int, *, barren: bool) -> None:
        """Count a page that was fetched."""
        self.asked += 1
        if not barren:
            self.barren = 0
            return
        self.barren += 1
        self.recent = (*self.recent, page_id)[-_RECENT:]

    def is_spent(self, budget: int) -> bool:
        """Whether it is to be set aside: it had so many barren pages in a row."""
        least = BARREN_LOOPS if self.guard == LOOPS else budget
        may = not (self.since or self.freed) and self.releases < _MOST_RELEASES
        return may and self.barren >= least * self.patience

    def set_aside(self, now: int, last_id: int) -> None:
        """Ask for its pages no more, but for samples."""
        self.since, self.until_id, self.skipped, self.sampled = now, last_id, 0, 0

    def skip(self) -> bool:
        """Count one more page that is not to be asked for; whether it is a sample, which is."""
        self.skipped += 1
        if self.skipped < sample_due(self.sampled + 1):
            return False
        self.skipped -= 1
        self.sampled += 1
        return True

    def release(self, *, leads: bool = False, for_good: bool = False) -> None:
        """Let it go on; `leads`: because of what it led to, which takes longer to show the next time."""
        self.since = self.skipped = self.sampled = self.barren = 0
        self.releases += 1
        self.patience *= 2 if leads else 1
        self.freed = self.freed or for_good


def sample_due(number: int) -> int:
    """How many pages are set aside before a sample with this number, from 1.

    They are one in fifty; after ten barren ones they become rarer, so that no trap keeps a crawl from its end.
    """
    if number <= _EVEN_SAMPLES:
        return _SAMPLE_OF * number
    return _SAMPLE_OF * (_EVEN_SAMPLES + (1 << (number - _EVEN_SAMPLES + 1)) - 2)
