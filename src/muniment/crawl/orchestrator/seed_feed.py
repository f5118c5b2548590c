"""Seed feed: reads the seed list of a fetch while its pages are being fetched."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator

from msgspec import structs

from muniment.crawl.ports import Events
from muniment.model.event import SkipEvent
from muniment.model.link import FoundAs
from muniment.model.queue import UpkeepOutcome
from muniment.model.seed import BadLine, ListProgress, SeedBatch, SeedLine, SeedPlace, in_shard
from muniment.model.url import url_key
from muniment.seeds.read import batches
from muniment.seeds.source import SeedSource
from muniment.settings.option_table import Settings

__all__ = ["SeedFeed"]

_PLENTY = 2_000
"""Pages that wait, two batches, from which on the list is read slowly: one batch at each tick of the crawl."""
_MOST_AHEAD = 1_000_000
"""Pages that wait, from which on it is read only while a worker finds nothing among them: they may be of one host."""
_ENOUGH_HOSTS = 10_000
"""Hosts with pages that wait, from which on it is not read at all: there are enough, and each takes memory."""
_NAMED = 10
_MOST_EVENTS = 1_000
"""Maximum of invalid lines that `crawl.jsonl` names."""


Admit = Callable[[SeedBatch | None], Awaitable[UpkeepOutcome]]
"""Sends lines to the tracker, or that there are no more."""


class SeedFeed:
    """Reads one list from where the last run left it."""

    def __init__(self, source: SeedSource, settings: Settings, events: Events) -> None:
        self._source, self._events = source, events
        self._shard, self._shards = settings.shard, settings.shards
        self._batches: Iterator[SeedBatch] = iter(())
        self.read = ListProgress(SeedPlace(), 0, 0, 0, ended=False)
        """How far the list was read."""
        self._told = 0
        self._others = False
        self.named: list[BadLine] = []
        """The first invalid lines of this run."""

    def begin(self, read: ListProgress) -> None:
        """Go on where the last run left the list."""
        self.read = read
        self._batches = batches(self._source, read.place) if self.waiting else iter(())

    @property
    def waiting(self) -> bool:
        """Whether the list goes on."""
        return not self.read.ended

    @property
    def fruitless(self) -> bool:
        """Whether the list has invalid lines, and none for another shard: then it has no line for others."""
        return bool(self.read.bad) and not self._others

    def hurried(self, pending: int) -> bool:
        """Whether so few pages wait that the list is to be read at once."""
        return self.waiting and pending < _PLENTY

    async def step(self, pending: int, hosts: int, admit: Admit, *, idle: bool) -> None:
        """Send one batch to the tracker while `pending` pages of `hosts` wait; at the end of the list, report that.

        `idle`: a worker has asked for pages in vain.
        """
        if not self.waiting or (pending >= _MOST_AHEAD and not (idle and hosts < _ENOUGH_HOSTS)):
            return
        batch = next(self._batches, None)
        if batch is not None:
            self._tell(batch.bad)
        outcome = await admit(None if batch is None else self._mine(batch))
        self.read = outcome.progress or self.read

    def _mine(self, batch: SeedBatch) -> SeedBatch:
        if self._shards == 1:
            return batch
        mine = [line for line in batch.lines if self._is_mine(line)]
        self._others = self._others or len(mine) < len(batch.lines)
        return structs.replace(batch, lines=mine)

    def _is_mine(self, line: SeedLine) -> bool:
        # a sitemap is a part of the list, which every shard reads
        return line.found_as is FoundAs.SITEMAP or in_shard(url_key(line.url), self._shard, self._shards)

    def _tell(self, bad: list[BadLine]) -> None:
        self.named += bad[: _NAMED - len(self.named)]
        for line in bad[: max(0, _MOST_EVENTS - self._told)]:
            self._events.publish(SkipEvent(line=line.number, reason=f"line: {line.reason}"))
        self._told += len(bad)
