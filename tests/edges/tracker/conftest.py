"""`tracker("https://…", level=2)` → a real tracker, closed at the test's end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tracker_harness import Tracker


@pytest.fixture
def tracker(tmp_path: Path) -> Iterator[Callable[..., Tracker]]:
    made: list[Tracker] = []

    def make(*urls: str, **settings: object) -> Tracker:
        made.append(Tracker(tmp_path / f"tracker{len(made)}.sqlite", *urls, **settings))
        return made[-1]

    yield make
    for each in made:
        each.close()
