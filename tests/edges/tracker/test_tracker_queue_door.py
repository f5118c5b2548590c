"""The queue door over a real tracker: what crosses it travels as bytes, and a call made again changes nothing."""

from __future__ import annotations

from contextlib import closing
from typing import Any, get_type_hints

import msgspec
import pytest
from test_tracker_hosts import at_once
from tests.support.pages import finish_batch, finished
from tests.support.remote_queue import CALLS
from tracker_harness import A, Tracker, site

from muniment.crawl.ports import Queue
from muniment.errors import ProtocolError
from muniment.model.change import AddIgnore
from muniment.model.host import HostRecord, HostWaits
from muniment.model.queue import ChangeRequest, ClaimRequest, FinishRequest, UpkeepRequest
from muniment.rules.robots.validity import RobotsAnswer
from muniment.tracker.queue.local import LocalQueue

START, ONE, TWO = site(""), site("one"), site("two")


class Door:
    """A queue whose calls are made twice; the answers are the same, and are as they were when they were bytes."""

    def __init__(self, tracker: Tracker) -> None:
        self.tracker = tracker
        self.queue = LocalQueue(tracker.frontier)

    def __getattr__(self, name: str) -> Any:
        return lambda *arguments: self._call(name, *arguments)

    def _call(self, name: str, *arguments: Any) -> Any:
        first = at_once(getattr(self.queue, name)(*arguments))
        after = self._rows()
        assert at_once(getattr(self.queue, name)(*arguments)) == first
        assert self._rows() == after
        kind = get_type_hints(getattr(Queue, name))["return"]
        again = msgspec.msgpack.decode(msgspec.msgpack.encode(first), type=kind)
        assert again == first
        return again

    def _rows(self) -> Any:
        return self.tracker.states(), self.tracker.sums(), self.tracker.frontier.pending()

    def claim(self, ask: int, now: int = 0) -> Any:
        return self._call("claim", ClaimRequest(ask, [(host, 10) for host in self.tracker.frontier.pending()], now))


@pytest.fixture
def door(new_place):
    with closing(Tracker(new_place(), START)) as tracker:
        yield Door(tracker)


def test_there_are_no_more_calls_than_a_local_queue_has() -> None:
    assert set(CALLS) <= set(vars(LocalQueue))


def test_pages_come_and_go_once(door: Door) -> None:
    [waiting] = door.pending(0).changes.pending
    assert (waiting.name, waiting.more) == ("a.example", 1)
    [claim] = door.claim(1).claims
    assert (claim.url, claim.host_id) == (START, waiting.host_id)
    batch = finish_batch([finished(claim, [(ONE, A), (TWO, A)])], [(ONE, A), (TWO, A)])
    report = door.finish(FinishRequest(2, batch, 0, 1))
    assert report.accepted == [claim.page_id]
    assert [(one.name, one.more) for one in report.changes.pending] == [("a.example", 2)]
    assert report.changes.state.totals.captured == 1
    assert door.tracker.attempts(START) == [(1, 200, "")]


def test_pages_that_go_back_are_claimed_anew_and_the_old_claim_is_worth_nothing(door: Door) -> None:
    [claim] = door.claim(1).claims
    door.release([(claim.page_id, claim.claim_id)])
    [again] = door.claim(2).claims
    door.release([(claim.page_id, claim.claim_id)])
    assert door.tracker.states() == {START: "CLAIMED"}
    assert door.finish(FinishRequest(3, finish_batch([finished(claim)], []), 0, 1)).accepted == []
    assert door.finish(FinishRequest(4, finish_batch([finished(again)], []), 0, 1)).accepted == [again.page_id]


def test_a_call_that_comes_after_a_later_one_changes_nothing(door: Door) -> None:
    [claim] = door.claim(1).claims
    door.release([(claim.page_id, claim.claim_id)])
    door.claim(2)
    with pytest.raises(ProtocolError, match="call 1 of the queue came after call 2"):
        door.claim(1)


def test_a_change_is_made_once_and_pages_are_judged_by_it(door: Door) -> None:
    [claim] = door.claim(1).claims
    door.finish(FinishRequest(2, finish_batch([finished(claim, [(ONE, A), (TWO, A)])], [(ONE, A), (TWO, A)]), 0, 1))
    changed = door.change(ChangeRequest(3, AddIgnore("me", "two"), 2))
    assert [made.after for made in changed.made] == ["two"]
    assert changed.changes.state.judging
    kept = door.upkeep(UpkeepRequest(4)).changes
    assert [(one.name, one.more, one.fewer) for one in kept.pending] == [("a.example", 0, 1)]
    assert kept.skipped == [(TWO, "ignore: two")]
    assert not kept.state.at_work


def test_what_is_kept_of_a_host_comes_with_its_pages(door: Door) -> None:
    [waiting] = door.pending(0).changes.pending
    assert waiting.record is None
    record = HostRecord(waiting.host_id, "https", HostWaits(2_000, 5, "429", 1))
    door.keep_hosts([record], {})
    [waiting] = door.pending(0).changes.pending
    assert waiting.record == record
    door.tracker.reopen()
    assert door.tracker.frontier.hosts.record(waiting.host_id) == record


def test_the_rest_is_asked_and_kept(door: Door) -> None:
    answer = RobotsAnswer(200, "User-agent: *", 7)
    assert door.robots("https://a.example") is None
    door.keep_robots("https://a.example", answer)
    assert door.robots("https://a.example") == answer
    assert door.known([b"x" * 20]) == {}
    assert door.cookies(START, 0) == ""
    assert door.settle(5) == "ACTIVE"
    assert door.repeats(0) == []
