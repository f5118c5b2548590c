"""What a job waits for, in words: one text for each cause, none for a job that works."""

from __future__ import annotations

from typing import Any

import pytest

from muniment.rules.hosts.job_waits import HostWait, JobWaits, waits_in_words

NOON = 1_795_694_400_000
BACK_OFF, ASKED = HostWait("timeout: no answer", 2, NOON + 240_000), HostWait("503 with Retry-After", 1, NOON)


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({}, ""),
        ({"queued": 5, "in_flight": 2}, ""),
        ({"queued": 5, "in_flight": 2, "gap_ms": 9000, "every": 1}, ""),
        ({"in_flight": 1, "hooks": 2}, ""),
        ({"queued": 5}, ""),
        ({"queued": 5, "gap_ms": 300_000}, "it waits for the delay: a host is asked every 300 s"),
        ({"queued": 5, "gap_ms": 1_500}, "it waits for the delay: a host is asked every 1.5 s"),
        (
            {"queued": 5, "hosts": [BACK_OFF, HostWait("refused: x", 1, NOON + 9000)], "every": 5},
            "3 of 5 hosts in back-off until 12:00:09 UTC (refused: x)",
        ),
        (
            {"queued": 5, "in_flight": 1, "hosts": [BACK_OFF, ASKED], "every": 5},
            "2 of 5 hosts in back-off until 12:04:00 UTC (timeout: no answer), "
            "1 of 5 hosts left alone until 12:00:00 UTC (503 with Retry-After)",
        ),
        ({"hooks": 1}, "it waits for the hooks of 1 page"),
        ({"hooks": 7}, "it waits for the hooks of 7 pages"),
        ({"queued": 1, "hooks": 7}, ""),
        ({"run": "disk", "queued": 5}, "it waits for disk space: less than --min-free is left"),
        ({"run": "network"}, "it waits for the network: no host can be reached"),
        ({"run": "operator"}, "paused by an operator"),
        ({"run": "a later round for 3 pages until 12:30:00"}, "it waits: a later round for 3 pages until 12:30:00"),
    ],
)
def test_words(facts: dict[str, Any], words: str) -> None:
    assert waits_in_words(JobWaits(**{"queued": 0, "in_flight": 0, **facts})) == words
