"""What a run knows of hosts: the tracker's records of those that have pages, which have answered, which are dead."""

from __future__ import annotations

import sys

from msgspec import structs

from muniment.crawl.ports import Queue
from muniment.model.host import HostRecord, HostWaits, origin_within
from muniment.model.url import host_of, origin_of
from muniment.rules.hosts.politeness import HostSignal, is_proof

__all__ = ["AnsweringHosts", "DeadOrigins", "KnownHosts"]

_MOST_DEAD = 10_000
"""Maximum of dead origins that are remembered; a forgotten one is found dead again."""


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

    def wants(self, host_id: int, waits: HostWaits, *, urgent: bool) -> None:
        """Note what a host asks for; an `urgent` wait is one that a kill must not lose."""
        self._urgent = self._urgent or urgent
        self._change(structs.replace(self.of(host_id), waits=waits))

    def answered(self, host_id: int, name: str, url: str) -> None:
        """Note that the origin of a URL of a host has answered."""
        record, origin = self.of(host_id), origin_within(name, url)
        if origin not in record.answered.split():
            # one text for all equal hosts
            both = sys.intern(f"{record.answered} {origin}".lstrip())
            self._change(structs.replace(record, answered=both))

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


_NONE_DEAD: dict[str, str] = {}


def _host_of(origin: str) -> str:
    """The host of an origin, or of a name."""
    return host_of(origin) if "://" in origin else origin


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


class DeadOrigins(dict[str, str]):
    """Origin, or name without addresses → why it is dead."""

    def __init__(self) -> None:
        super().__init__()
        self._failures: dict[str, int] = {}
        """Failures in a row of origins that never answered and are not dead yet."""
        self._by_host: dict[str, dict[str, str]] = {}

    def of(self, host: str) -> dict[str, str]:
        """Those that are of a host, by its name; the name itself is one."""
        return self._by_host.get(host, _NONE_DEAD)

    def fails(self, signal: HostSignal, *, heard: bool) -> str:
        """Count a failure of an origin; returns why it is dead if this failure made it so, or an empty text.

        `heard`: its host has answered.
        """
        failures = self._failures[signal.origin] = self._failures.get(signal.origin, 0) + 1
        if not is_proof(failures, heard=heard) or signal.origin in self:
            return ""
        del self._failures[signal.origin]
        if len(self) >= _MOST_DEAD:
            self._forget(next(iter(self)))
        reason = f"dead-host: given up after {failures} failures, the last one {signal.text}"
        host = _host_of(signal.origin)
        self._by_host[host] = {**self.of(host), signal.origin: reason}
        self[signal.origin] = reason
        return reason

    def _forget(self, origin: str) -> None:
        del self[origin]
        host = _host_of(origin)
        left = {one: reason for one, reason in self._by_host.pop(host).items() if one != origin}
        if left:
            self._by_host[host] = left

    def answers(self, url: str) -> None:
        """The origin of a URL has answered."""
        self._failures.pop(origin_of(url), None)
        self._failures.pop(host_of(url), None)

    def begin_anew(self) -> None:
        """The failures so far were not the fault of the hosts."""
        self._failures.clear()
