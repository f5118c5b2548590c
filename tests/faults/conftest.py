"""A site that takes a few seconds to crawl, so that there is time to break things."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from tests.support.maze import Maze, write_maze

from forked import ForkedWithChildren


@pytest.fixture
def launch() -> type[subprocess.Popen[str]]:
    """What befalls a command here has nothing to do with how Python starts."""
    return ForkedWithChildren


@pytest.fixture
def maze(tmp_path: Path, nginx) -> Maze:
    root = tmp_path / "maze"
    root.mkdir()
    paths = write_maze(root)
    server = nginx(root, server="limit_rate 150k;")
    urls = frozenset(server.url + path for path in paths if path != "index.html")
    return Maze(server, server.url, urls | {server.url})
