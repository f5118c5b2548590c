"""The limit of requests in flight, divided among workers that come and go."""

from __future__ import annotations

from msgspec import structs
from tests.support.event_list import EventList

from muniment.crawl.orchestrator.concurrency import Concurrency
from muniment.crawl.protocol import InflightShare
from muniment.model.event import ChangeEvent
from muniment.settings.option_table import Settings


class MeasuredConcurrency(Concurrency):
    """A limit whose messages are kept."""

    def __init__(self, **settings):
        self.told, self.log = [], EventList()
        super().__init__(
            structs.replace(Settings(), **settings), self.log, lambda worker, said: self.told.append((worker, said))
        )

    def news(self):
        told, self.told = self.told, []
        return told


def test_workers_have_equal_parts_and_hear_of_new_ones():
    limit = MeasuredConcurrency(start_inflight=65)
    limit.staff([0])
    assert (limit.part(0), limit.news()) == (65, [(0, InflightShare(65))])
    limit.staff([0, 3])
    assert limit.news() == [(0, InflightShare(33)), (3, InflightShare(32))]
    limit.staff([3])
    assert limit.news() == [(3, InflightShare(65))]


def test_it_grows_while_it_is_wanted_and_tells_only_changes():
    limit = MeasuredConcurrency(start_inflight=64, inflight=100)
    limit.staff([0])
    limit.news()
    for now in range(1_000, 2_000, 10):
        limit.wanted(now)
    assert limit.news() == [(0, InflightShare(96)), (0, InflightShare(100))]


def silence(limit, hosts, now=50_000, asked_at=40_000, held=20):
    for host in hosts:
        limit.fell_silent(host, asked_at, now)
    limit.tick(now, lambda: held)


def test_a_burst_over_many_domains_halves_it_once():
    limit = MeasuredConcurrency(start_inflight=200)
    limit.staff([0, 1])
    limit.news()
    silence(limit, [f"www.site{n}.example" for n in range(8)])
    assert limit.news() == [(0, InflightShare(50)), (1, InflightShare(50))]
    assert limit.crowded(59_000)
    silence(limit, [f"www.site{n}.example" for n in range(20)], now=61_000, asked_at=49_000)
    assert (limit.limit, limit.crowded(61_000)) == (100, False), "what was asked before the cut is no news"
    assert limit.log.published == [ChangeEvent("muniment", "requests in flight", 200, 100)]


def test_no_more_hosts_are_asked_than_there_are_requests_however_many_workers_hold():
    limit = MeasuredConcurrency(start_inflight=400, inflight=2_000)
    silence(limit, [f"site{n}.example" for n in range(99)], held=9_500)
    assert limit.limit == 400
    silence(limit, ["site99.example"], held=9_500)
    assert limit.limit == 200


def test_what_a_person_changes_ends_no_calm():
    limit = MeasuredConcurrency(start_inflight=400, inflight=2_000)
    silence(limit, [f"site{n}.example" for n in range(100)])
    limit.change(structs.replace(Settings(), inflight=1_000))
    limit.wanted(59_999)
    assert limit.limit == 200
    limit.wanted(60_000)
    assert limit.limit == 232, "by a step, as after every cut"


def test_a_cut_at_the_least_limit_is_no_event():
    limit = MeasuredConcurrency(start_inflight=32, min_inflight=32)
    silence(limit, [f"site{n}.example" for n in range(20)])
    assert (limit.limit, limit.crowded(59_000), limit.log.published) == (32, True, [])


def test_many_hosts_of_one_domain_are_one():
    limit = MeasuredConcurrency(start_inflight=200)
    silence(limit, [f"blog{n}.one.example" for n in range(500)])
    assert limit.limit == 200


def test_hosts_that_fall_silent_one_after_the_other_are_no_burst():
    limit = MeasuredConcurrency(start_inflight=200)
    for number in range(100):
        silence(limit, [f"site{number}.example"], now=50_000 + number * 1_000)
    assert limit.limit == 200


def test_other_bounds_hold_at_once():
    limit = MeasuredConcurrency(start_inflight=200)
    limit.staff([0])
    limit.change(structs.replace(Settings(), inflight=10))
    assert limit.part(0) == 10
