"""Later rounds: pages whose tries are used up wait until nothing else does, and are asked again."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import update
from test_tracker_plans import plan
from tests.support.pages import finish_batch, finished
from tracker_harness import site

from muniment.model.job import JobState
from muniment.rules.retry import BETWEEN_ROUNDS_MS, MOST_FREE
from muniment.settings.option_table import Settings
from muniment.tracker.db.sqlite import SqliteDatabase
from muniment.tracker.jobs import store as jobs
from muniment.tracker.jobs.reports import done_pages
from muniment.tracker.open import StartPages, open_job
from muniment.tracker.queue import rounds
from muniment.tracker.schema.tables import pages

ONE, TWO = site("1"), site("2")
GONE = {"status": 0, "error": "reset: gone"}


def used_up(job, url, now=1_000, **how):
    """Try a page until its tries are used up, as a worker does that is told when nothing follows.

    Another origin of its host has answered: in a job without any answer there would be no later round.
    """
    job.frontier.hosts.note_answered(job.page(url)["host_id"], "https://a.example:8443/")
    while True:
        claim = job.take(url, now=now)
        last = claim.last_try and claim.last_round
        job.finish(claim, done=last, now=now, **(how or GONE))
        page = job.page(url)
        if not page["attempts_remaining"]:
            return claim


def row(job, url, *names):
    page = job.page(url)
    return tuple(page[name] for name in names)


def test_a_page_waits_for_the_rest_and_is_asked_again(tracker):
    job = tracker(ONE, TWO, tries=2, rounds=1)
    used_up(job, ONE)
    assert row(job, ONE, "state", "attempts_remaining", "ready_at") == ("READY", 0, 1_000 + BETWEEN_ROUNDS_MS)
    assert job.sums()[:2] == (0, 1)
    assert job.frontier.next_round() == [], "another page is pending"
    two = job.take(TWO)
    assert job.frontier.next_round() == [], "another page is claimed"
    job.finish(two)
    assert job.frontier.settle(2_000) == JobState.DRAINING
    host = job.page(ONE)["host_id"]
    assert job.frontier.next_round() == [(host, 1, 1_000 + BETWEEN_ROUNDS_MS)]
    assert job.frontier.next_round() == [], "it is pending now"
    assert job.sums()[:2] == (1, 0)
    assert job.claim(now=1_000 + BETWEEN_ROUNDS_MS - 1) == []
    last = used_up(job, ONE, now=1_000 + BETWEEN_ROUNDS_MS)
    assert (last.attempt, last.last_try, last.last_round) == (4, True, True)
    assert job.sums()[:2] == (1, 1)
    assert job.frontier.next_round() == []
    assert job.frontier.settle(200_000) == JobState.FINISHED
    assert [number for number, _, _ in job.attempts(ONE)] == [1, 2, 3, 4], "the table keeps all"
    assert row(job, ONE, "attempts", "earlier_attempts", "rounds") == (2, 2, 1)


def test_a_page_that_a_later_round_captures_is_captured(tracker):
    job = tracker(ONE, tries=1)
    used_up(job, ONE)
    job.frontier.next_round()
    job.finish(job.take(ONE, now=100_000))
    assert job.sums()[:2] == (1, 0)
    assert job.frontier.settle(200_000) == JobState.FINISHED


def test_without_rounds_a_page_fails_at_once(tracker):
    job = tracker(ONE, tries=1, rounds=0)
    claim = job.take(ONE)
    assert claim.last_round
    job.finish(claim, done=True, **GONE)
    assert job.frontier.next_round() == []
    assert job.frontier.settle(1) == JobState.FINISHED


def test_a_kill_between_two_rounds_loses_nothing(tracker):
    job = tracker(ONE, tries=1)
    used_up(job, ONE)
    with job.db.transaction():
        assert list(done_pages(job.db, job.job_id)) == [], "it has no row yet"
    job.reopen()
    assert len(job.frontier.next_round()) == 1
    job.reopen()
    assert [claim.url for claim in job.claim(now=100_000)] == [ONE]


def test_a_round_that_an_earlier_run_began_is_known(tracker):
    job = tracker(ONE, TWO, tries=1)
    used_up(job, ONE)
    due = 1_000 + BETWEEN_ROUNDS_MS
    job.finish(job.take(TWO))
    assert job.frontier.begun_round(2_000) == (0, 0), "it has not begun"
    job.frontier.next_round()
    job.reopen()
    assert job.frontier.begun_round(2_000) == (1, due)
    assert job.frontier.begun_round(due) == (0, 0), "it is due"
    assert job.frontier.begun_round(due - 300_001) == (0, 0), "the clock was set back: it is due"


def test_a_page_that_was_not_asked_for_yet_is_no_round(tracker):
    job = tracker(ONE, TWO, tries=1)
    assert job.frontier.begun_round(2_000) == (0, 0)
    used_up(job, ONE)
    job.frontier.next_round([job.page(ONE)["host_id"]])
    assert job.page(ONE)["rounds"] == 1
    assert job.frontier.begun_round(2_000) == (0, 0), "another page is pending"


def test_answers_that_ask_for_patience_use_up_no_try(tracker):
    job = tracker(ONE, tries=2, rounds=0)
    for number in range(MOST_FREE):
        claim = job.take(ONE)
        assert (claim.free, claim.last_try, claim.attempt) == (True, False, number + 1)
        job.finish(claim, status=(429, 503)[number % 2], done=False)
    assert row(job, ONE, "attempts_remaining", "throttled") == (2, MOST_FREE)
    claim = job.take(ONE)
    assert not claim.free
    job.finish(claim, status=503, done=False)
    assert row(job, ONE, "attempts_remaining", "throttled") == (1, MOST_FREE)
    assert job.take(ONE).last_try


@pytest.mark.parametrize("listed", [False, True])
def test_a_page_that_is_throttled_lets_the_others_go_first(tracker, listed):
    """It may be the only one of its host that always is."""
    job = tracker(ONE, TWO, site("3"), seed="list.txt" if listed else "")
    [claim] = job.claim(1)
    assert claim.url == ONE
    job.finish(claim, status=503, done=False)
    assert [claim.url for claim in job.claim(2)] == [TWO, site("3")]
    job.reopen()
    assert [claim.url for claim in job.claim(3)] == [TWO, site("3"), ONE]


def test_the_last_try_knows_whether_its_origin_answered_in_this_job(tracker):
    job = tracker(ONE, tries=1)
    host = job.page(ONE)["host_id"]
    assert not job.take(ONE).answered
    job.reopen()
    job.frontier.hosts.note_answered(host, "https://a.example:8443/")
    assert not job.take(ONE).answered, "that is another origin"
    job.reopen()
    job.frontier.hosts.note_answered(host, ONE)
    job.frontier.hosts.keep_rest()
    job.reopen()
    assert job.take(ONE).answered
    assert job.frontier.hosts.answers(host)


def test_a_round_of_a_fleet_begins_when_nothing_else_waits(fleet):
    job = fleet.job(ONE, settings={"tries": 1, "rounds": 1})
    fleet.pipeline("p")
    fleet.finish(fleet.claim("p"), done=False, **GONE)
    assert fleet.state(job) == JobState.ACTIVE
    assert fleet.claim("p") == [], "not before its time"
    fleet.now += BETWEEN_ROUNDS_MS
    held = fleet.claim("p")
    assert [claim.attempt for _, claim in held] == [2]
    fleet.finish(held)
    assert fleet.state(job) == JobState.FINISHED


@pytest.mark.parametrize("robots", [True, False])
def test_what_settings_kept_out_waits_again_with_others(tracker, robots):
    reasons = {
        ONE: "robots: robots.txt disallows it", TWO: "noarchive: the page asks robots not to keep it",
        site("3"): "robots: robots.txt answers 503: nothing may be fetched", site("4"): "ignore: x",
        site("5"): "dead-host: given up after 3 failures, the last one refused: no",
        site("6"): "private-address: 10.0.0.1 is a private address",
    }  # fmt: skip
    job = tracker(*reasons)
    for url, reason in reasons.items():
        job.finish(job.take(url), status=0, error=reason, refused=reason)
    assert job.frontier.settle(5) == JobState.FINISHED
    job.settings |= {"robots": robots, "allow_private": not robots}
    assert rounds.any_to_revive(job.db, job.job_id, Settings(**job.settings)) is not robots
    job.reopen()
    assert jobs.load_job(job.db, job.job_id).state == (JobState.FINISHED if robots else JobState.ACTIVE)
    expected = set() if robots else {ONE, site("3"), site("6")}
    assert {url for url, state in job.states().items() if state == "READY"} == expected
    assert {claim.url for claim in job.claim()} == expected


def test_a_page_that_failed_with_its_host_waits_again_only_when_that_is_asked_for(tracker):
    job = tracker(ONE, rounds=0)
    job.finish(job.take(ONE), status=0, error="dead-host: given up after 3 failures", done=True)
    job.reopen()
    assert (job.sums()[:2], job.claim()) == ((0, 1), [])
    rounds.try_failed_again(job.db, job.job_id, 3)
    job.reopen()
    assert job.sums()[:2] == (0, 0)
    assert [claim.attempt for claim in job.claim()] == [2]


def test_a_job_without_any_answer_has_no_later_round(tracker):
    job = tracker(ONE, tries=2, rounds=2)
    job.finish(job.take(ONE), done=False, **GONE)
    assert job.take(ONE, now=1_000).last_round
    job.frontier.hosts.note_answered(job.page(ONE)["host_id"], "https://a.example:8443/")
    job.reopen()
    assert job.take(ONE, now=1_000).last_round, "that was not kept"
    job.frontier.hosts.note_answered(job.page(ONE)["host_id"], "https://a.example:8443/")
    job.frontier.hosts.keep_rest()
    job.reopen()
    assert not job.take(ONE, now=1_000).last_round


def test_a_round_is_found_by_its_index(tmp_path: Path) -> None:
    """A job of millions of pages, of which a few have failed."""
    with closing(SqliteDatabase.open(tmp_path / "tracker.sqlite")) as db:
        frontier = open_job(db, "job", Settings(tries=1), StartPages([ONE]), 1).frontier
        frontier.finish(
            finish_batch([finished(c, done=False, **GONE) for c in frontier.claim([(1, 1)], 1).claims]), 0, 1
        )
        asked: list[str] = []
        db._cursor.connection.set_trace_callback(asked.append)
        assert frontier.next_round()
        assert frontier.begun_round(2) == (1, 1 + BETWEEN_ROUNDS_MS)
        db._cursor.connection.set_trace_callback(None)
        plans = [step for sql in asked if " pages" in sql for step in plan(db._cursor.connection, sql)]
    assert plans
    assert all("USING INDEX ix_pages" in step for step in plans if "pages" in step), plans


def test_an_older_tracker_has_no_parked_pages(tracker):
    """What had failed before is done; only `--retry-failed` takes it up."""
    job = tracker(ONE, rounds=0)
    job.finish(job.take(ONE), done=True, **GONE)
    with job.db.transaction() as connection:
        connection.execute(update(pages).where(job.mine(pages)).values(ready_at=0))
    assert job.frontier.next_round() == []


def test_a_host_that_is_waited_for_keeps_no_other_from_its_round(tracker):
    other = site("", "b.example")
    job = tracker(ONE, other, tries=1)
    used_up(job, ONE)
    host, waited = job.page(ONE)["host_id"], job.page(other)["host_id"]
    assert job.frontier.next_round() == job.frontier.next_round([host]) == []
    assert [taken[:2] for taken in job.frontier.next_round([waited])] == [(host, 1)]
