"""Hosts: their waits are kept over a resume, and their policy tells death from a lost network."""

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
from muniment.crawl.orchestrator.hosts.policy import HostPolicy
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


class HostTracker:
    """Hosts of a real tracker with one worker and a page of each host; `said` is what was sent to it."""

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
        self.held: set[int] = set()
        self.policy = KeptPolicy(self.queue, self.schedule, events, tell, self.held.__contains__)
        self.policy.begin(now_ms(), resumed=resumed)
        for host in at_once(self.queue.pending(now_ms())).changes.pending:
            self.schedule.add_pending(host.host_id, host.name, host.more)
            self.policy.plan(host.host_id, host.record)

    def close(self):
        self.tracker.close()
        os.close(self.descriptor)

    def answers(self, name):
        self.policy.heard(self.schedule.known(name), f"https://{name}/", steady_ms())

    def fails(self, name, text="dns: no such name", kind="unreachable", **how):
        """It fails, as asked a long time after the failure before."""
        return self.policy.told(0, name, HostSignal(kind, text, name, now_ms() + 3_600_000), **how)

    def wait(self, name):
        """Milliseconds for which nothing more is asked of a host."""
        return max(0, self.policy.states.of(self.schedule.known(name)).until - steady_ms())

    def finish(self, name, error):
        """What becomes of the page of a host that fails so, and whether it goes back untried."""
        claim = self.tracker.take(site("", name))
        held = {claim.page_id: claim}
        batch = finish_batch([finished(claim, status=0, error=error)], [])
        return bool(self.policy.spare(batch, held)[1])

    def terms(self, name, worker=0):
        """How a worker is to treat a host."""
        return self.policy.updates.terms(worker, [self.schedule.known(name)], steady_ms())[0]

    def sent(self, worker=0):
        """The terms that a worker was sent, in their order."""
        return [terms for to, message in self.said if to == worker for terms in message.hosts]

    def events(self):
        return [json.loads(line) for line in self.log.read_text().splitlines()]


@pytest.fixture
def tracked(new_place):
    with closing(HostTracker(new_place())) as made:
        yield made


def test_waits_are_kept_over_a_resume(new_place):
    place = new_place()
    until = now_ms() + 60_000
    with closing(HostTracker(place)) as first:
        first.hosts.keep_waits(1, HostWaits(2_000, until, "429 with Retry-After", 3))
        first.hosts.keep_waits(2, HostWaits(0, 1, "503", 1))
        first.hosts.keep_waits(2, HostWaits())
    with closing(HostTracker(place, resumed=True)) as again:
        assert again.hosts.waits == {1: HostWaits(2_000, until, "429 with Retry-After", 3)}
        due = dict(again.schedule.pick(0, 100, until - 1))
        assert sorted(due) == [2, 3]
        assert 1 in dict(again.schedule.pick(0, 100, until))
        assert [again.terms(name).gap_ms for name in NAMES] == [2_000, 0, 0]
        assert again.events()[-1]["host"] == "a.example"
        assert again.policy.pauses.waited() == [("a.example", "429 with Retry-After", until)]


def test_a_host_that_failed_lets_others_go_first_until_it_answers(tracked):
    """One that was slow does not, nor one whose robots.txt fails: they are there."""
    tracked.fails("a.example", "refused: Connection refused")
    tracked.policy.told(0, "b.example", HostSignal("slow", "timeout-header: nothing", "https://b.example", now_ms()))
    tracked.policy.told(0, "c.example", HostSignal("closed", "503", "https://c.example", steady_ms()))
    soon = steady_ms() + 5_000
    assert [host for host, _ in tracked.schedule.pick(0, 100, soon, 200)] == [2, 3]
    tracked.answers("a.example")
    assert [host for host, _ in tracked.schedule.pick(0, 100, soon, 200)] == [1]


def test_a_host_that_had_answered_and_then_fails_keeps_its_turns(tracked):
    tracked.answers("a.example")
    for _ in range(2):
        tracked.fails("a.example", "refused: Connection refused")
    assert 1 in dict(tracked.schedule.pick(0, 100, steady_ms() + 5_000, 200))


def test_what_is_left_of_a_dead_host_and_our_own_faults_wait_for_nobody(tracked):
    for _ in range(3):
        tracked.fails("a.example", "refused: Connection refused")
    assert list(tracked.policy.dead) == ["a.example"]
    tracked.fails("b.example", "refused: Connection refused")
    tracked.fails("c.example", "timeout-connect: 10 s", crowded=True)
    assert [host for host, _ in tracked.schedule.pick(0, 100, steady_ms() + 5_000, 200)] == [1, 3]


def test_a_wait_that_none_of_ours_can_be_is_not_believed(new_place):
    """The clock was set back by an hour since."""
    place = new_place()
    with closing(HostTracker(place)) as first:
        first.hosts.keep_waits(1, HostWaits(0, now_ms() + 3_600_000, "503", 1))
    with closing(HostTracker(place, resumed=True)) as again:
        assert sorted(dict(again.schedule.pick(0, 100, now_ms()))) == [2, 3]
        assert 1 in dict(again.schedule.pick(0, 100, now_ms() + 301_000))


def test_retry_after_is_saved_and_told_at_once(tracked):
    tracked.schedule.claimed(0, 1, 1, 1, 0)
    tracked.policy.told(0, "a.example", HostSignal("throttled", "503", "https://a.example", now_ms(), 5_000))
    [terms] = tracked.sent()
    assert 4_900 < terms.wait_ms <= 5_000
    assert tracked.said == [(0, protocol.HostUpdate([terms], answer=True))]
    assert tracked.hosts.waits[1].reason == "503 with Retry-After"
    [pause] = tracked.events()
    assert (pause["event"], pause["host"]) == ("pause", "a.example")
    tracked.policy.pauses.tick(now_ms() + 6_000)
    assert tracked.events()[-1]["event"] == "resume"


def test_a_back_off_is_kept_with_the_pages_that_finish_next(new_place):
    """It is over in seconds: a commit for each of a thousand hosts that cannot be reached would hold up the others."""
    place = new_place()
    with closing(HostTracker(place)) as first:
        first.fails("a.example", "refused: Connection refused")
        claim = first.tracker.take(site("", "b.example"))
        strikes = select(hosts.c.strikes).where(hosts.c.job_id == first.tracker.job_id, hosts.c.id == 1)
        assert (first.hosts.waits_of(1).strikes, first.tracker.db.connection.execute(strikes).scalar()) == (1, 0)
        first.tracker.finish(claim)
        assert first.tracker.db.connection.execute(strikes).scalar() == 1
    with closing(HostTracker(place, resumed=True)) as again:
        assert {host: waits.strikes for host, waits in again.hosts.waits.items()} == {1: 1}


def test_a_back_off_outlasts_a_transaction_that_is_undone_and_the_last_finish(new_place):
    place = new_place()
    with closing(HostTracker(place)) as first:
        first.fails("a.example", "refused: Connection refused")
        first.tracker.db.forget()
        assert first.hosts.waits_of(1).strikes == 1
        first.tracker.finish(first.tracker.take(site("", "b.example")))
        # as when that finish was undone
        first.tracker.db.connection.execute(update(hosts).values(strikes=0))
        first.tracker.db.forget()
        assert first.hosts.waits_of(1).strikes == 1
        first.hosts.keep_rest()
    with closing(HostTracker(place, resumed=True)) as again:
        assert {host: waits.strikes for host, waits in again.hosts.waits.items()} == {1: 1}


def test_three_failures_prove_a_host_dead_that_never_answered(tracked):
    tracked.fails("a.example")
    tracked.fails("a.example")
    assert not tracked.policy.dead
    tracked.fails("a.example")
    assert list(tracked.policy.dead) == ["a.example"]
    dead = {"a.example": tracked.policy.dead["a.example"]}
    assert tracked.sent()[-1] == HostTerms("a.example", 0, dead=dead)
    assert tracked.terms("a.example", worker=7).dead == dead, "whoever gets pages of it is told"
    assert tracked.terms("b.example").dead == {}


def test_an_answer_in_between_begins_the_proof_anew(tracked):
    for _ in range(5):
        tracked.fails("a.example")
        tracked.fails("a.example")
        tracked.policy.heard(1, "https://a.example/", now_ms() + 3_600_000)
    assert not tracked.policy.dead


def test_the_network_is_lost_when_every_host_that_had_answered_fails(tracked):
    tracked.answers("a.example")
    tracked.answers("b.example")
    tracked.fails("a.example")
    tracked.fails("c.example")
    assert not tracked.policy.lost, "b.example has not failed, and c.example had never answered"
    tracked.fails("b.example")
    assert tracked.policy.lost
    for _ in range(20):
        tracked.fails("a.example")
    assert not tracked.policy.dead
    assert [tracked.policy.most(9, 10_000), tracked.policy.most(9, 10_001), tracked.policy.most(9, 15_000)] == [
        1,
        0,
        1,
    ]
    tracked.policy.told(0, "a.example", HostSignal("throttled", "503", "https://a.example", now_ms()))
    assert not tracked.policy.lost
    assert [event["event"] for event in tracked.events() if event["reason"] == "network"] == ["pause", "resume"]


def test_a_refusal_or_one_host_alone_is_no_lost_network(tracked):
    tracked.answers("a.example")
    tracked.fails("a.example")
    assert not tracked.policy.lost
    tracked.answers("b.example")
    tracked.fails("b.example", "refused: by the host itself")
    assert not tracked.policy.lost


def test_nor_is_one_beside_another_that_has_no_pages_any_more(tracked):
    tracked.answers("a.example")
    tracked.answers("b.example")
    tracked.schedule.add_pending(tracked.schedule.known("b.example"), "b.example", -1)
    tracked.schedule.add_pending(tracked.schedule.known("c.example"), "c.example", -1)
    tracked.fails("b.example")
    tracked.fails("a.example")
    assert not tracked.policy.lost


def test_connections_that_time_out_prove_nothing_while_our_own_line_was_full(tracked):
    for _ in range(9):
        tracked.fails("a.example", "timeout-connect: no connection in time", crowded=True)
    assert not tracked.policy.dead
    for _ in range(3):
        tracked.fails("a.example", "refused: nobody is there", crowded=True)
    assert set(tracked.policy.dead) == {"a.example"}


def test_a_host_falls_silent_once_and_only_when_it_had_been_answering(tracked):
    late = "timeout-connect: no connection in time"
    assert not tracked.fails("a.example", late)
    tracked.answers("b.example")
    assert [tracked.fails("b.example", late), tracked.fails("b.example", late)] == [True, False]
    tracked.answers("c.example")
    assert not tracked.fails("c.example", "refused: nobody is there")


REFUSED = "refused: Connection refused"
PROXY = "unreachable: proxy: Connection refused"
NO_ROUTE = "unreachable: no route: Network is unreachable"


def test_an_origin_that_answered_is_never_given_up_and_asked_less_and_less(tracked):
    tracked.answers("a.example")
    waits = []
    for _ in range(20):
        tracked.fails("a.example", REFUSED)
        waits.append(tracked.wait("a.example"))
    assert not tracked.policy.dead
    assert waits[0] == 0, "one failure is no news of a host that answered a moment ago"
    full = [min(1_000 << number, 300_000) for number in range(1, 20)]
    assert all(most / 2 - 100 <= wait <= most for wait, most in zip(waits[1:], full, strict=True)), waits
    assert tracked.finish("a.example", REFUSED), "it costs no try"
    assert not tracked.finish("b.example", REFUSED)


def test_that_it_answered_is_known_in_the_next_run(new_place):
    place = new_place()
    with closing(HostTracker(place)) as first:
        first.answers("a.example")
        first.hosts.keep_rest()
    with closing(HostTracker(place, resumed=True)) as again:
        for _ in range(12):
            again.fails("a.example", REFUSED)
            again.policy.told(
                0, "a.example", HostSignal("unreachable", REFUSED, "https://a.example:8443", now_ms() + 3_600_000)
            )
        assert list(again.policy.dead) == ["https://a.example:8443"], "another origin of the name has not answered"
        assert again.finish("a.example", REFUSED)


def test_a_failing_robots_txt_is_a_wait_and_no_verdict(tracked):
    for _ in range(12):
        tracked.fails("a.example", "503", kind="closed")
    assert not tracked.policy.dead
    assert tracked.wait("a.example") > 100_000
    tracked.answers("b.example")
    assert tracked.finish("b.example", "reset: robots.txt: connection reset"), "an answered origin's robots.txt"
    assert not tracked.finish("c.example", "reset: robots.txt: connection reset")


@pytest.mark.parametrize("text", [PROXY, NO_ROUTE])
def test_without_a_way_out_one_host_is_enough_to_wait_for_the_network(tracked, text):
    for _ in range(12):
        tracked.fails("a.example", text, kind="offline")
    assert tracked.policy.lost
    assert not tracked.policy.dead
    assert tracked.wait("a.example") == 0, "the network is looked for in turns of its own"
    assert tracked.finish("a.example", text)
    assert [tracked.policy.most(9, 10_000), tracked.policy.most(9, 10_001)] == [1, 0]
    tracked.answers("b.example")
    assert not tracked.policy.lost


def test_a_network_from_which_a_host_answered_a_moment_ago_is_there(tracked):
    """What has no route there fails by itself; a proxy that fails is ours all the same."""
    tracked.answers("b.example")
    for _ in range(3):
        tracked.fails("a.example", NO_ROUTE, kind="offline")
        tracked.fails("c.example", PROXY, kind="offline")
    assert not tracked.policy.lost
    assert list(tracked.policy.dead) == ["a.example"]
    assert tracked.finish("c.example", PROXY)


def test_hosts_that_finished_a_moment_ago_show_that_the_network_is_there(tracked):
    """Those that are left and fall silent are not all that answered."""
    for name in NAMES:
        tracked.answers(name)
    tracked.schedule.add_pending(tracked.schedule.known("c.example"), "c.example", -1)
    tracked.fails("a.example")
    tracked.fails("b.example")
    assert not tracked.policy.lost


def test_ten_thousand_hosts_that_fail_at_once_are_all_given_up(new_place):
    names = [f"h{number}.example" for number in range(10_001)]
    with closing(HostTracker(new_place(), names=names)) as tracked:
        for _ in range(3):
            for name in names:
                tracked.fails(name)
        assert len({origin for terms in tracked.sent() for origin in terms.dead}) == len(names)
        assert len(tracked.policy.dead) == 10_000, "the one that died first is forgotten"
        assert [bool(tracked.terms(name).dead) for name in (names[0], names[1])] == [False, True]


def test_all_that_is_left_are_hosts_that_are_waited_for(tracked):
    tracked.answers("a.example")
    assert not tracked.policy.only_waits(0)
    for name in NAMES:
        tracked.answers(name)
        for _ in range(2):
            tracked.fails(name, REFUSED)
    assert tracked.policy.only_waits(0)
    assert [host for host, _, _ in tracked.policy.pauses.waited()]
    time.sleep(tracked.wait("b.example") / 1000 + 0.01)
    good(tracked, "b.example", 1)
    assert not tracked.policy.only_waits(0), "one of them is back"


def test_a_long_wait_is_written_down_and_kept_at_once(new_place):
    place = new_place()
    with closing(HostTracker(place)) as first:
        first.answers("a.example")
        for _ in range(9):
            first.fails("a.example", REFUSED)
        assert first.events()[-1]["reason"] == REFUSED
        waits = first.hosts.waits_of(1)
        assert waits.until > steady_ms() + 8_000
    with closing(HostTracker(place, resumed=True)) as again:
        assert again.hosts.waits_of(1) == waits
        assert again.wait("a.example") == 0, "whoever starts a run wants to know whether it is back"
        again.fails("a.example", REFUSED)
        assert again.wait("a.example") > 100_000


def throttle(tracked, name, text="429"):
    tracked.policy.told(0, name, HostSignal("throttled", text, f"https://{name}", now_ms() + 3_600_000))


def good(tracked, name, count):
    for _ in range(count):
        tracked.policy.heard(tracked.schedule.known(name), f"https://{name}/", now_ms() + 7_200_000)


def test_a_host_that_throttles_right_after_its_wait_gets_a_gap_until_it_is_content(tracked):
    tracked.schedule.claimed(0, 1, 1, 1, 0)
    gaps = []
    for answers in (0, 1, 1, 3, 9, 10):
        good(tracked, "a.example", answers)
        throttle(tracked, "a.example")
        gaps.append(tracked.schedule.gap(1))
    assert gaps == [0, 500, 750, 1_125, 1_125, 562], "after ten answers it is some page that it refuses"
    assert tracked.terms("a.example").gap_ms == 562
    assert list(dict.fromkeys(terms.gap_ms for terms in tracked.sent())) == gaps[:4] + gaps[5:]
    good(tracked, "a.example", 100)
    assert tracked.schedule.gap(1) == 281
    good(tracked, "a.example", 100)
    assert tracked.schedule.gap(1) == 0


def test_the_longest_gap_that_an_origin_of_a_host_asks_for_is_kept_and_sent_to_all_its_workers(tracked):
    tracked.schedule.add_worker(1)
    for worker in (0, 1):
        tracked.schedule.claimed(worker, 1, 1, 1, 0)
    for delay_ms in (3_000, 2_000):
        tracked.policy.wants_gap("a.example", delay_ms)
    at_once(tracked.policy.keep())
    assert tracked.hosts.waits[1].crawl_delay_ms == 3_000
    assert [terms.gap_ms for worker in (0, 1) for terms in tracked.sent(worker)] == [3_000] * 4
    assert [terms.wait_ms for worker in (0, 1) for terms in tracked.sent(worker)] == [0, 0, 3_000, 3_000], "one asks it"
    tracked.said.clear()
    tracked.policy.wants_gap("never.met.example", 1_000)
    assert tracked.said == []


def test_a_host_that_only_throttles_without_a_word_of_waiting_has_bad_pages(tracked):
    """Fifty answers of 503 and not a good one: its pages use up their tries, and nothing waits for them."""
    host = tracked.schedule.known("a.example")
    claim = structs.replace(tracked.tracker.take(site("", "a.example")), free=True)
    for _ in range(49):
        throttle(tracked, "a.example", "503")
    assert tracked.policy.judged([claim]) == [claim]
    throttle(tracked, "a.example", "503")
    [judged] = tracked.policy.judged([claim])
    assert not judged.free
    until = tracked.policy.states.of(host).until
    throttle(tracked, "a.example", "503")
    assert tracked.policy.states.of(host).until == until
    good(tracked, "a.example", 1)
    assert tracked.policy.judged([claim]) == [claim]


def test_a_host_that_throttles_all_its_many_pages_is_waited_for(tracked):
    """It is down for half an hour and says 503: that costs no page a try."""
    host = tracked.schedule.known("a.example")
    claim = structs.replace(tracked.tracker.take(site("", "a.example")), free=True)
    tracked.schedule.add_pending(host, "a.example", 39)
    for _ in range(199):
        throttle(tracked, "a.example", "503")
    assert tracked.policy.judged([claim]) == [claim]
    throttle(tracked, "a.example", "503")
    assert not tracked.policy.judged([claim])[0].free


def test_a_lost_network_ends_no_wait_that_a_host_asked_for(tracked):
    for name in NAMES:
        tracked.answers(name)
    tracked.fails("a.example", "timeout-connect: no connection in time")
    retry = HostSignal("throttled", "429", "https://a.example", now_ms() + 3_600_000, 600_000)
    tracked.policy.told(0, "a.example", retry)
    for name in NAMES:
        tracked.fails(name, NO_ROUTE if name == "a.example" else PROXY, kind="offline")
        tracked.fails(name)
    tracked.answers("b.example")
    assert tracked.wait("a.example") > 500_000


A_SITE, A_PORT = "https://a.example", "http://a.example:81"


def fails_at(tracked, origin, text=REFUSED, kind="unreachable", at=0):
    """An origin of a.example fails, as asked a long time after the failure before."""
    tracked.policy.told(0, "a.example", HostSignal(kind, text, origin, at or steady_ms() + 3_600_000))


def with_pages(tracked, *paths):
    """Claims of a.example that were made now."""
    claim = tracked.tracker.take(site("", "a.example"))
    return [structs.replace(claim, url=f"{origin}/{path}", page_id=n) for n, (origin, path) in enumerate(paths, 100)]


@pytest.mark.parametrize("kind", ["unreachable", "closed", "slow", "mute"])
def test_an_origin_that_fails_holds_up_no_other_one_of_its_name(tracked, kind):
    tracked.answers("a.example")
    tracked.schedule.claimed(0, 1, 1, 1, 0)
    for _ in range(9):
        fails_at(tracked, A_PORT, "robots.txt: 502" if kind == "closed" else REFUSED, kind)
    assert tracked.wait("a.example") == 0
    assert tracked.policy.states.most(1, [A_SITE], 6) == 6
    terms = tracked.terms("a.example")
    assert (terms.permits, terms.wait_ms) == (6, 0)
    rests = {} if kind == "slow" else {A_PORT}
    assert set(terms.rests) == set(rests)
    assert tracked.policy.turns.without([(1, 9), (2, 9)], steady_ms()) == ({1: [f"{A_PORT}/"]} if rests else {})


def test_one_that_had_answered_is_asked_less_and_less_by_itself(tracked):
    for origin in (A_SITE, A_PORT):
        tracked.policy.heard(1, f"{origin}/", steady_ms())
    for _ in range(12):
        fails_at(tracked, A_PORT)
    assert not tracked.policy.dead
    assert tracked.terms("a.example").rests[A_PORT] > 100_000
    assert tracked.hosts.waits_of(1) == HostWaits(), "the host is not left alone"
    fails_at(tracked, A_SITE)
    fails_at(tracked, A_SITE)
    assert tracked.hosts.waits_of(1).until > steady_ms(), "now it is"
    assert set(tracked.terms("a.example").rests) == {A_SITE, A_PORT}


def test_what_a_server_asks_for_it_asks_for_its_name(tracked):
    tracked.answers("a.example")
    fails_at(tracked, A_PORT, "429", "throttled")
    assert tracked.wait("a.example") > 0
    fails_at(tracked, A_PORT, "503", "closed")
    assert tracked.terms("a.example").rests == {}


def test_an_origin_without_an_answer_has_one_page_out_beside_those_of_another(tracked):
    tracked.answers("a.example")
    turns, now = tracked.policy.turns, steady_ms()
    held = tracked.held
    claims = with_pages(tracked, (A_PORT, "1"), (A_SITE, "2"), (A_PORT, "3"), (A_SITE, "4"))
    held.update(one.page_id for one in claims)
    out, back = turns.sift(claims, now)
    held.difference_update([one.page_id for one in back])
    assert [one.url[-1] for one in out] == ["1", "2", "4"]
    assert [one.url[-1] for one in back] == ["3"]
    assert turns.without([(1, 9)], now) == {1: [f"{A_PORT}/"]}
    held.discard(out[0].page_id)
    assert turns.without([(1, 9)], now) == {}
    held.add(back[0].page_id)
    assert turns.sift(back, now) == (back, [])
    tracked.policy.heard(1, f"{A_PORT}/", steady_ms())
    assert turns.without([(1, 9)], now) == {}
    assert turns.sift(claims, now) == (claims, [])


def test_a_host_whose_only_origin_that_answered_rests_has_fewer_connections(tracked):
    tracked.answers("a.example")
    for _ in range(3):
        fails_at(tracked, A_SITE, "timeout-header: nothing", "slow")
    assert tracked.policy.states.most(1, [A_SITE], 6) == 1


def test_a_host_with_nothing_but_pages_of_such_an_origin_is_looked_at_less_and_less(tracked):
    tracked.schedule.add_pending(1, "a.example", 5)
    now = steady_ms()
    until, waits = now + 60_000, []
    for _ in range(12):
        assert 1 in dict(tracked.schedule.pick(0, 1_000, now))
        tracked.schedule.claimed(0, 1, 0, 5, now, until)
        now, before = next(at for at in range(now + 250, until + 1, 250) if dict(tracked.schedule.pick(0, 9, at))), now
        waits.append(now - before)
        tracked.schedule.add_pending(1, "a.example", 0, now + 1)  # offered again
        if now >= until:
            break
    assert waits[:4] == [500, 1_000, 2_000, 4_000]
    assert now == until


def test_a_private_address_is_final_for_the_name_at_once(tracked):
    tracked.policy.told(0, "a.example", HostSignal("barred", "private-address: 10.0.0.1 is", "a.example", 1))
    assert tracked.terms("a.example").dead == {"a.example": "private-address: 10.0.0.1 is"}
    assert tracked.wait("a.example") == 0
    assert tracked.events()[-1]["reason"] == "a.example: private-address: 10.0.0.1 is"


NAMELESS = "dns: no such name"


def test_a_name_that_does_not_exist_is_final_after_another_question_a_while_later(tracked):
    now = steady_ms()
    told = lambda name, at: tracked.policy.told(0, name, HostSignal("nameless", NAMELESS, name, at))  # noqa: E731
    told("b.example", now)
    told("b.example", now + 1_000)
    assert not tracked.policy.dead
    assert (tracked.terms("b.example").nameless, tracked.terms("a.example").nameless) == (True, False)
    assert 5_000 < tracked.wait("b.example") < 7_000
    told("b.example", now + 6_200)
    assert list(tracked.policy.dead) == ["b.example"]
    assert tracked.wait("b.example") == 0


def test_a_name_that_was_found_before_is_waited_for(tracked):
    tracked.answers("b.example")
    for _ in range(12):
        tracked.policy.told(0, "b.example", HostSignal("nameless", NAMELESS, "b.example", steady_ms() + 3_600_000))
    assert not tracked.policy.dead
    assert tracked.wait("b.example") > 100_000
    assert tracked.finish("b.example", NAMELESS), "it costs no try"
