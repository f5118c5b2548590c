"""Feeder: takes the seed list of a fetch in while its pages are being fetched."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from msgspec import structs

from muniment.crawl.ports import Events
from muniment.model.event import SkipEvent
from muniment.model.link import FoundAs
from muniment.model.seed import BadLine, SeedBatch, SeedLine, in_shard
from muniment.model.url import url_key
from muniment.seeds.read import batches
from muniment.seeds.source import SeedSource
from muniment.settings.table import Settings
from muniment.tracker.queue.seeds import ListProgress, SeedStore

__all__ = ["SeedFeed"]

_PLENTY = 2_000
"""Pages that wait, two batches, from which on the list is read with leave: one batch at each tick of the crawl."""
_MOST_AHEAD = 1_000_000
"""Pages that wait, from which on it is read only while a worker finds nothing among them: they may be of one host."""
_ENOUGH_HOSTS = 10_000
"""Hosts with pages that wait, from which on not even then: it is not for want of hosts, and each takes memory."""
_NAMED = 10
_MOST_EVENTS = 1_000
"""Bad lines that `crawl.jsonl` names."""


class SeedFeed:
    """Reads one list from where the last run left it."""

    def __init__(self, source: SeedSource, book: SeedStore, settings: Settings, events: Events) -> None:
        self._book, self._events = book, events
        self._shard, self._shards = settings.shard, settings.shards
        self._batches: Iterator[SeedBatch] = batches(source, book.read.place) if self.waiting else iter(())
        self._told = 0
        self._others = False
        self.named: list[BadLine] = []
        """The first bad lines of this run."""

    @property
    def waiting(self) -> bool:
        """Whether the list goes on."""
        return not self._book.read.ended

    @property
    def read(self) -> ListProgress:
        """How far the list was read."""
        return self._book.read

    def repeats(self) -> Iterator[tuple[bytes, str]]:
        """What the lines say whose URL an earlier line has."""
        return self._book.repeats()

    @property
    def fruitless(self) -> bool:
        """Whether the list has bad lines, and none for another shard: then nothing of it was meant for others."""
        return bool(self.read.bad) and not self._others

    def hurried(self, pending: int) -> bool:
        """Whether so few pages wait that the list is to be read at once."""
        return self.waiting and pending < _PLENTY

    def step(self, pending: int, hosts: int, *, idle: bool) -> Counter[int]:
        """Take in one batch while `pending` pages of `hosts` wait; returns pages newly pending per host number.

        `idle`: a worker has asked for pages in vain.
        """
        if not self.waiting or (pending >= _MOST_AHEAD and not (idle and hosts < _ENOUGH_HOSTS)):
            return Counter()
        batch = next(self._batches, None)
        if batch is None:
            self._book.end()
            return Counter()
        self._tell(batch.bad)
        return self._book.admit(self._mine(batch))

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
