"""How far a log is trimmed: by who reads it, and never beyond what may stay."""

from __future__ import annotations

from muniment.live.log_trimming import MOST_ENTRIES, trimmed_to

ALL = frozenset({"analyzer", "broadcaster", "trimmer"})
ALONE = frozenset({"trimmer"})


def test_who_reads_alone_keeps_so_many_entries() -> None:
    assert trimmed_to(25_000, 0, 0, 10_000, ALL) == 15_000


def test_few_entries_stay_until_there_are_more() -> None:
    assert trimmed_to(10_499, 0, 0, 10_000, ALL) == 0
    assert trimmed_to(10_500, 0, 0, 10_000, ALL) == 500
    assert trimmed_to(12, 10, 0, 1, ALL) == 11


def test_what_others_have_not_read_stays() -> None:
    assert trimmed_to(25_000, 0, 3_000, 10_000, ALONE) == 3_000
    assert trimmed_to(25_000, 0, 24_000, 10_000, ALONE) == 15_000


def test_there_are_never_more_than_the_maximum() -> None:
    assert trimmed_to(MOST_ENTRIES + 5_000, 0, 0, 10_000, ALONE) == 5_000
    assert trimmed_to(MOST_ENTRIES + 5_000, 0, 0, 10_000, frozenset()) == 5_000
