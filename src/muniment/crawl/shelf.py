"""The shelf: names for WARC files, and what becomes of full ones. The orchestrator's part of the archive."""

from __future__ import annotations

import asyncio
import heapq
import logging
import re
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Protocol

import msgspec

from muniment.archive.damaged import place_aside, set_aside
from muniment.archive.journal import entries, journal_path
from muniment.archive.records import WarcInfo
from muniment.archive.repair import Repaired, repair, repair_file
from muniment.archive.segment import Segment
from muniment.archive.walk import Damage
from muniment.errors import ArchiveError
from muniment.model.capture import Capture

__all__ = ["Indexing", "Shelf"]

_damages = msgspec.json.Decoder(list[Damage])
_log = logging.getLogger(__name__)


class Indexing(Protocol):
    """A process that walks, seals and indexes. What it says of damage is a line of JSON."""

    async def walked(self) -> bytes:
        """Have every full file walked that is not sealed; empty when the process died over it."""

    async def done(self) -> bytes:
        """Wait until it has ended; the whole index is joined from what is sealed when this is called."""

    def kill(self) -> None:
        """End it at once; what it had not finished is as it was."""


class Shelf:
    """Gives out file numbers without gaps; has full files walked and sealed, and keeps their index."""

    def __init__(self, out: Path, prefix: str, info: WarcInfo, index: Callable[[str], Awaitable[Indexing]]) -> None:
        """`index` begins with the full file of a name, or makes ready to join the whole index for an empty one."""
        self._out, self._parts, self._prefix, self._info, self._index = out, out / "parts", prefix, info, index
        self._join: Indexing | None = None
        self._ending = False
        self._free: list[int] = []
        self._next = 0
        self._full: deque[str] = deque()
        self._walking: asyncio.Future[None] | None = None
        self._walker: Indexing | None = None
        self._damaged: list[Damage] = []

    def open(self) -> list[Repaired]:
        """Repair what a killed run left, file by file.

        What is left of the files is walked with the first that this run fills, at the latest at its end.
        """
        repaired = repair(self._out, self._parts)
        numbers = self._numbers()
        self._next = max(numbers, default=-1) + 1
        self._free = [number for number in range(self._next) if number not in numbers]
        heapq.heapify(self._free)
        self._full.extend(one.name for one in repaired if not one.freed)
        return repaired

    def _numbers(self) -> set[int]:
        pattern = re.compile(re.escape(self._prefix) + r"-(\d{5,})\.warc\.gz(?:\.open)?")
        return {int(match[1]) for path in self._out.iterdir() if (match := pattern.fullmatch(path.name))}

    def _name(self, number: int) -> str:
        return f"{self._prefix}-{number:05d}.warc.gz"

    def next_name(self) -> str:
        """The lowest name that is free."""
        if self._free:
            return self._name(heapq.heappop(self._free))
        self._next += 1
        return self._name(self._next - 1)

    def _give_back(self, name: str) -> None:
        heapq.heappush(self._free, int(name.removeprefix(self._prefix + "-").removesuffix(".warc.gz")))

    def ended(self, name: str) -> None:
        """A worker has ended a file: walk and seal it and turn its row journal into an index part, beside the crawl."""
        self._full.append(name)
        if not self._ending and (self._walking is None or self._walking.done()):
            self._walking = asyncio.ensure_future(self._walk_full())

    async def _walk_full(self) -> None:
        """One file after the other: such a process is large, and has time."""
        while self._full and not self._ending:
            name = self._full.popleft()
            try:
                self._walker = await self._index(name)
                self._hurry()
                said = await self._walker.done()
            except ArchiveError as error:
                if not self._ending:
                    _log.warning("%s waits for the end of the run to be sealed: %s", name, error)
            else:
                self._damaged += _damages.decode(said)
            self._walker = None

    def _hurry(self) -> None:
        """At the end the user waits: the one that walks then does it at once, this one when nobody else works."""
        if self._ending and self._walker is not None:
            self._walker.kill()

    def mend(self, name: str) -> None:
        """Cut the file of a worker that was killed to what its journal vouches for; it is full then."""
        if repair_file(self._out, self._parts, name).freed:
            self._give_back(name)
        else:
            self.ended(name)

    def take_damaged(self) -> list[Damage]:
        """What walks found since the last call: files that cannot be sealed."""
        damaged, self._damaged = self._damaged, []
        return damaged

    def captures(self, name: str) -> Iterator[Capture]:
        """The captures of a file that is not sealed, and the failures told beside them."""
        return (entry.capture for entry in entries(journal_path(self._parts, name)) if entry.capture is not None)

    def place_aside(self, name: str) -> str:
        """Where a damaged file goes, as seen from the output directory."""
        return str(place_aside(self._out, name).relative_to(self._out))

    def set_aside(self, name: str) -> None:
        """Move a damaged file out of the archive; its number is free."""
        set_aside(self._out, self._parts, name)
        self._give_back(name)

    async def prepare(self) -> None:
        """Begin what the end will need, which takes a while by itself: call it when the workers are told to end.

        Files that end from here on are walked by their workers, or left to it, as is the one that is being walked: a
        process for one of them would need the same while.
        """
        self._ending = True
        self._hurry()
        with suppress(ArchiveError):  # there is another try when it is needed
            self._join = await self._index("")

    async def walk_rest(self) -> list[Damage]:
        """Walk and seal what is left, as every worker has ended; all that is damaged and not set aside."""
        if self._walking is not None:
            await self._walking
        self._join = self._join or await self._index("")
        said = await self._join.walked()
        if not said:
            await self._join.done()  # says why
            raise ArchiveError(f"the files of {self._out} could not be walked; give the same command again")
        self._damaged.clear()  # it is still open, so that it was found again
        return _damages.decode(said)

    async def finish(self) -> None:
        """Close the gaps in the numbers and join the index; `walk_rest` has been called."""
        assert self._join is not None
        self._fill_gaps()
        await self._join.done()

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
