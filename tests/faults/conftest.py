"""A site that takes a few seconds to crawl, so that there is time to break things."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.maze import Maze, write_maze


@pytest.fixture
def maze(tmp_path: Path, nginx) -> Maze:
    root = tmp_path / "maze"
    root.mkdir()
    paths = write_maze(root)
    server = nginx(root, server="limit_rate 150k;")
    urls = frozenset(server.url + path for path in paths if path != "index.html")
    return Maze(server, server.url, urls | {server.url})
