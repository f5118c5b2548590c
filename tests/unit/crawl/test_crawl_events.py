"""Events reach every listener, and no listener holds up who publishes them."""

from __future__ import annotations

import logging
import threading
import time
import tracemalloc

import pytest
from tests.support.event_list import EventList

from muniment.crawl.events import Publisher
from muniment.crawl.ports import Events
from muniment.crawl.progress import Progress
from muniment.model.event import EventBatch, PageEvent, StopEvent, TransferEvent

PAGE = PageEvent("https://a.example/", "a.example", 1, 200, "", True, "", 100, 5)


@pytest.mark.parametrize("make", [Publisher, EventList])
def test_listeners_get_events_in_order(make: type[Publisher | EventList]) -> None:
    events: Events = make()
    progress, seen = Progress(), []
    events.listen(progress.take)
    events.listen(seen.append)
    events.publish(TransferEvent(5), PAGE, PAGE)
    events.publish()
    events.publish(StopEvent("interrupted"))
    assert [batch.events for batch in seen] == [(TransferEvent(5), PAGE, PAGE), (StopEvent("interrupted"),)]
    assert progress.slow_hosts() == (("a.example", 5),)


def test_a_durable_log_gets_events_before_the_commit_and_nobody_else_does() -> None:
    events, before, after = Publisher(), [], []
    events.prepare(lambda: pytest.fail("made for nobody"))
    events.listen(before.append, before_commit=True)
    events.listen(after.append)
    events.prepare(lambda: [PAGE])
    assert ([batch.events for batch in before], after) == ([(PAGE,)], [])
    events.publish(PAGE)
    assert (len(before), len(after)) == (1, 1)


def test_an_error_of_the_log_is_the_publishers() -> None:
    events = Publisher()

    def fail(_: EventBatch) -> None:
        raise OSError("full")

    events.listen(fail)
    with pytest.raises(OSError, match="full"):
        events.publish(PAGE)


def publish(events: Publisher, count: int) -> float:
    begun = time.thread_time()
    for _ in range(count // 100):
        events.publish(*[PageEvent(f"https://a.example/{n}", "a", 1, 200, "", True, "", 100, 5) for n in range(100)])
    return time.thread_time() - begun


def test_a_listener_that_blocks_holds_nobody_up_and_takes_no_memory() -> None:
    blocked, events = threading.Event(), Publisher()
    stuck = events.subscribe(lambda _: blocked.wait(60), most=1_000)
    slow = events.subscribe(lambda _: time.sleep(0.01), PageEvent, most=500)
    none = events.subscribe(lambda _: None, StopEvent)
    tracemalloc.start()
    try:
        begun = time.monotonic()
        publish(events, 100_000)
        assert time.monotonic() - begun < 20, "a listener was waited for"
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
        blocked.set()
    assert kept < 2_000_000
    assert stuck.dropped == 99_000
    assert 0 < slow.dropped < 100_000
    assert none.dropped == 0
    events.close()


@pytest.mark.alone
def test_publishing_takes_no_longer_for_a_slow_listener() -> None:
    blocked, alone, events = threading.Event(), Publisher(), Publisher()
    alone.subscribe(lambda _: None, most=1_000)
    events.subscribe(lambda _: blocked.wait(60), most=1_000)
    quick, beside = (min(publish(one, 100_000) for _ in range(3)) for one in (alone, events))
    blocked.set()
    assert beside < 1.5 * quick + 0.1


def test_what_has_room_arrives_with_its_time_before_the_end() -> None:
    events, seen = Publisher(), []
    subscription = events.subscribe(seen.append, PageEvent, most=3)
    events.publish(StopEvent("terminated"), PAGE, PAGE)
    events.close()
    assert [batch.events for batch in seen] == [(PAGE, PAGE)]
    assert abs(seen[0].at / 1000 - time.time()) < 60
    assert subscription.dropped == 0


def test_a_listener_that_fails_gets_no_more(caplog: pytest.LogCaptureFixture) -> None:
    events, calls = Publisher(), []

    def fail(batch: EventBatch) -> None:
        calls.append(batch)
        raise OSError("gone")

    subscription = events.subscribe(fail, most=2)
    with caplog.at_level(logging.ERROR):
        events.publish(PAGE)
        events.close()
        for _ in range(5):
            events.publish(PAGE)
    assert len(calls) == 1
    assert subscription.dropped == 4
    assert "gone" in caplog.text
