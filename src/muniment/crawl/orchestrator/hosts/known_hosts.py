"""What a run knows of hosts: the tracker's records of those that have pages, and which have answered."""

from __future__ import annotations

import sys

from msgspec import structs

from muniment.crawl.ports import Queue
from muniment.model.host import HostRecord, HostWaits, origin_within

__all__ = ["AnsweringHosts", "KnownHosts"]


class KnownHosts:
    """The records of hosts by their numbers. A host that asks for nothing and never answered has none."""

    def __init__(self, queue: Queue) -> None:
        self._queue = queue
        self._urgent = False
        self._records: dict[int, HostRecord] = {}
        self._news: dict[int, HostRecord] = {}
        """Records that changed since they were sent to the tracker, those of forgotten hosts included."""

    def meet(self, record: HostRecord) -> None:
        """A host has pages, and the tracker keeps this of it."""
        host_id = record.host_id
        if host_id not in self._records:
            self._records[host_id] = self._news.get(host_id, record)

    def of(self, host_id: int) -> HostRecord:
        """What is known of a host."""
        return self._records.get(host_id) or self._news.get(host_id) or HostRecord(host_id)

    def forget(self, host_id: int) -> None:
        """A host has nothing to do any more; the tracker has its record."""
        self._records.pop(host_id, None)

    def wants(self, host_id: int, waits: HostWaits, rests: dict[str, int] | None = None, *, urgent: bool) -> None:
        """Note what a host asks for, and its origins that rest; an `urgent` wait is one that a kill must not lose."""
        self._urgent = self._urgent or urgent
        record = self.of(host_id)
        self._change(structs.replace(record, waits=waits, rests=record.rests if rests is None else rests))

    def answered(self, host_id: int, name: str, url: str) -> bool:
        """Note that the origin of a URL of a host has answered; whether that is new."""
        record, origin = self.of(host_id), origin_within(name, url)
        if origin in record.answered.split():
            return False
        # one text for all equal hosts
        both = sys.intern(f"{record.answered} {origin}".lstrip())
        self._change(structs.replace(record, answered=both))
        return True

    def origins(self, host_id: int, name: str) -> list[str]:
        """The origins of a host that have answered in this job, whole: `https://site.example:8443`."""
        pairs = (one.partition(":") for one in self.of(host_id).answered.split())
        return [f"{scheme}://{name}{colon}{port}" for scheme, colon, port in pairs]

    def take_news(self) -> list[HostRecord]:
        """The records that changed since the last call."""
        news = list(self._news.values())
        self._news.clear()
        return news

    async def keep_urgent(self) -> None:
        """Have the tracker keep urgent waits at once; the others are kept with the pages that finish next."""
        if self._urgent:
            self._urgent = False
            await self._queue.keep_hosts(self.take_news(), {})

    def _change(self, record: HostRecord) -> None:
        self._records[record.host_id] = self._news[record.host_id] = record


class AnsweringHosts:
    """Which hosts have answered in this run, in a byte each: their numbers are small and dense."""

    def __init__(self) -> None:
        self._flags = bytearray()
        self.at_work = 0
        """Hosts that have answered and have pages that wait or are out."""

    def __contains__(self, host_id: int) -> bool:
        """Whether a host has answered."""
        return host_id < len(self._flags) and bool(self._flags[host_id])

    def add(self, host_id: int, *, busy: bool) -> None:
        """A host has answered; `busy` when it has pages."""
        if host_id in self:
            return
        if host_id >= len(self._flags):
            self._flags.extend(bytes(host_id + 1 - len(self._flags)))
        self._flags[host_id] = 1
        self.at_work += busy

    def turned(self, host_id: int, *, busy: bool) -> None:
        """A host has pages from now on, or has none any more."""
        if host_id in self:
            self.at_work += 1 if busy else -1
