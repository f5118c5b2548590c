"""`tracker("https://…", level=2)` → a real tracker, closed at the test's end; each test runs on both databases."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from fleet_harness import Fleet
from tests.support.postgres import Postgres
from tracker_harness import Tracker

from muniment.model.place import TrackerPlace


@pytest.fixture(params=["sqlite", "postgresql"])
def new_place(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], TrackerPlace]:
    """Makes places of trackers. On PostgreSQL all jobs of all tests lie in one database: they must not meet."""
    if request.param == "postgresql":
        url = request.getfixturevalue("tracker_database")
        return lambda: TrackerPlace(tmp_path, url, secrets.token_hex(16))
    made: list[Path] = []

    def in_a_file() -> TrackerPlace:
        made.append(tmp_path / f"tracker{len(made)}")
        made[-1].mkdir()
        return TrackerPlace(made[-1])

    return in_a_file


@pytest.fixture(scope="session")
def fleet_database(postgres: Postgres) -> str:
    """A database that is emptied for each fleet."""
    return postgres.create("fleets")


@pytest.fixture(params=["sqlite", "postgresql"])
def fleet(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Fleet]:
    """A tracker for many pipelines; each test runs on both databases."""
    database = request.getfixturevalue("fleet_database") if request.param == "postgresql" else ""
    with closing(Fleet(TrackerPlace(tmp_path, database))) as made:
        yield made


@pytest.fixture
def tracker(new_place: Callable[[], TrackerPlace]) -> Iterator[Callable[..., Tracker]]:
    made: list[Tracker] = []

    def make(*urls: str, **settings: object) -> Tracker:
        made.append(Tracker(new_place(), *urls, **settings))
        return made[-1]

    yield make
    for each in made:
        each.close()
