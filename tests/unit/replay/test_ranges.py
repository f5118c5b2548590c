"""Ranges and parts of a payload (RFC 9110 §14)."""

from __future__ import annotations

import pytest

from muniment.replay.captures.ranges import BodyPart, ByteRange, kept_part, part_of, run_from, wanted_range


@pytest.mark.parametrize(
    ("text", "start", "stop"),
    [
        ("bytes=0-9", 0, 10), ("bytes=90-", 90, 100), ("bytes=-7", 93, 100), ("Bytes = 0-9", None, None),
        ("BYTES=5-5", 5, 6), ("bytes=5-999", 5, 100), ("bytes=-999", 0, 100), ("bytes=100-", 100, 100),
        ("bytes=-0", 100, 100), ("bytes=9-3", None, None), ("bytes=0-1,5-6", None, None), ("bytes=-", None, None),
        ("lines=0-9", None, None), ("", None, None), ("bytes=\u0661-2", None, None),
    ],
)  # fmt: skip
def test_a_range_is_read(text: str, start: int | None, stop: int | None) -> None:
    found = wanted_range(text, 100)
    assert (found.start, found.stop) == (start, stop) if found else start is None


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("bytes 0-9/100", (0, 10, 100)), ("bytes 5-9/*", (5, 10, None)), ("BYTES 5-9/100", (5, 10, 100)),
        ("bytes 0-99/100", (0, 10, 100)), ("bytes 9-5/100", None), ("bytes */100", None), ("", None),
        ("items 0-9/100", None),
    ],
)  # fmt: skip
def test_a_content_range_is_read_as_far_as_its_bytes_are_there(text: str, part: tuple[int, int, int | None]) -> None:
    found = kept_part(text, "", 10)
    assert (found and (found.start, found.stop, found.total)) == part


@pytest.mark.parametrize(
    ("start", "run"),
    [
        (0, [(0, 0, 20), (2, 20, 30), (1, 30, 40)]), (25, [(2, 25, 30), (1, 30, 40)]), (40, []), (50, [(3, 50, 60)]),
        (60, []),
    ],
)  # fmt: skip
def test_parts_are_joined_as_far_as_they_meet(start: int, run: list[tuple[int, int, int]]) -> None:
    parts = [BodyPart(first, last, 60, "") for first, last in ((0, 20), (28, 40), (15, 30), (50, 60))]
    assert [(number, taken.start, taken.stop) for number, taken in run_from(start, parts)] == run


def test_bytes_of_a_range_are_taken_from_pieces_of_any_size() -> None:
    data = bytes(range(100))
    for size in (1, 7, 100):
        pieces = (data[at : at + size] for at in range(0, 100, size))
        assert b"".join(part_of(pieces, ByteRange(13, 57))) == data[13:57]
