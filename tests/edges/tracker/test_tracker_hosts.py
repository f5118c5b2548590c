"""Hosts: their waits are kept over a resume, and the desk that keeps them tells death from a lost network."""

from __future__ import annotations

import json
import os
from contextlib import closing

import pytest
from sqlalchemy import select, update
from tracker_harness import Tracker, site

from muniment.clock import now_ms, steady_ms
from muniment.crawl import messages as say
from muniment.crawl.events import EventLog
from muniment.crawl.hosts_desk import HostsDesk
from muniment.crawl.schedule import Schedule
from muniment.rules.politeness import Sign
from muniment.tracker.hosts import HostWaits
from muniment.tracker.tables import hosts

NAMES = ("a.example", "b.example", "c.example")


class Desk:
    """A desk over a real tracker with one worker and a page of each host; `said` is what the worker was told."""

    def __init__(self, place, *, resumed=False):
        self.tracker = Tracker(place, *(site("", host) for host in NAMES))
        self.log = place.directory / "crawl.jsonl"
        self.descriptor = os.open(self.log, os.O_RDWR | os.O_CREAT | os.O_APPEND)
        self.hosts = self.tracker.frontier.hosts
        self.schedule = Schedule(6)
        self.schedule.add_worker(0)
        self.said = []
        tell = lambda worker, message: self.said.append((worker, message))  # noqa: E731
        self.desk = HostsDesk(self.hosts, self.schedule, EventLog(self.descriptor), tell, "muniment/1")
        for host, pages in self.tracker.frontier.pending().items():
            self.schedule.add_pending(host, self.hosts.name(host), pages)
        self.desk.begin(now_ms(), resumed=resumed)

    def close(self):
        self.tracker.close()
        os.close(self.descriptor)

    def answers(self, name):
        self.desk.heard(self.schedule.known(name), f"https://{name}/", steady_ms())

    def fails(self, name, text="dns: no such name", **how):
        """It fails, as asked a long time after the failure before."""
        return self.desk.told(0, name, Sign("unreachable", text, name, now_ms() + 3_600_000), **how)

    def events(self):
        return [json.loads(line) for line in self.log.read_text().splitlines()]


@pytest.fixture
def desk(new_place):
    with closing(Desk(new_place())) as made:
        yield made


def test_waits_are_kept_over_a_resume(new_place):
    place = new_place()
    until = now_ms() + 60_000
    with closing(Desk(place)) as first:
        first.hosts.keep_waits(1, HostWaits(2_000, until, "429 with Retry-After", 3))
        first.hosts.keep_waits(2, HostWaits(0, 1, "503", 1))
        first.hosts.keep_waits(2, HostWaits())
    with closing(Desk(place, resumed=True)) as again:
        assert again.hosts.waits == {1: HostWaits(2_000, until, "429 with Retry-After", 3)}
        due = dict(again.schedule.pick(0, 100, until - 1))
        assert sorted(due) == [2, 3]
        assert 1 in dict(again.schedule.pick(0, 100, until))
        assert again.desk.gaps(NAMES) == {"a.example": 2_000}
        assert again.events()[-1]["host"] == "a.example"
        assert again.desk.waited() == [("a.example", "429 with Retry-After", until)]


def test_a_host_that_failed_lets_others_go_first_until_it_answers(desk):
    """One that was slow does not, nor one whose robots.txt fails: they are there."""
    desk.fails("a.example", "refused: Connection refused")
    desk.desk.told(0, "b.example", Sign("slow", "timeout-header: nothing", "https://b.example", now_ms()))
    desk.desk.told(0, "c.example", Sign("closed", "503", "https://c.example", steady_ms()))
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
    with closing(Desk(place)) as first:
        first.hosts.keep_waits(1, HostWaits(0, now_ms() + 3_600_000, "503", 1))
    with closing(Desk(place, resumed=True)) as again:
        assert sorted(dict(again.schedule.pick(0, 100, now_ms()))) == [2, 3]
        assert 1 in dict(again.schedule.pick(0, 100, now_ms() + 301_000))


def test_retry_after_is_saved_and_told_at_once(desk):
    desk.schedule.claimed(0, 1, 1, 1, 0)
    desk.desk.told(0, "a.example", Sign("throttled", "503", "https://a.example", now_ms(), 5_000))
    [wait] = [message for _, message in desk.said if isinstance(message, say.HostWait)]
    assert 4_900 < wait.wait_ms <= 5_000
    assert desk.hosts.waits[1].reason == "503 with Retry-After"
    [pause] = desk.events()
    assert (pause["event"], pause["host"]) == ("pause", "a.example")
    desk.desk.tick(now_ms() + 6_000)
    assert desk.events()[-1]["event"] == "resume"


def test_a_back_off_is_kept_with_the_pages_that_finish_next(new_place):
    """It is over in seconds: a commit for each of a thousand hosts that cannot be reached would hold up the others."""
    place = new_place()
    with closing(Desk(place)) as first:
        first.fails("a.example", "refused: Connection refused")
        claim = first.tracker.take(site("", "b.example"))
        strikes = select(hosts.c.strikes).where(hosts.c.job_id == first.tracker.job_id, hosts.c.id == 1)
        assert (first.hosts.waits_of(1).strikes, first.tracker.db.connection.execute(strikes).scalar()) == (1, 0)
        first.tracker.finish(claim)
        assert first.tracker.db.connection.execute(strikes).scalar() == 1
    with closing(Desk(place, resumed=True)) as again:
        assert {host: waits.strikes for host, waits in again.hosts.waits.items()} == {1: 1}


def test_a_back_off_outlasts_a_transaction_that_is_undone_and_the_last_finish(new_place):
    place = new_place()
    with closing(Desk(place)) as first:
        first.fails("a.example", "refused: Connection refused")
        first.tracker.db.forget()
        assert first.hosts.waits_of(1).strikes == 1
        first.tracker.finish(first.tracker.take(site("", "b.example")))
        # as when that finish was undone
        first.tracker.db.connection.execute(update(hosts).values(strikes=0))
        first.tracker.db.forget()
        assert first.hosts.waits_of(1).strikes == 1
        first.hosts.keep_rest()
    with closing(Desk(place, resumed=True)) as again:
        assert {host: waits.strikes for host, waits in again.hosts.waits.items()} == {1: 1}


def test_three_failures_prove_a_host_dead_that_never_answered(desk):
    desk.fails("a.example")
    desk.fails("a.example")
    assert not desk.desk.dead
    desk.fails("a.example")
    assert list(desk.desk.dead) == ["a.example"]
    assert (0, say.HostDead("a.example", desk.desk.dead["a.example"])) in desk.said


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
    desk.desk.told(0, "a.example", Sign("throttled", "503", "https://a.example", now_ms()))
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
