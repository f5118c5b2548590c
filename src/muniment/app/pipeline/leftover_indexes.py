"""Leftover indexes are joined: those of jobs that a pipeline worked at before, and of those that a kill left open."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Iterable
from pathlib import Path

from muniment.archive.index.journal import PARTS
from muniment.archive.recovery.cut import repair
from muniment.errors import MunimentError
from muniment.procs.children.launch import Indexer
from muniment.procs.lock import lock_directory
from muniment.procs.registry import ProcessRegistry

__all__ = ["join_rest"]

_log = logging.getLogger(__name__)


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
