"""The shelf: names for WARC files, and the index over them. The orchestrator's part of the archive."""

from __future__ import annotations

import asyncio
import heapq
import logging
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Protocol

from muniment.archive.records import WarcInfo
from muniment.archive.repair import repair, repair_file
from muniment.archive.segment import Segment
from muniment.errors import ArchiveError

__all__ = ["Indexing", "Shelf"]

_log = logging.getLogger(__name__)


class Indexing(Protocol):
    """An index that is being written."""

    async def done(self) -> None:
        """Wait until it is; the whole index is joined from what is sealed when this is called."""


class Shelf:
    """Gives out file numbers without gaps, and keeps the index parts of sealed files."""

    def __init__(self, out: Path, prefix: str, info: WarcInfo, index: Callable[[str], Awaitable[Indexing]]) -> None:
        """`index` begins to index the sealed file of a name, or to join the whole index for an empty one."""
        self._out, self._parts, self._prefix, self._info, self._index = out, out / "parts", prefix, info, index
        self._join: Indexing | None = None
        self._free: list[int] = []
        self._next = 0
        self._indexing: set[asyncio.Future[None]] = set()

    def open(self) -> tuple[int, int]:
        """Repair what a killed run left; how many files, and captures that were vouched for but are not there.

        The second is damage by the disk or by hand, never by a kill.
        """
        repaired = repair(self._out, self._parts)
        numbers = self._numbers()
        self._next = max(numbers, default=-1) + 1
        self._free = [number for number in range(self._next) if number not in numbers]
        heapq.heapify(self._free)
        return len(repaired), sum(one.dropped_rows for one in repaired)

    def _numbers(self) -> set[int]:
        pattern = re.compile(re.escape(self._prefix) + r"-(\d{5,})\.warc\.gz")
        return {int(match[1]) for path in self._out.iterdir() if (match := pattern.fullmatch(path.name))}

    def _name(self, number: int) -> str:
        return f"{self._prefix}-{number:05d}.warc.gz"

    def next_name(self) -> str:
        """The lowest name that is free."""
        if self._free:
            return self._name(heapq.heappop(self._free))
        self._next += 1
        return self._name(self._next - 1)

    def sealed(self, name: str) -> None:
        """A file is sealed: turn its row journal into an index part, beside the crawl."""
        task = asyncio.ensure_future(self._index_one(name))
        self._indexing.add(task)
        task.add_done_callback(self._indexing.discard)

    async def _index_one(self, name: str) -> None:
        try:
            await (await self._index(name)).done()
        except ArchiveError as error:
            # its journal is still there, and the join takes that too
            _log.warning("the rows of %s wait for the end of the run: %s", name, error)

    def mend(self, name: str) -> None:
        """Seal the file of a worker that was killed, cut to what its journal vouches for."""
        if repair_file(self._out, self._parts, name).freed:
            heapq.heappush(self._free, int(name.removeprefix(self._prefix + "-").removesuffix(".warc.gz")))

    async def prepare(self) -> None:
        """Begin what `finish` will need, which takes a while by itself: call it when the workers are told to end."""
        self._join = await self._index("")

    async def finish(self) -> None:
        """Close the gaps in the numbers and join the index; every worker has ended."""
        if self._indexing:
            await asyncio.gather(*self._indexing)
        self._fill_gaps()
        await (self._join or await self._index("")).done()

    def _fill_gaps(self) -> None:
        """A number that was given out and lost to a kill becomes a file without captures, so that none is missing."""
        last = max(self._numbers(), default=-1)
        while self._free:
            number = heapq.heappop(self._free)
            if number < last:
                Segment.open(self._out, self._parts, self._name(number), self._info).seal()

    @property
    def joined(self) -> bool:
        """Whether the index is whole: no journal and no part of it is left."""
        return not self._parts.exists()

    def files(self) -> tuple[int, int]:
        """How many WARC files there are, and their bytes."""
        sizes = [path.stat().st_size for path in self._out.glob(f"{self._prefix}-*.warc.gz")]
        return len(sizes), sum(sizes)
