"""A list that begins with very many pages of one host is read on for a worker that finds nothing among them."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.support.event_list import EventList

from muniment.crawl.orchestrator import seed_feed as module
from muniment.crawl.orchestrator.queue_client import QueueClient
from muniment.crawl.orchestrator.seed_feed import SeedFeed
from muniment.model.place import TrackerPlace
from muniment.model.queue import QueueChanges
from muniment.seeds.source import open_source
from muniment.settings.option_table import Settings
from muniment.tracker.connect import opened
from muniment.tracker.open import StartPages, open_job
from muniment.tracker.queue.local import LocalQueue

SAME, OTHERS = 3_000, 3_000
AHEAD, HOSTS = 2_000, 1_500


@pytest.fixture
def seed_feed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Fed]:
    """Of a list of so many lines of one host, and as many of others, with smaller bounds."""
    monkeypatch.setattr(module, "_MOST_AHEAD", AHEAD)
    monkeypatch.setattr(module, "_ENOUGH_HOSTS", HOSTS)
    (tmp_path / "list.txt").write_text(
        "".join(f"http://a.test/{number}\n" for number in range(SAME))
        + "".join(f"http://b{number}.test/\n" for number in range(OTHERS))
    )
    source, settings = open_source("list.txt", None, tmp_path / "list.txt"), Settings(seed="list.txt")
    with closing(opened(TrackerPlace(tmp_path))) as db:
        job = open_job(db, "job", settings, StartPages(list_digest=source.digest), 1_000)
        assert job.seeds is not None
        made = SeedFeed(source, settings, EventList())
        made.begin(job.seeds.read)
        yield Fed(made, LocalQueue(job.frontier, job.seeds))


class Fed:
    """A list that is fed into a queue; `waiting` has the pages of each host."""

    def __init__(self, feed: SeedFeed, queue: LocalQueue) -> None:
        self.feed, self.queue = feed, queue
        self.waiting: Counter[int] = Counter()
        self.client = QueueClient(queue, self._take_in)

    def _take_in(self, changes: QueueChanges) -> None:
        self.waiting.update({host.host_id: host.more for host in changes.pending})

    def step(self, pending: int, hosts: int, *, idle: bool) -> int:
        """How many pages are new."""
        before = self.waiting.total()
        asyncio.run(self.feed.step(pending, hosts, self.client.admit, idle=idle))
        return self.waiting.total() - before


def fed(fed: Fed, *, idle: bool) -> tuple[int, int]:
    """Step as long as it gives something and nothing is fetched: the pages and hosts that wait then."""
    while fed.step(fed.waiting.total(), len(fed.waiting), idle=idle):
        pass
    return fed.waiting.total(), len(fed.waiting)


def test_a_list_is_read_so_far_ahead_while_every_worker_has_pages(seed_feed: Fed) -> None:
    assert fed(seed_feed, idle=False) == (AHEAD, 1)
    assert seed_feed.feed.waiting


def test_and_on_while_one_has_none_until_there_are_hosts_enough(seed_feed: Fed) -> None:
    assert fed(seed_feed, idle=True) == (SAME + 2_000, 2_001)
    assert seed_feed.feed.waiting
    assert seed_feed.step(AHEAD, 1, idle=True) == 1_000, "those hosts are done"
