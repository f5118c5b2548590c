"""The crawl of a real documentation tree, made once for all tests that look at it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from crawled import Crawled, run_muniment

from muniment.testing.nginx import Nginx


@pytest.fixture(scope="package")
def docs(python_docs: Path, tmp_path_factory: pytest.TempPathFactory) -> Crawled:
    """The Python documentation, crawled from its start page requisites and all."""
    cwd = tmp_path_factory.mktemp("docs")
    with Nginx(python_docs) as site:
        run_muniment(cwd, "crawl", site.url, "--no-offsite-links", "--no-robots", "--no-sitemaps", "--quiet")
        return Crawled(cwd, site.url, python_docs)


@pytest.fixture(scope="session")
def run_tool() -> Callable[..., subprocess.CompletedProcess[str]]:
    """`run_tool("warcio", "check", path)` runs a program of the tests' environment."""

    def run(name: str, *arguments: object) -> subprocess.CompletedProcess[str]:
        command = [str(Path(sys.executable).with_name(name)), *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)

    return run
