"""Leftover indexes are joined: those of jobs that a pipeline left before they ended, and of those left by a kill."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from pathlib import Path

from muniment.app.pipeline.home import PipelineHome
from muniment.archive.index.journal import PARTS
from muniment.archive.recovery.cut import repair
from muniment.clock import monotonic
from muniment.errors import MunimentError
from muniment.procs.children.launch import Indexer
from muniment.procs.lock import lock_directory
from muniment.procs.registry import ProcessRegistry

__all__ = ["LeftJobs", "join_rest"]

_log = logging.getLogger(__name__)
_FIRST_S, _LONGEST_S = 2.0, 300.0
"""Between two questions about a job: twice as long each time."""


class LeftJobs:
    """The jobs that a pipeline has left before they ended: each gets its whole index soon after its end."""

    def __init__(
        self,
        home: PipelineHome,
        registry: ProcessRegistry,
        at_work: Callable[[], set[int]],
        has_ended: Callable[[int], Awaitable[bool]],
    ) -> None:
        """`at_work` names the jobs of this moment; `has_ended` asks the server, and may raise MunimentError."""
        self._home, self._registry, self._at_work, self._has_ended = home, registry, at_work, has_ended
        self._due: dict[int, float] = {}
        self._wait_s: dict[int, float] = {}
        self._joining = asyncio.Lock()

    async def run(self) -> None:
        """Look after them until it is cancelled."""
        while True:
            await asyncio.sleep(_FIRST_S)
            await self._look()

    async def rest(self) -> None:
        """Wait until no index is being joined."""
        async with self._joining:
            return

    async def _look(self) -> None:
        for out in self._home.unjoined():
            job = int(out.name)
            if job in self._at_work():
                self._due.pop(job, None)
                self._wait_s.pop(job, None)
            elif monotonic() >= self._due.get(job, 0.0):
                self._wait_s[job] = min(2 * self._wait_s.get(job, _FIRST_S / 2), _LONGEST_S)
                self._due[job] = monotonic() + self._wait_s[job]
                await self._join_if_ended(job, out)

    async def _join_if_ended(self, job: int, out: Path) -> None:
        with suppress(MunimentError):
            if not await self._has_ended(job):
                return
            async with self._joining:
                if job not in self._at_work():
                    await join_rest([out], self._registry)


async def join_rest(directories: Iterable[Path], registry: ProcessRegistry) -> None:
    """Seal and index what is left in some output directories; what fails is said, and left to the next time."""
    for out in directories:
        try:
            await _join(out, registry)
        except MunimentError as error:
            _log.warning("%s: the index is not whole: %s", out, error)


async def _join(out: Path, registry: ProcessRegistry) -> None:
    locks = await asyncio.to_thread(lock_directory, out)
    try:
        repair(out, out / PARTS)
        indexer = await Indexer.start(locks, out, "", registry)
        await indexer.walked()
        await indexer.done()
    finally:
        for lock in locks:
            os.close(lock)
