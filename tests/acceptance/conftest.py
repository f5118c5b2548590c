"""Programs that look at archives."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from forked import ForkedWithChildren


@pytest.fixture
def launch() -> type[subprocess.Popen[str]]:
    """Nearly all tests here are about what a command does, and not about how Python starts."""
    return ForkedWithChildren


@pytest.fixture(scope="session")
def run_tool() -> Callable[..., subprocess.CompletedProcess[str]]:
    """`run_tool("warcio", "check", path)` runs a program of the tests' environment."""

    def run(name: str, *arguments: object) -> subprocess.CompletedProcess[str]:
        command = [str(Path(sys.executable).with_name(name)), *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)

    return run
