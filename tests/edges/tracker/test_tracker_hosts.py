"""Hosts: their waits are kept over a resume, and the desk that keeps them tells death from a lost network."""

from __future__ import annotations

import json
import os
import time
from contextlib import closing

import pytest
from msgspec import structs
from sqlalchemy import select, update
from tests.support.pages import finish_batch, finished
from tracker_harness import Tracker, site

from muniment.archive.event_log import EventLog
from muniment.clock import now_ms, steady_ms
from muniment.crawl import protocol
from muniment.crawl.events import Publisher
from muniment.crawl.orchestrator.host_policy import HostPolicy
from muniment.crawl.orchestrator.schedule import Schedule
from muniment.model.host import HostTerms, HostWaits
from muniment.rules.hosts.politeness import HostSignal
from muniment.tracker.queue.local import LocalQueue
from muniment.tracker.schema.tables import hosts

NAMES = ("a.example", "b.example", "c.example")


def at_once(call):
    """What a call of a queue in this process returns: it never waits."""
    try:
        call.send(None)
    except StopIteration as end:
        return end.value
    raise AssertionError("it waits")


class KeptPolicy(HostPolicy):
    """What changes is kept as it is while pages finish."""

    def _then_kept(self, result):
        at_once(self.keep())
        for record in self.known.take_news():
            self.known._queue._frontier.hosts.note(record)
        return result

    def told(self, *what, **how):
        return self._then_kept(super().told(*what, **how))

    def heard(self, *what):
        return self._then_kept(super().heard(*what))

    def learn(self, *what):
        return self._then_kept(super().learn(*what))

    def answered(self, *what):
        return self._then_kept(super().answered(*what))


class TrackerConnection:
    """A desk over a real tracker with one worker and a page of each host; `said` is what the worker was told."""

    def __init__(self, place, *, resumed=False, names=NAMES):
        self.tracker = Tracker(place, *(site("", host) for host in names))
        self.log = place.directory / "crawl.jsonl"
        self.descriptor = os.open(self.log, os.O_RDWR | os.O_CREAT | os.O_APPEND)
        self.hosts = self.tracker.frontier.hosts
        self.schedule = Schedule(6)
        self.schedule.add_worker(0)
        self.said = []
        tell = lambda worker, message: self.said.append((worker, message))  # noqa: E731
        events = Publisher()
        events.listen(EventLog(self.descriptor, self.log).take)
        self.queue = LocalQueue(self.tracker.frontier)
        self.desk = KeptPolicy(self.queue, self.schedule, events, tell)
        self.desk.begin(now_ms(), resumed=resumed)
        for host in at_once(self.queue.pending(now_ms())).changes.pending:
            self.schedule.add_pending(host.host_id, host.name, host.more)
            self.desk.plan(host.host_id, host.record)

    def close(self):
        self.tracker.close()
        os.close(self.descriptor)

    def answers(self, name):
        self.desk.heard(self.schedule.known(name), f"https://{name}/", steady_ms())

    def fails(self, name, text="dns: no such name", kind="unreachable", **how):
        """It fails, as asked a long time after the failure before."""
        return self.desk.told(0, name, HostSignal(kind, text, name, now_ms() + 3_600_000), **how)

    def wait(self, name):
        """Milliseconds for which nothing more is asked of a host."""
        return max(0, self.desk._states[self.schedule.known(name)].until - steady_ms())

    def finish(self, name, error):
        """What becomes of the page of a host that fails so, and whether it goes back untried."""
        claim = self.tracker.take(site("", name))
        held = {claim.page_id: claim}
        batch = finish_batch([finished(claim, status=0, error=error)], [])
        return bool(self.desk.spare(batch, held)[1])

    def terms(self, name, worker=0):
        """How a worker is to treat a host."""
        return self.desk.updates.terms(worker, [self.schedule.known(name)], steady_ms())[0]

    def sent(self, worker=0):
        """The terms that a worker was sent, in their order."""
        return [terms for to, message in self.said if to == worker for terms in message.hosts]

    def events(self):
        return [json.loads(line) for line in self.log.read_text().splitlines()]


@pytest.fixture
def desk(new_place):
    with closing(TrackerConnection(new_place())) as made:
        yield made


def test_waits_are_kept_over_a_resume(new_place):
    place = new_place()
    until = now_ms() + 60_000
    with closing(TrackerConnection(place)) as first:
        first.hosts.keep_waits(1, HostWaits(2_000, until, "429 with Retry-After", 3))
        first.hosts.keep_waits(2, HostWaits(0, 1, "503", 1))
        first.hosts.keep_waits(2, HostWaits())
    with closing(TrackerConnection(place, resumed=True)) as again:
        assert again.hosts.waits == {1: HostWaits(2_000, until, "429 with Retry-After", 3)}
        due = dict(again.schedule.pick(0, 100, until - 1))
        assert sorted(due) == [2, 3]
        assert 1 in dict(again.schedule.pick(0, 100, until))
        assert [again.terms(name).gap_ms for name in NAMES] == [2_000, 0, 0]
        assert again.events()[-1]["host"] == "a.example"
        assert again.desk.waited() == [("a.example", "429 with Retry-After", until)]


def test_a_host_that_failed_lets_others_go_first_until_it_answers(desk):
    """One that was slow does not, nor one whose robots.txt fails: they are there."""
    desk.fails("a.example", "refused: Connection refused")
    desk.desk.told(0, "b.example", HostSignal("slow", "timeout-header: nothing", "https://b.example", now_ms()))
    desk.desk.told(0, "c.example", HostSignal("closed", "503", "https://c.example", steady_ms()))
    soon = steady_ms() + 5_000
    assert [host for host, _ in desk.schedule.pick(0, 100, soon, 200)] == [2, 3]
    desk.answers("a.example")
    assert [host for host, _ in desk.schedule.pick(0, 100, soon, 200)] == [1]


def test_a_host_that_had_answered_and_then_fails_keeps_its_turns(desk):
    desk.answers("a.example")
    for _ in range(2):
        desk.fails("a.example", "refused: Connection refused")
    assert 1 in dict(desk.schedule.pick(0, 100, steady_ms() + 5_000, 200))


def test_what_is_left_of_a_dead_host_and_our_own_faults_wait_for_nobody(desk):
    for _ in range(3):
        desk.fails("a.example", "refused: Connection refused")
    assert list(desk.desk.dead) == ["a.example"]
    desk.fails("b.example", "refused: Connection refused")
    desk.fails("c.example", "timeout-connect: 10 s", crowded=True)
    assert [host for host, _ in desk.schedule.pick(0, 100, steady_ms() + 5_000, 200)] == [1, 3]


def test_a_wait_that_none_of_ours_can_be_is_not_believed(new_place):
    """The clock was set back by an hour since."""
    place = new_place()
    with closing(TrackerConnection(place)) as first:
        first.hosts.keep_waits(1, HostWaits(0, now_ms() + 3_600_000, "503", 1))
    with closing(TrackerConnection(place, resumed=True)) as again:
        assert sorted(dict(again.schedule.pick(0, 100, now_ms()))) == [2, 3]
        assert 1 in dict(again.schedule.pick(0, 100, now_ms() + 301_000))


def test_retry_after_is_saved_and_told_at_once(desk):
    desk.schedule.claimed(0, 1, 1, 1, 0)
    desk.desk.told(0, "a.example", HostSignal("throttled", "503", "https://a.example", now_ms(), 5_000))
    [terms] = desk.sent()
    assert 4_900 < terms.wait_ms <= 5_000
    assert desk.said == [(0, protocol.HostUpdate([terms], answer=True))]
    assert desk.hosts.waits[1].reason == "503 with Retry-After"
    [pause] = desk.events()
    assert (pause["event"], pause["host"]) == ("pause", "a.example")
    desk.desk.tick(now_ms() + 6_000)
    assert desk.events()[-1]["event"] == "resume"


def test_a_back_off_is_kept_with_the_pages_that_finish_next(new_place):
    """It is over in seconds: a commit for each of a thousand hosts that cannot be reached would hold up the others."""
    place = new_place()
    with closing(TrackerConnection(place)) as first:
        first.fails("a.example", "refused: Connection refused")
        claim = first.tracker.take(site("", "b.example"))
        strikes = select(hosts.c.strikes).where(hosts.c.job_id == first.tracker.job_id, hosts.c.id == 1)
        assert (first.hosts.waits_of(1).strikes, first.tracker.db.connection.execute(strikes).scalar()) == (1, 0)
        first.tracker.finish(claim)
        assert first.tracker.db.connection.execute(strikes).scalar() == 1
    with closing(TrackerConnection(place, resumed=True)) as again:
        assert {host: waits.strikes for host, waits in again.hosts.waits.items()} == {1: 1}


def test_a_back_off_outlasts_a_transaction_that_is_undone_and_the_last_finish(new_place):
    place = new_place()
    with closing(TrackerConnection(place)) as first:
        first.fails("a.example", "refused: Connection refused")
        first.tracker.db.forget()
        assert first.hosts.waits_of(1).strikes == 1
        first.tracker.finish(first.tracker.take(site("", "b.example")))
        # as when that finish was undone
        first.tracker.db.connection.execute(update(hosts).values(strikes=0))
        first.tracker.db.forget()
        assert first.hosts.waits_of(1).strikes == 1
        first.hosts.keep_rest()
    with closing(TrackerConnection(place, resumed=True)) as again:
        assert {host: waits.strikes for host, waits in again.hosts.waits.items()} == {1: 1}


def test_three_failures_prove_a_host_dead_that_never_answered(desk):
    desk.fails("a.example")
    desk.fails("a.example")
    assert not desk.desk.dead
    desk.fails("a.example")
    assert list(desk.desk.dead) == ["a.example"]
    dead = {"a.example": desk.desk.dead["a.example"]}
    assert desk.sent()[-1] == HostTerms("a.example", 0, dead=dead)
    assert desk.terms("a.example", worker=7).dead == dead, "whoever gets pages of it is told"
    assert desk.terms("b.example").dead == {}


def test_an_answer_in_between_begins_the_proof_anew(desk):
    for _ in range(5):
        desk.fails("a.example")
        desk.fails("a.example")
        desk.desk.heard(1, "https://a.example/", now_ms() + 3_600_000)
    assert not desk.desk.dead


def test_the_network_is_lost_when_every_host_that_had_answered_fails(desk):
    desk.answers("a.example")
    desk.answers("b.example")
    desk.fails("a.example")
    desk.fails("c.example")
    assert not desk.desk.lost, "b.example has not failed, and c.example had never answered"
    desk.fails("b.example")
    assert desk.desk.lost
    for _ in range(20):
        desk.fails("a.example")
    assert not desk.desk.dead
    assert [desk.desk.most(9, 10_000), desk.desk.most(9, 10_001), desk.desk.most(9, 15_000)] == [1, 0, 1]
    desk.desk.told(0, "a.example", HostSignal("throttled", "503", "https://a.example", now_ms()))
    assert not desk.desk.lost
    assert [event["event"] for event in desk.events() if event["reason"] == "network"] == ["pause", "resume"]


def test_a_refusal_or_one_host_alone_is_no_lost_network(desk):
    desk.answers("a.example")
    desk.fails("a.example")
    assert not desk.desk.lost
    desk.answers("b.example")
    desk.fails("b.example", "refused: by the host itself")
    assert not desk.desk.lost


def test_nor_is_one_beside_another_that_has_no_pages_any_more(desk):
    desk.answers("a.example")
    desk.answers("b.example")
    desk.schedule.add_pending(desk.schedule.known("b.example"), "b.example", -1)
    desk.schedule.add_pending(desk.schedule.known("c.example"), "c.example", -1)
    desk.fails("b.example")
    desk.fails("a.example")
    assert not desk.desk.lost


def test_connections_that_time_out_prove_nothing_while_our_own_line_was_full(desk):
    for _ in range(9):
        desk.fails("a.example", "timeout-connect: no connection in time", crowded=True)
    assert not desk.desk.dead
    for _ in range(3):
        desk.fails("a.example", "refused: nobody is there", crowded=True)
    assert set(desk.desk.dead) == {"a.example"}


def test_a_host_falls_silent_once_and_only_when_it_had_been_answering(desk):
    late = "timeout-connect: no connection in time"
    assert not desk.fails("a.example", late)
    desk.answers("b.example")
    assert [desk.fails("b.example", late), desk.fails("b.example", late)] == [True, False]
    desk.answers("c.example")
    assert not desk.fails("c.example", "refused: nobody is there")


REFUSED = "refused: Connection refused"
PROXY = "unreachable: proxy: Connection refused"
NO_ROUTE = "unreachable: no route: Network is unreachable"


def test_an_origin_that_answered_is_never_given_up_and_asked_less_and_less(desk):
    desk.answers("a.example")
    waits = []
    for _ in range(20):
        desk.fails("a.example", REFUSED)
        waits.append(desk.wait("a.example"))
    assert not desk.desk.dead
    assert waits[0] == 0, "one failure is no news of a host that answered a moment ago"
    full = [min(1_000 << number, 300_000) for number in range(1, 20)]
    assert all(most / 2 - 100 <= wait <= most for wait, most in zip(waits[1:], full, strict=True)), waits
    assert desk.finish("a.example", REFUSED), "it costs no try"
    assert not desk.finish("b.example", REFUSED)


def test_that_it_answered_is_known_in_the_next_run(new_place):
    place = new_place()
    with closing(TrackerConnection(place)) as first:
        first.answers("a.example")
        first.hosts.keep_rest()
    with closing(TrackerConnection(place, resumed=True)) as again:
        for _ in range(12):
            again.fails("a.example", REFUSED)
            again.desk.told(
                0, "a.example", HostSignal("unreachable", REFUSED, "https://a.example:8443", now_ms() + 3_600_000)
            )
        assert list(again.desk.dead) == ["https://a.example:8443"], "another origin of the name has not answered"
        assert again.finish("a.example", REFUSED)


def test_a_failing_robots_txt_is_a_wait_and_no_verdict(desk):
    for _ in range(12):
        desk.fails("a.example", "503", kind="closed")
    assert not desk.desk.dead
    assert desk.wait("a.example") > 100_000
    desk.answers("b.example")
    assert desk.finish("b.example", "reset: robots.txt: connection reset"), "an answered origin's robots.txt"
    assert not desk.finish("c.example", "reset: robots.txt: connection reset")


@pytest.mark.parametrize("text", [PROXY, NO_ROUTE])
def test_without_a_way_out_one_host_is_enough_to_wait_for_the_network(desk, text):
    for _ in range(12):
        desk.fails("a.example", text, kind="offline")
    assert desk.desk.lost
    assert not desk.desk.dead
    assert desk.wait("a.example") == 0, "the network is looked for in turns of its own"
    assert desk.finish("a.example", text)
    assert [desk.desk.most(9, 10_000), desk.desk.most(9, 10_001)] == [1, 0]
    desk.answers("b.example")
    assert not desk.desk.lost


def test_a_network_from_which_a_host_answered_a_moment_ago_is_there(desk):
    """What has no route there fails by itself; a proxy that fails is ours all the same."""
    desk.answers("b.example")
    for _ in range(3):
        desk.fails("a.example", NO_ROUTE, kind="offline")
        desk.fails("c.example", PROXY, kind="offline")
    assert not desk.desk.lost
    assert list(desk.desk.dead) == ["a.example"]
    assert desk.finish("c.example", PROXY)


def test_hosts_that_finished_a_moment_ago_show_that_the_network_is_there(desk):
    """Those that are left and fall silent are not all that answered."""
    for name in NAMES:
        desk.answers(name)
    desk.schedule.add_pending(desk.schedule.known("c.example"), "c.example", -1)
    desk.fails("a.example")
    desk.fails("b.example")
    assert not desk.desk.lost


def test_ten_thousand_hosts_that_fail_at_once_are_all_given_up(new_place):
    names = [f"h{number}.example" for number in range(10_001)]
    with closing(TrackerConnection(new_place(), names=names)) as desk:
        for _ in range(3):
            for name in names:
                desk.fails(name)
        assert len({origin for terms in desk.sent() for origin in terms.dead}) == len(names)
        assert len(desk.desk.dead) == 10_000, "the one that died first is forgotten"
        assert [bool(desk.terms(name).dead) for name in (names[0], names[1])] == [False, True]


def test_all_that_is_left_are_hosts_that_are_waited_for(desk):
    desk.answers("a.example")
    assert not desk.desk.only_waits(0)
    for name in NAMES:
        desk.answers(name)
        for _ in range(2):
            desk.fails(name, REFUSED)
    assert desk.desk.only_waits(0)
    assert [host for host, _, _ in desk.desk.waited()]
    time.sleep(desk.wait("b.example") / 1000 + 0.01)
    good(desk, "b.example", 1)
    assert not desk.desk.only_waits(0), "one of them is back"


def test_a_long_wait_is_written_down_and_kept_at_once(new_place):
    place = new_place()
    with closing(TrackerConnection(place)) as first:
        first.answers("a.example")
        for _ in range(9):
            first.fails("a.example", REFUSED)
        assert first.events()[-1]["reason"] == REFUSED
        waits = first.hosts.waits_of(1)
        assert waits.until > steady_ms() + 8_000
    with closing(TrackerConnection(place, resumed=True)) as again:
        assert again.hosts.waits_of(1) == waits
        assert again.wait("a.example") == 0, "whoever starts a run wants to know whether it is back"
        again.fails("a.example", REFUSED)
        assert again.wait("a.example") > 100_000


def throttle(desk, name, text="429"):
    desk.desk.told(0, name, HostSignal("throttled", text, f"https://{name}", now_ms() + 3_600_000))


def good(desk, name, count):
    for _ in range(count):
        desk.desk.heard(desk.schedule.known(name), f"https://{name}/", now_ms() + 7_200_000)


def test_a_host_that_throttles_right_after_its_wait_gets_a_gap_until_it_is_content(desk):
    desk.schedule.claimed(0, 1, 1, 1, 0)
    gaps = []
    for answers in (0, 1, 1, 3, 9, 10):
        good(desk, "a.example", answers)
        throttle(desk, "a.example")
        gaps.append(desk.schedule.gap(1))
    assert gaps == [0, 500, 750, 1_125, 1_125, 562], "after ten answers it is some page that it refuses"
    assert desk.terms("a.example").gap_ms == 562
    assert list(dict.fromkeys(terms.gap_ms for terms in desk.sent())) == gaps[:4] + gaps[5:]
    good(desk, "a.example", 100)
    assert desk.schedule.gap(1) == 281
    good(desk, "a.example", 100)
    assert desk.schedule.gap(1) == 0


def test_the_longest_gap_that_an_origin_of_a_host_asks_for_is_kept_and_sent_to_all_its_workers(desk):
    desk.schedule.add_worker(1)
    for worker in (0, 1):
        desk.schedule.claimed(worker, 1, 1, 1, 0)
    for delay_ms in (3_000, 2_000):
        desk.desk.wants_gap("a.example", delay_ms)
    at_once(desk.desk.keep())
    assert desk.hosts.waits[1].crawl_delay_ms == 3_000
    assert [terms.gap_ms for worker in (0, 1) for terms in desk.sent(worker)] == [3_000] * 4
    assert [terms.wait_ms for worker in (0, 1) for terms in desk.sent(worker)] == [0, 0, 3_000, 3_000], "one asks it"
    desk.said.clear()
    desk.desk.wants_gap("never.met.example", 1_000)
    assert desk.said == []


def test_a_host_that_only_throttles_without_a_word_of_waiting_has_bad_pages(desk):
    """Fifty answers of 503 and not a good one: its pages use up their tries, and nothing waits for them."""
    host = desk.schedule.known("a.example")
    claim = structs.replace(desk.tracker.take(site("", "a.example")), free=True)
    for _ in range(49):
        throttle(desk, "a.example", "503")
    assert desk.desk.judged([claim]) == [claim]
    throttle(desk, "a.example", "503")
    [judged] = desk.desk.judged([claim])
    assert not judged.free
    until = desk.desk._states[host].until
    throttle(desk, "a.example", "503")
    assert desk.desk._states[host].until == until
    good(desk, "a.example", 1)
    assert desk.desk.judged([claim]) == [claim]


def test_a_host_that_throttles_all_its_many_pages_is_waited_for(desk):
    """It is down for half an hour and says 503: that costs no page a try."""
    host = desk.schedule.known("a.example")
    claim = structs.replace(desk.tracker.take(site("", "a.example")), free=True)
    desk.schedule.add_pending(host, "a.example", 39)
    for _ in range(199):
        throttle(desk, "a.example", "503")
    assert desk.desk.judged([claim]) == [claim]
    throttle(desk, "a.example", "503")
    assert not desk.desk.judged([claim])[0].free


def test_a_lost_network_ends_no_wait_that_a_host_asked_for(desk):
    for name in NAMES:
        desk.answers(name)
    desk.fails("a.example", "timeout-connect: no connection in time")
    retry = HostSignal("throttled", "429", "https://a.example", now_ms() + 3_600_000, 600_000)
    desk.desk.told(0, "a.example", retry)
    for name in NAMES:
        desk.fails(name, NO_ROUTE if name == "a.example" else PROXY, kind="offline")
        desk.fails(name)
    desk.answers("b.example")
    assert desk.wait("a.example") > 500_000
