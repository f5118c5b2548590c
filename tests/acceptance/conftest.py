"""Programs that look at archives."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.support.chromium import Chromium
from tests.support.dashboard import Dashboard
from tests.support.replay import Replay

from forked import ForkedWithChildren

Dashboard.launch = Replay.launch = ForkedWithChildren


@pytest.fixture
def launch(request: pytest.FixtureRequest) -> type[subprocess.Popen[str]]:
    """Nearly all tests here are about what a command does, not about how Python starts; a module may have LAUNCH."""
    return getattr(request.module, "LAUNCH", ForkedWithChildren)


@pytest.fixture(autouse=True)
def patience(request: pytest.FixtureRequest) -> None:
    """A module whose commands take long has PATIENCE_S."""
    if (seconds := getattr(request.module, "PATIENCE_S", None)) is not None:
        request.getfixturevalue("muniment").patience = seconds


@pytest.fixture(scope="session")
def chromium() -> Iterator[Chromium]:
    """The browser of all tests that only look at pages."""
    with Chromium() as running:
        yield running


@pytest.fixture
def browser(chromium: Chromium) -> Iterator[Chromium]:
    """A browser whose tabs know nothing of other tests; a module that needs other flags has its own."""
    with chromium.fresh() as fresh:
        yield fresh


@pytest.fixture(scope="session")
def run_tool() -> Callable[..., subprocess.CompletedProcess[str]]:
    """`run_tool("warcio", "check", path)` runs a program of the tests' environment."""

    def run(name: str, *arguments: object) -> subprocess.CompletedProcess[str]:
        command = [str(Path(sys.executable).with_name(name)), *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)

    return run
