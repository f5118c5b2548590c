"""A server for the tests of a module."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.api_server import ApiServer

from muniment.model.place import TrackerPlace


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """A server of an empty SQLite tracker."""
    directory: Path = tmp_path_factory.mktemp("tracker")
    with ApiServer(TrackerPlace(directory)).make_tokens() as running:
        yield running
