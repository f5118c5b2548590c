"""`book` → the book of this process over a store of its own; nothing that a test launched outlives it.

`server` → a fork server. `kept_by` → what a module launches is kept by a shim with an interpreter of its own, then by
one of a fork server.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from muniment.procs.children.fork_server import ForkServer
from muniment.procs.children.run import launch
from muniment.procs.platform.identity import send
from muniment.procs.registry import ProcessRegistry
from muniment.tracker.processes.sqlite import open_processes
from process_harness import everyone_of, opened


@pytest.fixture
def book(tmp_path: Path) -> Iterator[ProcessRegistry]:
    home = tmp_path / "home"
    made = ProcessRegistry(open_processes(home), home, "cli", "test")
    yield made
    made.leave(0)
    with opened(home) as store:
        for seen in everyone_of(store):
            send(seen.pid, seen.start_ticks, 9)  # type: ignore[arg-type]


@pytest.fixture(params=["own interpreter", "fork server"])
def kept_by(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, server: ForkServer) -> None:
    if request.param == "fork server":
        monkeypatch.setattr(request.module, "launch", partial(launch, server=server))


@pytest.fixture
def server() -> Iterator[ForkServer]:
    made = ForkServer()
    yield made
    made.close()
