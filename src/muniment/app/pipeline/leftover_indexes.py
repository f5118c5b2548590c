"""Leftover indexes are joined: those of jobs that a pipeline left before they ended, and of those left by a kill."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable
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
from muniment.procs.socket import stop_listening

__all__ = ["LeftJobs"]

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
        self._asked: dict[int, tuple[float, float]] = {}
        """When a job is to be asked about, and how long after the question before."""
        self._joining = asyncio.Lock()

    async def run(self) -> None:
        """Look after them until it is cancelled."""
        while True:
            await asyncio.sleep(_FIRST_S)
            at_work = self._at_work()
            left = {job: out for job, out in self._home.unjoined().items() if job not in at_work}
            self._asked = {job: self._asked.get(job, (0.0, _FIRST_S / 2)) for job in left}
            for job, out in left.items():
                due, wait_s = self._asked[job]
                if monotonic() >= due:
                    longer = min(2 * wait_s, _LONGEST_S)
                    self._asked[job] = monotonic() + longer, longer
                    await self._join_if_ended(job, out)

    async def join_all(self) -> None:
        """Join the indexes of all jobs that are left: the pipeline ends."""
        async with self._joining:
            for out in self._home.unjoined().values():
                await _join(out, self._registry)

    async def _join_if_ended(self, job: int, out: Path) -> None:
        with suppress(MunimentError):
            if not await self._has_ended(job):
                return
            async with self._joining:
                if job not in self._at_work():
                    await _join(out, self._registry)


async def _join(out: Path, registry: ProcessRegistry) -> None:
    """Seal and index what is left in an output directory; what fails is said, and left to the next time."""
    try:
        locks = await asyncio.to_thread(lock_directory, out)
        try:
            stop_listening(out)  # a killed run left the name of its socket
            repair(out, out / PARTS)
            indexer = await Indexer.start(locks, out, "", registry)
            await indexer.walked()
            await indexer.done()
        finally:
            for lock in locks:
                os.close(lock)
    except MunimentError as error:
        _log.warning("%s: the index is not whole: %s", out, error)
