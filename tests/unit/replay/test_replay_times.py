"""Times in the addresses of a replay."""

from __future__ import annotations

import pytest

from muniment.replay.captures.url_keys import full_stamp, micros_of, stamp

NOON = 1_764_072_000_000_000
"""2025-11-25T12:00:00Z in microseconds."""


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("20251125120000", NOON),
        ("2025112512", NOON),
        ("20251125120000000007", NOON + 7),
        ("202511251200005", NOON + 500_000),
        ("2025-11-25T12:00:00Z", NOON),
        ("202", None),
        ("soon", None),
        ("20251325", None),
    ],
)
def test_a_time_has_up_to_twenty_digits(text: str, at: int | None) -> None:
    assert micros_of(text) == at


def test_a_time_written_is_the_time_read() -> None:
    assert (full_stamp(NOON + 7), stamp(NOON + 7)) == ("20251125120000000007", "20251125120000")
    assert micros_of(full_stamp(NOON + 7)) == NOON + 7
