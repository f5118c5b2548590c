"""Names for WARC files, and what becomes of full ones: the orchestrator's part of the archive.

A file that fails its check is set aside, and its pages are fetched again. The order makes a crash harmless: its
pages wait again, then the event is recorded, then the file moves. After a kill in between, the next run begins anew.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Protocol

import msgspec

from muniment.archive.failure_rows import FailureRows
from muniment.archive.index.journal import CAPTURES, PARTS, entries, journal_path
from muniment.archive.index.repeated_lines import writing_again
from muniment.archive.recovery.cut import RepairReport, repair, repair_file
from muniment.archive.recovery.inventory import REBUILT, Inventory, being_rebuilt, take_stock
from muniment.archive.recovery.quarantine import place_aside, set_aside
from muniment.archive.recovery.verify import Damage
from muniment.crawl.orchestrator.file_names import FileNames
from muniment.crawl.ports import Events
from muniment.crawl.progress import RunOutcome
from muniment.errors import ArchiveError, MunimentError
from muniment.model.capture import Capture
from muniment.model.event import DamageEvent
from muniment.model.queue import QueueChanges, RepeatedLine
from muniment.procs.children.launch import STOCK

__all__ = ["DamagedFiles", "IndexProcess", "NextRepeats", "WarcFiles"]

NextRepeats = Callable[[int], Awaitable[Sequence[RepeatedLine]]]
"""The next lines of a list, after one of this number, whose URL an earlier line has."""

_damages = msgspec.json.Decoder(list[Damage])
_stock = msgspec.json.Decoder(Inventory)
_rebuilt = msgspec.json.Decoder(dict[str, int])
_MOST_NAMED = 5
_BATCH = 1_000
"""Maximum of captures of a damaged file that are sent together."""
_log = logging.getLogger(__name__)


class IndexProcess(Protocol):
    """A process that walks, seals and indexes files. It reports damage as a line of JSON."""

    async def walked(self) -> bytes:
        """Have every full file that is not sealed walked; returns an empty text when the process died of it."""

    async def done(self) -> bytes:
        """Wait until it has ended; the whole index is joined from what is sealed when this is called."""

    def kill(self) -> None:
        """End it at once; an unfinished file stays as it was."""


class WarcFiles:
    """Gives out file names; has full files walked and sealed, and keeps their index."""

    def __init__(self, out: Path, prefix: str, index: Callable[[str], Awaitable[IndexProcess]]) -> None:
        """`index` begins with the full file of a name, or makes ready to join the whole index for an empty one."""
        self._out, self._parts, self._index = out, out / PARTS, index
        self._names = FileNames(out, prefix)
        self._join: IndexProcess | None = None
        self._ending = False
        self._full: deque[str] = deque()
        self._walking: asyncio.Future[None] | None = None
        self._walker: IndexProcess | None = None
        self._damaged: list[Damage] = []
        self.joins_index = True
        """At the end of the run; otherwise a later one does."""

    def open(self) -> list[RepairReport]:
        """Repair what a killed run left, file by file.

        What is left of the files is walked with the first that this run fills, at the latest at its end.
        """
        repaired = repair(self._out, self._parts)
        self._full.extend(one.name for one in repaired if not one.freed)
        return repaired

    async def take_stock(self) -> list[str]:
        """Learn which names are taken, report what is gone, and rebuild the rows of files that have none.

        Returns the files whose rows were rebuilt, by this run or by one killed before `regained`. May be killed
        at any instant: the next run rebuilds what is left.
        """
        stock, counter = take_stock(self._out, {}), None
        if stock.index or stock.unknown:
            counter = await self._index(STOCK)
            if not (said := await counter.walked()):
                await counter.done()  # the process reported why
                raise ArchiveError(f"the records of {self._out} could not be read; give the same command again")
            stock = _stock.decode(said)
        for line in _lost(stock, self._out):
            _log.warning("%s", line)
        rebuilt = sum(_rebuilt.decode(await counter.done()).values()) if counter is not None else 0
        if rebuilt:
            _log.warning("%d rows of the index were rebuilt from the records", rebuilt)
        self._names.begin({*stock.known, *stock.unknown} - {*self._full}, self._full, whole=not stock.unknown)
        return [name for name in being_rebuilt(self._parts) if name in stock.known or name in stock.unknown]

    def regained(self) -> None:
        """Note that everything that can be known of lost rows is restored."""
        (self._parts / REBUILT).unlink(missing_ok=True)

    @property
    def empty(self) -> bool:
        """Whether the archive has no file, present or known."""
        return not self._names.any_taken

    def keep(self, rows: Iterable[Capture]) -> int:
        """Write rows that were lost and have no record; returns how many. Blocks."""
        kept, count = FailureRows(self._out, self._parts), 0
        for row in rows:
            kept.keep(row)
            count += 1
        kept.end()
        return count

    def next_name(self) -> str:
        """The lowest name that is free."""
        return self._names.take()

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
        """At the end the user waits: the worker's process walks at once, this one when no other works."""
        if self._ending and self._walker is not None:
            self._walker.kill()

    def mend(self, name: str) -> None:
        """Cut the file of a killed worker to what its journal confirms; the file is full then."""
        if repair_file(self._out, self._parts, name).freed:
            self._names.give_back(name)
        else:
            self.ended(name)

    def take_damaged(self) -> list[Damage]:
        """Damage that walks found since the last call: files that cannot be sealed."""
        damaged, self._damaged = self._damaged, []
        return damaged

    def captures(self, name: str) -> Iterator[Capture]:
        """The captures of a file that is not sealed, and the failures reported beside them."""
        return (entry.capture for entry in entries(journal_path(self._parts, name)) if entry.capture is not None)

    def place_aside(self, name: str) -> str:
        """Where a damaged file goes, as seen from the output directory."""
        return str(place_aside(self._out, name).relative_to(self._out))

    def set_aside(self, name: str) -> None:
        """Move a damaged file out of the archive; its number is free."""
        set_aside(self._out, self._parts, name)
        self._names.give_back(name)

    async def prepare(self) -> None:
        """Begin what the end will need, which takes a while by itself: call it when the workers are asked to end.

        Workers walk the files that end from here on, or leave them to it, like the file that is being walked: a second
        process for one of them would take as long to start.
        """
        self._ending = True
        self._hurry()
        with suppress(ArchiveError):  # there is another try when it is needed
            self._join = await self._index("")

    async def walk_rest(self) -> list[Damage]:
        """Walk and seal what is left, after every worker has ended; returns all damage that is not set aside."""
        if self._walking is not None:
            await self._walking
        self._join = self._join or await self._index("")
        said = await self._join.walked()
        if not said:
            await self._join.done()  # the process reported why
            raise ArchiveError(f"the files of {self._out} could not be walked; give the same command again")
        self._damaged.clear()  # it is still open, so that it was found again
        return _damages.decode(said)

    async def finish(self, repeats: NextRepeats) -> None:
        """Join the index; `walk_rest` has been called."""
        assert self._join is not None
        if not self.joins_index:
            self._join.kill()
            return
        if lines := await repeats(0):
            with writing_again(self._parts) as write:
                while lines:
                    write((line.key, line.meta_json) for line in lines)
                    lines = await repeats(lines[-1].number)
        await self._join.done()

    @property
    def joined(self) -> bool:
        """Whether the index is whole: no journal and no part of it is left."""
        return not self._parts.exists()

    def files(self) -> tuple[int, int]:
        """The number of WARC files, and their bytes."""
        sizes = self._names.sizes()
        return len(sizes), sum(sizes)


class DamagedFiles:
    """Handles what the walks of one run found."""

    def __init__(
        self, warc_files: WarcFiles, events: Events, fetch_again: Callable[[list[Capture]], Awaitable[QueueChanges]]
    ) -> None:
        """`fetch_again` has the pages of captures wait again."""
        self._warc_files, self._events, self._fetch_again = warc_files, events, fetch_again

    async def step(self) -> None:
        """Set aside what was found since the last call."""
        for damage in self._warc_files.take_damaged():
            await self._set_aside(damage)

    async def finish(self, outcome: RunOutcome, repeats: NextRepeats) -> RunOutcome:
        """Seal what is whole, set the rest aside and join the index; a run with pages to fetch again has not ended.

        `repeats` gives the lines of a list whose URL an earlier line has.
        """
        pages = await self._walk_rest()
        await self._warc_files.finish(repeats)
        if not pages or outcome.exit_code:
            return outcome
        return RunOutcome(3, f"a damaged file was set aside, and {pages} of its pages wait to be fetched again")

    async def seal(self) -> None:
        """Seal what is whole after an error, which matters more than a failure here; the index is not joined."""
        with suppress(MunimentError):
            await self._walk_rest()

    async def _walk_rest(self) -> int:
        """Have the rest walked and what is damaged set aside; how many pages wait again for it."""
        return sum([await self._set_aside(damage) for damage in await self._warc_files.walk_rest()])

    async def _set_aside(self, damage: Damage) -> int:
        name, place = damage.name, self._warc_files.place_aside(damage.name)
        pages = 0
        captures = self._warc_files.captures(name)
        while batch := list(islice(captures, _BATCH)):
            pages += sum(one.more for one in (await self._fetch_again(batch)).pending)
        self._events.publish(DamageEvent(name, damage.offset, damage.text, place, pages))
        _log.warning(
            "%s is damaged at byte %d (%s): it is kept as %s, and its %d pages are fetched again",
            *(name, damage.offset, damage.text, place, pages),
        )
        self._warc_files.set_aside(name)
        return pages


def _lost(stock: Inventory, out: Path) -> list[str]:
    """Files gone from a directory, with effect and remedy: a line for each kind."""
    lines = []
    if stock.gone:
        lines.append(
            f"{_named(stock.gone)} {_is(stock.gone)} gone from {out}, where the index has them: put back what was "
            "moved away; no name is given out twice"
        )
    if stock.unknown:
        # where parts name other files there may have been no index yet
        what = f"the rows of {_named(stock.unknown)} are" if stock.index or stock.known else f"{CAPTURES} is"
        lines.append(
            f"{what} gone from {out}: the records rebuild the rows now; if it was moved away, stop this run and put it "
            "back"
        )
    return lines


def _named(names: Sequence[str]) -> str:
    more = len(names) - _MOST_NAMED
    return ", ".join(names[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def _is(names: Sequence[str]) -> str:
    return "is" if len(names) == 1 else "are"
