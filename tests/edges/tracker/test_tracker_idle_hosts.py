"""Hosts that have nothing to do: what they take of memory and of time, over a real tracker."""

from __future__ import annotations

import gc
import sys
import tracemalloc
from collections.abc import Iterable
from contextlib import closing

import pytest
from test_tracker_hosts import HostTracker
from tests.support.pages import claim, finished

from muniment.clock import steady_ms
from muniment.crawl import protocol
from muniment.crawl.orchestrator.hosts import policy
from muniment.model.failure import Failure
from muniment.model.host import HostTerms
from muniment.rules.hosts.politeness import HostSignal

MOST_BYTES = 300
"""Of a host with nothing to do, over all processes: the workers forget it."""


def visit(tracked: HostTracker, names: Iterable[str], *, fails: bool = False) -> None:
    """One page of each host is fetched, by worker 0, whose connections are then closed."""
    names = list(names)
    with tracked.tracker.db.transaction():
        tracked.hosts.meet(names)
    for name in names:
        host_id = tracked.hosts.get(name).host_id
        tracked.schedule.add_pending(host_id, name, 1)
        tracked.policy.plan(host_id)
        assert (host_id, 1) in tracked.schedule.pick(0, 1_000, steady_ms())
        tracked.schedule.claimed(0, host_id, 1, 1, steady_ms())
        tracked.schedule.landed(0, host_id)
        page = claim(f"https://{name}/")
        if fails:
            tracked.policy.told(0, name, HostSignal("unreachable", "refused: nobody", f"https://{name}", steady_ms()))
        else:
            tracked.policy.answered(host_id, page.url, finished(page))
        tracked.policy.permits_held(0, {name: 0})
    with tracked.tracker.db.transaction():
        tracked.hosts.keep_noted()
    tracked.said.clear()


def hosts(kind: str, count: int) -> list[str]:
    return [f"www.{kind}{number:05d}.example" for number in range(count)]


@pytest.fixture
def tracked(new_place):
    with closing(HostTracker(new_place())) as made:
        yield made


def test_a_host_with_nothing_to_do_takes_few_bytes(tracked: HostTracker) -> None:
    visit(tracked, hosts("warm", 500))
    gc.collect()
    tracemalloc.start()
    try:
        visit(tracked, hosts("h", 2_000))
        gc.collect()
        each = tracemalloc.get_traced_memory()[0] / 2_000
    finally:
        tracemalloc.stop()
    print(f"{each:.0f} bytes each")
    assert each < MOST_BYTES


def test_what_a_host_was_told_is_known_when_it_gets_pages_again(tracked: HostTracker) -> None:
    """It has answered, so that it gets all its connections at once; one that was not asked yet begins with one."""
    visit(tracked, hosts("h", 2))
    [first, _] = hosts("h", 2)
    assert tracked.schedule.known(first) is None, "it was forgotten"
    tracked.schedule.add_worker(1)
    for name in (first, "new.example"):
        with tracked.tracker.db.transaction():
            tracked.hosts.meet([name])
        host_id = tracked.hosts.get(name).host_id
        tracked.schedule.add_pending(host_id, name, 10)
        tracked.policy.plan(host_id)
        tracked.schedule.claimed(0, host_id, 1, 1, steady_ms())
        granted = tracked.terms(name).permits
        assert granted == (3 if name == first else 1)


def test_a_host_that_is_waited_for_or_has_pages_is_not_forgotten(tracked: HostTracker) -> None:
    until = steady_ms() + 60_000
    tracked.policy.told(
        0, "a.example", HostSignal("throttled", "429 with Retry-After", "https://a.example", steady_ms(), 60_000)
    )
    tracked.policy.permits_held(0, {"a.example": 0, "b.example": 0, "never.met.example": 0})
    assert tracked.schedule.known("a.example") is not None
    assert tracked.schedule.known("b.example") is not None
    assert tracked.wait("a.example") > until - steady_ms() - 5_000


def test_words_about_a_host_that_was_forgotten_change_nothing(tracked: HostTracker) -> None:
    visit(tracked, hosts("h", 1))
    [name] = hosts("h", 1)
    tracked.policy.told(
        0, name, HostSignal("slow", str(Failure("timeout-header", "nothing")), f"https://{name}", steady_ms())
    )
    assert tracked.said == [(0, protocol.HostUpdate([HostTerms(name, 0)], answer=True))]
    tracked.schedule.remove_worker(0, steady_ms())
    assert tracked.schedule.known(name) is None


def steps(tracked: HostTracker, met: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """Python calls that a failure of one host takes while two are silent and others were met; generators count each."""
    for name in ("a.example", "b.example"):
        tracked.answers(name)
    visit(tracked, hosts(f"m{met}", met))
    with tracked.tracker.db.transaction():
        tracked.hosts.meet(["z.example"])
    tracked.schedule.add_pending(tracked.hosts.get("z.example").host_id, "z.example", 1)
    tracked.answers("z.example")
    later = steady_ms() + 120_000
    monkeypatch.setattr(policy, "steady_ms", lambda: later)
    for name in ("a.example", "b.example"):
        tracked.fails(name, "timeout-connect: nothing")
    calls = 0

    def count(_frame: object, event: str, _arg: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        tracked.fails("a.example", "timeout-connect: nothing")
    finally:
        sys.setprofile(None)
    assert not tracked.policy.lost, "one that answered is not silent"
    return calls


def test_a_failure_costs_the_same_however_many_hosts_were_met(new_place, monkeypatch) -> None:
    costs = []
    for met in (30, 1_000):
        with closing(HostTracker(new_place())) as tracked, monkeypatch.context() as patch:
            costs.append(steps(tracked, met, patch))
    few, many = costs
    assert many < 1.5 * few
