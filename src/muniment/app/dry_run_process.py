"""Dry runs of rules in a process of their own: each computes for up to a minute, while its server answers others."""

from __future__ import annotations

import asyncio
import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec import Struct

from muniment.control.fleet.pages import rules_effect
from muniment.errors import TrackerError, UsageError
from muniment.model.network.jobs import RulesCall, RulesEffect
from muniment.model.place import TrackerPlace
from muniment.procs.children.launch import LaunchedWorker, die_with_parent, ending, inherited_channel, launch_worker
from muniment.procs.registry import ProcessRegistry
from muniment.tracker.connect import opened

__all__ = ["DryRunOrder", "DryRuns", "run_dry_run"]


class DryRunOrder(Struct, frozen=True):
    """Which rules are to be tried, and where."""

    directory: str
    database: str
    job_id: int
    call: RulesCall


class DryRuns:
    """Tries rules for a server, one after the other; to be used by the thread of its loop."""

    def __init__(self, place: TrackerPlace, registry: ProcessRegistry) -> None:
        self._place, self._registry = place, registry
        # one thread for all: a child ends with the thread that launched it
        self._turns = ThreadPoolExecutor(1, "muniment-dry-runs")
        self._running: LaunchedWorker | None = None
        self.waiting = 0
        """Those that are asked for and have no answer yet."""

    async def effect(self, job_id: int, call: RulesCall) -> RulesEffect:
        """What rules that make sense would change; raises TrackerError when that cannot be said."""
        order = DryRunOrder(str(self._place.directory), self._place.database, job_id, call)
        self.waiting += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._turns, self._tried, order)
        finally:
            self.waiting -= 1

    def close(self) -> None:
        """End the one that runs, and begin no other."""
        self._turns.shutdown(wait=False, cancel_futures=True)
        if self._running is not None:
            self._running.process.kill()

    def _tried(self, order: DryRunOrder) -> RulesEffect:
        self._running = child = launch_worker(registry=self._registry, label="dry-run", command="dry-run")
        try:
            answer = _asked(child.channel, msgspec.json.encode(order))
        finally:
            code = child.process.wait()
            self._running = None
        if code or not answer:
            raise TrackerError(f"the dry run gave no answer ({ending(code)}); ask again in a moment")
        return msgspec.json.decode(answer, type=RulesEffect)


def _asked(channel: socket.socket, order: bytes) -> bytes:
    """What the process says before it ends; nothing when it ends sooner."""
    with channel, channel.makefile("rb") as answers, suppress(OSError):
        channel.sendall(order)
        channel.shutdown(socket.SHUT_WR)
        return answers.read()
    return b""


def run_dry_run() -> int:
    """Try rules for the server that launched this process; the exit code."""
    channel = inherited_channel()
    if channel is None:
        raise UsageError("`muniment dry-run` is started by `muniment serve`, not by hand")
    die_with_parent()
    with channel, channel.makefile("rwb") as server:
        order = msgspec.json.decode(server.read(), type=DryRunOrder)
        place = TrackerPlace(Path(order.directory), order.database)
        db = opened(place, read_only=True, written=True)
        server.write(msgspec.json.encode(rules_effect(db, order.job_id, order.call)))
        db.close()
    return 0
