"""Held pages: how many of a host are under way, how far ahead of the tracker, and on which terms."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.pages import claim

from muniment.crawl.worker.hosts.held_pages import HeldPages
from muniment.fetch.permits import Permits
from muniment.model.host import HostTerms
from muniment.settings.option_table import DelayRange

A, B = "a.example", "b.example"
A_PAGE, B_PAGE = f"https://{A}/0", f"https://{B}/0"


def holding(inflight=100, delay=(0, 0), **hosts):
    """(pages, permits) of hosts a and b."""
    made = HeldPages(inflight, DelayRange(*delay), Permits(6))
    for name, (pages, permits) in hosts.items():
        host = f"{name}.example"
        made.add([claim(f"https://{host}/{n}", n) for n in range(pages)], [HostTerms(host, permits)])
    return made


def permit(made, host, permits):
    """Other permits of a host that is here."""
    return made.treat(HostTerms(host, permits))


def landed(made, host):
    made.landed(host)
    made.acknowledged(host)


def start(made):
    return [made.take(host) for host in made.startable()]


def test_as_many_start_as_there_are_permits():
    made = holding(a=(10, 3), b=(10, 2))
    assert sorted(made.startable()) == [A, A, A, B, B]
    assert all(start(made))
    assert (made.running, made.queued) == (5, 15)
    assert made.startable() == []


def test_pages_start_in_the_order_they_came():
    made = holding(a=(3, 1))
    urls = []
    for _ in range(3):
        urls.append(made.take(A).url)
        made.landed(A)
        made.acknowledged(A)
    assert urls == [f"https://{A}/{n}" for n in range(3)]


def test_requisites_start_before_pages_and_in_their_order():
    made = holding(a=(4, 1))
    assert made.take(A).url[-1] == "0"
    made.add([claim(f"https://{A}/i{n}", nice=-1) for n in range(2)])
    made.add([claim(f"https://{A}/4"), claim(f"https://{A}/i2", nice=-1)])
    taken = []
    for _ in range(7):
        made.landed(A)
        made.acknowledged(A)
        taken.append(made.take(A).url.rpartition("/")[2])
    assert taken == ["i0", "i1", "i2", "1", "2", "3", "4"]
    assert made.queued == 0


def test_a_page_that_is_put_back_waits_for_requisites_that_came_since():
    made = holding(a=(2, 1))
    page = made.take(A)
    made.add([claim(f"https://{A}/image", nice=-1)])
    made.put_back(page)
    order = []
    for _ in range(3):
        order.append(made.take(A).url.rpartition("/")[2])
        made.landed(A)
        made.acknowledged(A)
    assert order == ["image", "0", "1"]


def test_without_a_permit_nothing_starts():
    made = holding(a=(5, 0))
    assert made.startable() == []
    assert made.take(A) is None


def test_what_is_in_flight_over_all_hosts_is_bounded():
    made = holding(4, a=(10, 3), b=(10, 3))
    assert len(start(made)) == 4
    assert made.startable() == []
    assert made.take(B) is None
    made.landed(A)
    assert len(made.startable()) == 1


@pytest.mark.parametrize("permits", [1, 2, 6])
def test_at_most_three_pages_a_permit_are_ahead_of_the_tracker(permits):
    made = holding(a=(100, permits))
    taken = 0
    while started := start(made):
        taken += len(started)
        for _ in started:
            made.landed(A)
    assert taken == 3 * permits
    made.acknowledged(A)
    assert made.startable() == [A]


def test_a_lowered_permit_lets_what_runs_land_and_starts_no_more():
    made = holding(a=(10, 4))
    start(made)
    permit(made, A, 1)
    for _ in range(3):
        made.landed(A)
        made.acknowledged(A)
        assert made.take(A) is None
    made.landed(A)
    made.acknowledged(A)
    assert made.take(A) is not None


def test_all_that_has_not_started_is_given_back():
    made = holding(a=(5, 2), b=(3, 0))
    started = start(made)
    back = made.give_back()
    assert len(started) + len(back) == 8
    assert made.queued == 0
    assert made.give_back() == []


def test_an_idle_host_is_forgotten_when_all_is_acknowledged_and_its_permits_are_back():
    """Told before the tracker knows of every page, that would be taken for an answer that crossed newer claims."""
    permits = Permits(6)
    made = HeldPages(100, DelayRange(), permits)
    made.add([claim(f"https://{A}/")], [HostTerms(A, 2)])
    start(made)
    assert made.give_back_permits() == {}
    made.landed(A)
    assert made.give_back_permits() == {}
    assert (made.permits(A), A in permits) == (2, True)
    made.acknowledged(A)
    assert made.give_back_permits() == {A: 0}
    assert (made.permits(A), A in permits) == (0, False)
    assert made.give_back_permits() == {}


def test_permits_are_back_when_the_connections_are_closed():
    permits = Permits(6)
    made = HeldPages(100, DelayRange(), permits)
    made.add([claim(f"https://{A}/")], [HostTerms(A, 3)])
    permits[A].open = 3
    assert not permit(made, A, 3)
    assert permit(made, A, 2)
    assert made.give_back_permits() == {}
    permits[A].open = 2
    assert made.give_back_permits() == {A: 2}
    assert made.give_back_permits() == {}, "once"
    start(made)
    landed(made, A)
    assert made.give_back_permits() == {}
    permits[A].open = 0
    assert made.give_back_permits() == {A: 0}


def test_terms_of_a_host_that_is_not_here_change_nothing():
    permits = Permits(6)
    made = HeldPages(100, DelayRange(), permits)
    assert not made.treat(HostTerms(A, 3, 1_000, 60_000, {f"https://{A}": "dead-host: gone"}))
    known = made.permits(A), made.gap_ms(A), made.is_left_alone(A, A_PAGE), made.dead, len(permits)
    assert known == (0, 0, False, {}, 0)


def test_a_guest_has_one_connection_where_the_host_has_no_permits():
    permits = Permits(6)
    made = HeldPages(100, DelayRange(), permits)
    made.enter(A)
    made.enter(A)
    assert permits[A].limit == 1
    made.treat(HostTerms(A, 0))
    made.leave(A)
    assert permits[A].limit == 1
    made.leave(A)
    assert (permits[A].limit, made.give_back_permits(), A in permits) == (0, {}, False)
    made.add([claim(f"https://{A}/")], [HostTerms(A, 3)])
    made.enter(A)
    assert permits[A].limit == 3


def test_what_is_dead_is_known_while_its_host_is_here():
    made = holding(a=(1, 1), b=(1, 1))
    made.treat(HostTerms(A, 1, dead={A: "gone", f"https://{A}": "gone too"}))
    made.treat(HostTerms(B, 1, dead={f"https://{B}": "gone"}))
    assert sorted(made.dead) == [A, f"https://{A}", f"https://{B}"]
    made.treat(HostTerms(A, 1, dead={A: "gone"}))
    assert sorted(made.dead) == [A, f"https://{B}"]
    start(made)
    landed(made, A)
    made.give_back_permits()
    assert list(made.dead) == [f"https://{B}"]


def test_without_a_delay_nothing_waits():
    made = holding(a=(3, 3))
    assert [made.start(A, A_PAGE) for _ in start(made)] == [True, True, True]
    assert made.wait(A) <= 0


def test_with_a_delay_one_lane_begins_at_a_time_and_its_request_sets_the_clock():
    made = holding(delay=(1_000, 1_000), a=(5, 5))
    assert made.startable() == [A]
    assert made.take(A)
    assert made.start(A, A_PAGE)
    assert 0.9 < made.wait(A) <= 1.0
    assert (made.startable(), made.take(A), made.start(A, A_PAGE)) == ([], None, False)


def test_a_delay_is_drawn_between_its_bounds(monkeypatch):
    now, starts = [1000.0], []
    for module in ("held_pages", "held_host"):
        monkeypatch.setattr(f"muniment.crawl.worker.hosts.{module}.monotonic", lambda: now[0])
    made = holding(delay=(100, 300), a=(50, 50))
    for _ in range(50):
        assert made.start(A, A_PAGE)
        starts.append(now[0])
        now[0] += made.wait(A)
    gaps = [later - earlier for earlier, later in pairwise(starts)]
    assert all(0.0999 < gap < 0.3001 for gap in gaps)
    assert max(gaps) - min(gaps) > 0.05


def test_hosts_do_not_wait_for_each_other():
    made = holding(delay=(5_000, 5_000), a=(1, 1), b=(1, 1))
    assert [made.start(host, page) for host, page in ((A, A_PAGE), (B, B_PAGE)) if made.take(host)] == [True, True]


def test_a_crawl_delay_counts_from_the_last_request():
    made = holding(a=(3, 3))
    start(made)
    assert made.start(A, A_PAGE)
    made.treat(HostTerms(A, 3, 60_000))
    assert (made.gap_ms(A), made.start(A, A_PAGE)) == (60_000, False)
    assert 59 < made.wait(A) <= 60
    made.add([], [HostTerms(A, 3, 2_000)])
    assert 1.9 < made.wait(A) <= 2, "claims bring the terms, too"
    made.treat(HostTerms(A, 3))
    assert made.wait(A) <= 0


def test_the_delay_is_kept_when_a_host_was_idle_and_forgotten_in_between():
    """Its connection was closed at once, its permit given back; then the tracker brought another page."""
    made = holding(delay=(60_000, 60_000), a=(1, 1))
    start(made)
    assert made.start(A, A_PAGE)
    made.landed(A)
    made.acknowledged(A)
    assert made.give_back_permits() == {}, "its permit would go to a worker that does not know of the delay"
    made.add([claim(f"https://{A}/next")], [HostTerms(A, 1)])
    assert made.take(A) is None
    assert made.wait(A) > 50


def test_a_host_that_waits_gives_its_pages_back_and_starts_nothing():
    made = holding(a=(5, 2), b=(1, 1))
    taken = made.take(A)
    assert made.give_back_left() == []
    made.treat(HostTerms(A, 2, wait_ms=60_000))
    assert [page.url[-1] for page in made.give_back_left()] == ["1", "2", "3", "4"]
    assert (made.queued, made.is_left_alone(A, A_PAGE), made.is_left_alone(B, B_PAGE)) == (1, True, False)
    assert not made.start(A, A_PAGE), "what was taken may not be sent either"
    made.put_back(taken)
    assert (made.running, made.queued, made.startable()) == (0, 1, [B])
    made.treat(HostTerms(A, 2))
    assert made.give_back_left() == [taken], "what was left goes back, though the wait has ended since"
    made.add([taken])
    assert made.take(A) is taken
    assert made.start(A, A_PAGE)


def test_what_a_worker_has_seen_itself_counts_until_the_orchestrator_has_answered():
    """Terms that were sent before its news arrived do not know of it."""
    made = holding(a=(2, 2))
    made.leave_alone(A, 60)
    assert len(made.give_back_left()) == 2
    made.add([claim(f"https://{A}/")], [HostTerms(A, 2)])
    made.treat(HostTerms(A, 1, 500))
    assert (59 < made.wait(A) <= 60, made.startable()) == (True, [])
    made.treat(HostTerms(A, 1, wait_ms=90_000))
    assert 89 < made.wait(A) <= 90
    made.treat(HostTerms(A, 1), answer=True)
    assert (made.is_left_alone(A, A_PAGE), made.give_back_left() != []) == (False, True)


def test_a_host_that_is_not_here_may_be_left_alone():
    made = holding()
    made.leave_alone(A, 60)
    assert (made.give_back_left(), made.is_left_alone(A, A_PAGE)) == ([], False)


@given(st.lists(st.sampled_from(["add", "permit", "take", "land", "ack", "give back"]).flatmap(
    lambda deed: st.tuples(st.just(deed), st.sampled_from([A, B]), st.integers(0, 4))
), max_size=60))  # fmt: skip
def test_counts_agree_and_bounds_hold_in_any_order(deeds):
    made, running, unacked, queued, permits = HeldPages(5, DelayRange(), Permits(6)), {}, {}, {}, {}
    for deed, host, n in deeds:
        if deed == "add":
            made.add([claim(f"https://{host}/") for _ in range(n + 1)])
            queued[host] = queued.get(host, 0) + n + 1
        elif deed == "permit":
            made.add([], [HostTerms(host, n)])
            permits[host] = n
        elif deed == "take" and host in queued and made.take(host):
            running[host], unacked[host] = running.get(host, 0) + 1, unacked.get(host, 0) + 1
            queued[host] -= 1
            assert running[host] <= permits[host]
            assert unacked[host] <= 3 * permits[host]
            assert sum(running.values()) <= 5
        elif deed == "land" and running.get(host):
            made.landed(host)
            running[host] -= 1
        elif deed == "ack" and unacked.get(host, 0) > running.get(host, 0):
            made.acknowledged(host)
            unacked[host] -= 1
        elif deed == "give back":
            for name in made.give_back_permits():
                permits[name] = 0
            for name in (A, B):
                if not (queued.get(name) or running.get(name) or unacked.get(name)):
                    queued.pop(name, None)
        assert made.running == sum(running.values())
        assert made.queued == sum(queued.values())
        for name in made.startable():
            assert permits[name] > running.get(name, 0)


def test_another_pace_begins_with_a_whole_gap_from_now():
    made = holding(delay=(60_000, 60_000), a=(9, 3))
    made.take(A)
    assert made.start(A, A_PAGE)
    assert 59 < made.wait(A) <= 60
    made.set_delay(DelayRange(2_000, 2_000))
    assert 1.9 < made.wait(A) <= 2
    made.set_delay(DelayRange())
    assert made.wait(A) <= 0


def test_fewer_in_flight_from_now_on_and_what_waits_for_it_says_so():
    made = holding(a=(9, 3), b=(9, 3))
    made.take(A), made.take(B)
    assert (made.full, made.startable()) == (False, [A, A, B, B])
    made.set_inflight(2)
    assert (made.startable(), made.take(A), made.full) == ([], None, True)
    made.landed(B)
    assert made.startable() == [A], "the one that waits longest"


def test_over_all_hosts_too_there_is_an_end_to_what_waits_for_the_tracker():
    """Each of many hosts has room for one page more; a worker's memory has not."""
    made = holding()
    names = [f"h{number}.example" for number in range(1_000)]
    claims = [claim(f"https://{name}/", number) for number, name in enumerate(names)]
    made.add(claims, [HostTerms(name, 1) for name in names])
    landed = []
    while started := made.startable():
        for name in started:
            assert made.take(name)
            made.landed(name)
            landed.append(name)
    assert len(landed) == 500
    assert made.take(names[-1]) is None
    assert not made.full, "more requests in flight would not help"
    for name in landed[:30]:
        made.acknowledged(name)
    assert len(made.startable()) == 100


OTHER = f"http://{A}:81"


def mixed():
    """A host of two origins, of which the worker has three pages each."""
    made = HeldPages(100, DelayRange(), Permits(6))
    urls = [f"{origin}/{n}" for n in range(3) for origin in (f"https://{A}", OTHER)]
    made.add([claim(url, n) for n, url in enumerate(urls)], [HostTerms(A, 6)])
    return made


def test_pages_of_an_origin_that_is_left_alone_go_back_and_those_of_the_others_start():
    made = mixed()
    assert not made.treat(HostTerms(A, 6, rests={OTHER: 60_000}))
    assert [one.url for one in made.give_back_left()] == [f"{OTHER}/{n}" for n in range(3)]
    assert [one.url for one in start(made)] == [f"https://{A}/{n}" for n in range(3)]
    assert (made.queued, made.start(A, f"{OTHER}/0"), made.start(A, A_PAGE)) == (0, False, True)
    made.add([claim(f"{OTHER}/9", 9)])
    assert [one.url for one in made.give_back_left()] == [f"{OTHER}/9"], "it crossed the word on the wire"
    made.treat(HostTerms(A, 6))
    assert made.start(A, f"{OTHER}/0")


def test_a_page_of_such_an_origin_that_was_taken_goes_back_too():
    made = mixed()
    _, taken = made.take(A), made.take(A)
    made.leave_alone(A, 60, OTHER)
    assert (made.is_left_alone(A, f"{OTHER}/0"), made.is_left_alone(A, A_PAGE)) == (True, False)
    assert 50 < made.left_alone_for(A, f"{OTHER}/0") <= 60
    made.give_back_left()
    made.put_back(taken)
    assert made.give_back_left() == [taken]


def test_what_a_worker_has_seen_of_an_origin_counts_until_the_orchestrator_has_answered():
    made = mixed()
    made.leave_alone(A, 60, OTHER)
    made.treat(HostTerms(A, 6))
    assert made.is_left_alone(A, f"{OTHER}/0"), "this was sent before the news came"
    made.treat(HostTerms(A, 6), answer=True)
    assert not made.is_left_alone(A, f"{OTHER}/0")
