"""Hosts that have nothing to do: what they take of memory and of time, over a real tracker."""

from __future__ import annotations

import gc
import sys
import tracemalloc
from collections.abc import Iterable
from contextlib import closing

import pytest
from test_tracker_hosts import TrackerConnection
from tests.support.pages import claim, finished

from muniment.clock import steady_ms
from muniment.crawl import protocol
from muniment.crawl.orchestrator import host_policy as hosts_desk
from muniment.model.failure import Failure
from muniment.model.host import HostTerms
from muniment.rules.hosts.politeness import HostSignal

MOST_BYTES = 300
"""Of a host with nothing to do, over all processes: the workers forget it."""


def visit(desk: TrackerConnection, names: Iterable[str], *, fails: bool = False) -> None:
    """One page of each host is fetched, by worker 0, whose connections are then closed."""
    names = list(names)
    with desk.tracker.db.transaction():
        desk.hosts.meet(names)
    for name in names:
        host_id = desk.hosts.get(name).host_id
        desk.schedule.add_pending(host_id, name, 1)
        desk.desk.plan(host_id)
        assert (host_id, 1) in desk.schedule.pick(0, 1_000, steady_ms())
        desk.schedule.claimed(0, host_id, 1, 1, steady_ms())
        desk.schedule.landed(0, host_id)
        page = claim(f"https://{name}/")
        if fails:
            desk.desk.told(0, name, HostSignal("unreachable", "refused: nobody", f"https://{name}", steady_ms()))
        else:
            desk.desk.answered(host_id, page.url, finished(page))
        desk.desk.permits_held(0, {name: 0})
    with desk.tracker.db.transaction():
        desk.hosts.keep_noted()
    desk.said.clear()


def hosts(kind: str, count: int) -> list[str]:
    return [f"www.{kind}{number:05d}.example" for number in range(count)]


@pytest.fixture
def desk(new_place):
    with closing(TrackerConnection(new_place())) as made:
        yield made


def test_a_host_with_nothing_to_do_takes_few_bytes(desk: TrackerConnection) -> None:
    visit(desk, hosts("warm", 500))
    gc.collect()
    tracemalloc.start()
    try:
        visit(desk, hosts("h", 4_000))
        gc.collect()
        each = tracemalloc.get_traced_memory()[0] / 4_000
    finally:
        tracemalloc.stop()
    print(f"{each:.0f} bytes each")
    assert each < MOST_BYTES


def test_what_a_host_was_told_is_known_when_it_gets_pages_again(desk: TrackerConnection) -> None:
    """It has answered, so that it gets all its connections at once; one that was not asked yet begins with one."""
    visit(desk, hosts("h", 2))
    [first, _] = hosts("h", 2)
    assert desk.schedule.known(first) is None, "it was forgotten"
    desk.schedule.add_worker(1)
    for name in (first, "new.example"):
        with desk.tracker.db.transaction():
            desk.hosts.meet([name])
        host_id = desk.hosts.get(name).host_id
        desk.schedule.add_pending(host_id, name, 10)
        desk.desk.plan(host_id)
        desk.schedule.claimed(0, host_id, 1, 1, steady_ms())
        granted = desk.terms(name).permits
        assert granted == (3 if name == first else 1)


def test_a_host_that_is_waited_for_or_has_pages_is_not_forgotten(desk: TrackerConnection) -> None:
    until = steady_ms() + 60_000
    desk.desk.told(
        0, "a.example", HostSignal("throttled", "429 with Retry-After", "https://a.example", steady_ms(), 60_000)
    )
    desk.desk.permits_held(0, {"a.example": 0, "b.example": 0, "never.met.example": 0})
    assert desk.schedule.known("a.example") is not None
    assert desk.schedule.known("b.example") is not None
    assert desk.wait("a.example") > until - steady_ms() - 5_000


def test_words_about_a_host_that_was_forgotten_change_nothing(desk: TrackerConnection) -> None:
    visit(desk, hosts("h", 1))
    [name] = hosts("h", 1)
    desk.desk.told(
        0, name, HostSignal("slow", str(Failure("timeout-header", "nothing")), f"https://{name}", steady_ms())
    )
    assert desk.said == [(0, protocol.HostUpdate([HostTerms(name, 0)], answer=True))]
    desk.schedule.remove_worker(0, steady_ms())
    assert desk.schedule.known(name) is None


def steps(desk: TrackerConnection, met: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """Python calls that a failure of one host takes while two are silent and others were met; generators count each."""
    for name in ("a.example", "b.example"):
        desk.answers(name)
    visit(desk, hosts(f"m{met}", met))
    with desk.tracker.db.transaction():
        desk.hosts.meet(["z.example"])
    desk.schedule.add_pending(desk.hosts.get("z.example").host_id, "z.example", 1)
    desk.answers("z.example")
    later = steady_ms() + 120_000
    monkeypatch.setattr(hosts_desk, "steady_ms", lambda: later)
    for name in ("a.example", "b.example"):
        desk.fails(name, "timeout-connect: nothing")
    calls = 0

    def count(_frame: object, event: str, _arg: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        desk.fails("a.example", "timeout-connect: nothing")
    finally:
        sys.setprofile(None)
    assert not desk.desk.lost, "one that answered is not silent"
    return calls


def test_a_failure_costs_the_same_however_many_hosts_were_met(new_place, monkeypatch) -> None:
    costs = []
    for met in (30, 1_000):
        with closing(TrackerConnection(new_place())) as desk, monkeypatch.context() as patch:
            costs.append(steps(desk, met, patch))
    few, many = costs
    assert many < 1.5 * few
