"""A list that begins with very many pages of one host is read on for a worker that finds nothing among them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.support.event_list import EventList

from muniment.crawl.orchestrator import seed_feed as module
from muniment.crawl.orchestrator.seed_feed import SeedFeed
from muniment.model.place import TrackerPlace
from muniment.seeds.source import open_source
from muniment.settings.table import Settings
from muniment.tracker.connect import opened
from muniment.tracker.open import StartPages, open_job

SAME, OTHERS = 3_000, 3_000
AHEAD, HOSTS = 2_000, 1_500


@pytest.fixture
def seed_feed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SeedFeed]:
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
        yield SeedFeed(source, job.seeds, settings, EventList())


def fed(seed_feed: SeedFeed, *, idle: bool) -> tuple[int, int]:
    """Step as long as it gives something and nothing is fetched: the pages and hosts that wait then."""
    waiting: Counter[int] = Counter()
    while more := seed_feed.step(waiting.total(), len(waiting), idle=idle):
        waiting += more
    return waiting.total(), len(waiting)


def test_a_list_is_read_so_far_ahead_while_every_worker_has_pages(seed_feed: SeedFeed) -> None:
    assert fed(seed_feed, idle=False) == (AHEAD, 1)
    assert seed_feed.waiting


def test_and_on_while_one_has_none_until_there_are_hosts_enough(seed_feed: SeedFeed) -> None:
    assert fed(seed_feed, idle=True) == (SAME + 2_000, 2_001)
    assert seed_feed.waiting
    assert seed_feed.step(AHEAD, 1, idle=True).total() == 1_000, "those hosts are done"
