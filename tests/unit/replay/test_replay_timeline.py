"""The timeline: each capture, or groups of them by calendar, told by status."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from muniment.replay.captures.catalog import Entry
from muniment.replay.captures.url_keys import micros_of
from muniment.replay.timeline import ticks_of

URL = "http://a.test/"


def captures(*given: tuple[str, int]) -> list[Entry]:
    return [Entry(url=URL, at=micros_of(time) or 0, status=status) for time, status in given]


def labels(found: Sequence[Entry]) -> list[str]:
    return [tick.label for tick in ticks_of(found, found[0])]


@pytest.mark.parametrize(
    ("times", "told"),
    [
        (["2024", "2025"], ["2024-01-01", "2025-01-01"]),
        (["20240102", "2024010203"], ["00:00", "03:00"]),
        (["20240102", "2024010203", "2025"], ["2024-01-02 00:00", "2024-01-02 03:00", "2025-01-01 00:00"]),
        (["20240102030405", "20240102030407"], ["03:04:05", "03:04:07"]),
        (["20240102030405000001", "20240102030405000002"], ["03:04:05.000001", "03:04:05.000002"]),
        (["20240102030405", "20240102030405"], ["03:04:05.000000", "03:04:05.000000"]),
    ],
)
def test_few_captures_have_a_label_each(times: list[str], told: list[str]) -> None:
    assert labels(captures(*((time, 200) for time in times))) == told


@pytest.mark.parametrize(
    ("times", "first", "count"),
    [
        ([f"20240102{hour:02d}{minute:02d}" for hour in range(3) for minute in range(60)], "00h", 3),
        ([f"2024{month:02d}{day:02d}" for month in range(1, 13) for day in range(1, 28)], "2024-01", 12),
        ([f"{year}{month:02d}" for year in range(2000, 2020) for month in range(1, 13)], "2000", 20),
        ([str(year) for year in range(1990, 2026)], "1990s", 4),
        ([f"2024010203{minute:02d}00{n:06d}" for minute in range(20) for n in range(500)], "03:00", 20),
    ],
)
def test_many_captures_are_in_groups_by_calendar(times: list[str], first: str, count: int) -> None:
    found = captures(*((time, 200) for time in times))
    ticks = ticks_of(found, found[-1])
    assert (ticks[0].label, len(ticks)) == (first, count)
    assert [tick.current for tick in ticks] == [False] * (count - 1) + [True]
    assert sum(tick.captures for tick in ticks) == len(times)


def test_each_is_told_by_its_status() -> None:
    few = [*captures(("2024", 200), ("2025", 404)), Entry(url=URL, at=micros_of("2026") or 0, whole=False)]
    assert [tick.told for tick in ticks_of(few, few[0])] == ["200", "404", "200 incomplete"]
    lost = Entry(url=URL, at=0, status=0, record_type="revisit")
    assert [tick.told for tick in ticks_of([lost], lost)] == ["revisit"]
    many = captures(*((f"202401{1 + n // 10:02d}0{n % 10}", (200, 503, 404, 301, 200)[n % 5]) for n in range(30)))
    groups = ticks_of(many, many[0])
    assert [tick.label for tick in groups] == ["2024-01-01", "2024-01-02", "2024-01-03"]
    assert (groups[0].told, groups[0].statuses) == ("4 × 200, 2 × 503, 2 × 404 …", ("200", "503", "404", "301"))
