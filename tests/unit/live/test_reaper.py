"""Point 52: what a check of a job's heartbeat writes."""

from __future__ import annotations

import pytest

from muniment.live.reaper import checked


@pytest.mark.parametrize(
    ("beat", "seen", "timer", "written"),
    [
        (None, None, None, {}),
        (b"banana", b"3", b"1", {}),
        (b"4", None, None, {"last_acknowledged_heartbeat": "4"}),
        (b"5", b"4", b"9", {"last_acknowledged_heartbeat": "5", "death_timer": "0"}),
        (b"4", b"4", None, {"death_timer": "1"}),
        (b"4", b"4", b"9", {"death_timer": "10"}),
        (b"3", b"4", b"\xff", {"death_timer": "1"}),
    ],
)
def test_a_check(beat: bytes | None, seen: bytes | None, timer: bytes | None, written: dict[str, str]) -> None:
    assert checked(beat, seen, timer) == written
