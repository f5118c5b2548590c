"""Hosts that never answered, why pages were left out, and giving failed ones their tries back."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import update
from tracker_harness import IMG, Tracker, site

from muniment.tracker.jobs import store as jobs
from muniment.tracker.jobs.reports import given_up, silent_hosts
from muniment.tracker.queue import rounds
from muniment.tracker.schema.tables import attempts, pages
from muniment.tracker.views.counts import job_summary

REFUSED = "refused: nobody is there"
DEAD = "dead-host: given up after 3 failures"


def test_hosts_without_any_answer(tracker):
    urls = [site(path, f"{host}.example") for host in "abcde" for path in ("1", "2")]
    made = tracker(*urls, robots=False)
    claims = {claim.url: claim for claim in made.claim()}

    def end(host, page, **how):
        made.finish(claims[site(str(page), f"{host}.example")], **how)

    end("a", 1, status=0, error=REFUSED)
    end("a", 2, status=0, error="dead-host: given up", refused="dead-host: given up after 3 failures")
    end("b", 1, status=0, error=REFUSED)
    end("b", 2, status=404)
    end("c", 1, status=200, error="cut: too early")
    end("c", 2, status=0, error=REFUSED)
    end("d", 1, status=0, error="timeout-header: silent")
    end("e", 1, status=0, error="", refused="robots: robots.txt disallows it")
    assert sorted(silent_hosts(made.db, made.job_id)) == [
        ("a.example", "dead-host", 1),
        ("a.example", "refused", 1),
        ("d.example", "timeout-header", 1),
    ]


def test_a_job_without_failures_has_none(tracker):
    made = tracker()
    made.crawl({})
    assert silent_hosts(made.db, made.job_id) == []


def take_up_again(job: Tracker, **how: Any) -> int:
    """What `--retry-failed` does before the frontier is there."""
    given = rounds.try_failed_again(job.db, job.job_id, job.settings.get("tries", 3))
    job.reopen(**how)
    return given


@pytest.mark.parametrize("status", [429, 500, 501, 503, 599])
def test_too_many_requests_and_server_errors_have_failed(tracker, status):
    made = tracker()
    made.finish(made.take(site("")), status=status)
    assert (made.sums(), made.page(site(""))["counted"]) == ((0, 1, 0, 0, 100), 3)
    assert not jobs.any_start_captured(made.db, made.job_id)


@pytest.mark.parametrize("status", [200, 304, 404, 428])
def test_other_answers_are_captures(tracker, status):
    made = tracker()
    made.finish(made.take(site("")), status=status)
    assert made.sums() == (1, 0, 1, 0, 100)


def test_tries_that_are_given_back_are_counted_anew_and_attempts_are_not(tracker):
    made = tracker(tries=2)
    for done in (False, True):
        made.finish(made.take(site("")), status=503, done=done)
    assert given_up(made.db, made.job_id) == take_up_again(made) == 1
    assert made.sums()[:4] == (0, 0, 0, 0)
    page = made.page(site(""))
    names = "attempts", "earlier_attempts", "attempts_remaining", "counted"
    assert tuple(page[name] for name in names) == (0, 2, 2, 0)
    claim = made.take(site(""))
    assert (claim.attempt, claim.last_try) == (3, False)
    made.finish(claim, status=0, error=REFUSED)
    assert made.attempts(site("")) == [(1, 503, ""), (2, 503, ""), (3, 0, REFUSED)]
    assert silent_hosts(made.db, made.job_id) == [("a.example", "refused", 1)], "by the latest try"


def test_rounds_and_throttled_answers_are_given_back_too(tracker):
    made = tracker()
    made.finish(made.take(site("")), status=503)
    spent = {"rounds": 2, "throttled": 50, "ready_at": 7}
    with made.db.transaction() as connection:
        connection.execute(update(pages).where(made.mine(pages)).values(**spent))
    take_up_again(made)
    assert {name: made.page(site(""))[name] for name in spent} == dict.fromkeys(spent, 0)


@pytest.mark.parametrize("status", [408, 425, 429, 503])
def test_pages_that_an_older_version_counted_as_captured_are_taken_out_of_the_sums(tracker, status):
    made = tracker(site("1"), site("2"))
    for claim in made.claim():
        made.finish(claim)
    with made.db.transaction() as connection:
        connection.execute(update(attempts).where(made.mine(attempts), attempts.c.page_id == 1).values(status=status))
    assert rounds.any_failed(made.db, made.job_id)
    assert given_up(made.db, made.job_id) == take_up_again(made) == 1
    assert made.sums()[:4] == (1, 0, 1, 0)
    assert [claim.url for claim in made.claim()] == [site("1")]
    assert not rounds.any_failed(made.db, made.job_id)


def test_an_earlier_answer_that_asked_for_another_try_is_past(tracker):
    made = tracker()
    made.finish(made.take(site("")), status=503, done=False)
    made.finish(made.take(site("")), status=200)
    assert not rounds.any_failed(made.db, made.job_id)
    assert given_up(made.db, made.job_id) == take_up_again(made) == 0


def test_start_pages_of_a_job_that_captured_nothing_leave_other_failures_counted(tracker):
    image = site("x.png")
    made = tracker()
    made.finish(made.take(site("")), {site(""): [(image, IMG)]}, status=503)
    made.finish(made.take(image), status=0, error=REFUSED)
    jobs.set_outcome(made.db, made.job_id, "failed")
    made.reopen()
    assert made.sums()[:4] == (0, 1, 0, 0)
    assert [claim.url for claim in made.claim()] == [site("")]


def test_pages_of_hosts_that_were_given_up_wait_again(tracker):
    made = tracker(site("1"), site("2"), site("3"))
    for number, refused in ((1, DEAD), (2, "robots: robots.txt disallows it"), (3, "noarchive: no")):
        made.finish(made.take(site(str(number))), status=0, error=refused, refused=refused)
    assert rounds.any_failed(made.db, made.job_id)
    assert given_up(made.db, made.job_id) == take_up_again(made) == 1
    assert made.states() == {site("1"): "READY", site("2"): "SKIPPED", site("3"): "SKIPPED"}
    assert [claim.url for claim in made.claim()] == [site("1")]


REASONS = {
    "ignore: ^x": "ignore", "rule 12: skip is true": "ignore", "robots: disallowed": "robots", DEAD: "dead-host",
    "noarchive: the page asks": "noarchive", "url: 9000 characters": "limit", "who knows": "other",
}  # fmt: skip


def test_what_is_skipped_and_what_fails_has_a_cause(tracker):
    errors = (
        "robots: robots.txt disallows it", "robots: the page asks robots not to keep it", DEAD,
        "limit: more than 20 redirects lead here", REFUSED,
    )  # fmt: skip
    urls = [site(str(number)) for number in range(len(REASONS) + len(errors))]
    made = tracker(*urls)
    claims = made.claim()
    for claim, reason in zip(claims, REASONS, strict=False):
        made.finish(claim, status=0, error=reason, refused=reason)
    for claim, error in zip(claims[len(REASONS) :], errors, strict=True):
        made.finish(claim, status=0, error=error)
    told = job_summary(made.db, made.job_id)
    assert next(iter(told.skipped.items())) == ("ignore", 2), "most first"
    assert told.skipped == {"ignore": 2, "robots": 1, "dead-host": 1, "noarchive": 1, "limit": 1, "other": 1}
    assert told.failed == {"robots": 2, "dead-host": 1, "limit": 1, "refused": 1}
    assert given_up(made.db, made.job_id) == 4, "what robots.txt and the page keep out is not"
