"""A server for the tests of a module."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.api_server import ApiServer
from tests.support.postgres import Postgres

from muniment.model.place import TrackerPlace


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """A server of an empty SQLite tracker."""
    directory: Path = tmp_path_factory.mktemp("tracker")
    with ApiServer(TrackerPlace(directory)).make_tokens() as running:
        yield running


@pytest.fixture(scope="module")
def database(postgres: Postgres) -> str:
    """The URL of an empty database."""
    return postgres.create(f"web_{uuid.uuid4().hex}")


@pytest.fixture(scope="module")
def on_postgresql(tmp_path_factory: pytest.TempPathFactory, database: str) -> Iterator[ApiServer]:
    """A server of an empty database."""
    with ApiServer(TrackerPlace(tmp_path_factory.mktemp("server"), database)).make_tokens() as running:
        yield running
