"""Include and ignore patterns on a real tracker, and what a changed set of them does to a resumed job."""

from __future__ import annotations

import pytest
from sqlalchemy import select
from tracker_harness import IMG, REDIRECT, A, site

from muniment.errors import UsageError
from muniment.rules.patterns import Patterns
from muniment.rules.rulesets import Rules
from muniment.tracker import jobs
from muniment.tracker.admission import Ruleset
from muniment.tracker.rejudge import rejudge
from muniment.tracker.tables import job_rulesets

START, ONE, TWO = site(""), site("one"), site("two")
WEB = {START: [(ONE, A), (TWO, A), (site("x.png"), IMG)]}


def begun(tracker, **settings):
    job = tracker(START, **settings)
    job.finish(job.take(START), WEB)
    return job


def test_an_ignored_url_is_skipped_with_its_reason(tracker):
    job = tracker(START, ignore=(r"/one$",))
    report = job.finish(job.take(START), WEB)
    assert report.skipped == [(ONE, r"ignore: /one$")]
    assert (job.page(ONE)["state"], job.page(ONE)["reason"]) == ("SKIPPED", r"ignore: /one$")
    assert sorted(claim.url for claim in job.claim()) == [TWO, site("x.png")]


@pytest.mark.parametrize("how", [A, IMG, REDIRECT])
def test_every_way_to_a_url_is_checked_against_ignores(tracker, how):
    job = tracker(START, ignore=("one",))
    job.finish(job.take(START), {START: [(ONE, how)]})
    assert job.states() == {START: "READY", ONE: "SKIPPED"}


def test_a_start_url_may_be_ignored(tracker):
    assert tracker(START, ONE, ignore=("one",)).states() == {START: "READY", ONE: "SKIPPED"}


def test_include_keeps_links_out_and_lets_requisites_and_start_pages_in(tracker):
    job = begun(tracker, include=("two",))
    assert sorted(job.standings()) == [START, TWO, site("x.png")]


def test_patterns_may_name_the_start_page(tracker):
    job = tracker(START, ignore=(r"^{primary_url}one",))
    job.finish(job.take(START), {START: [(ONE, A), (site("one", "b.example"), A)]})
    assert job.states() == {START: "READY", ONE: "SKIPPED", site("one", "b.example"): "READY"}


def test_a_resumed_run_that_ignores_more_skips_what_waits(tracker):
    job = begun(tracker)
    job.reopen(ignore=("two",))
    assert job.states()[TWO] == "SKIPPED"
    assert sorted(claim.url for claim in job.claim()) == [ONE, site("x.png")]


def test_a_resumed_run_that_ignores_less_fetches_what_was_skipped(tracker):
    job = begun(tracker, ignore=("one", "two"))
    job.reopen(ignore=("two",))
    assert (job.states()[ONE], job.states()[TWO]) == ("READY", "SKIPPED")
    assert job.page(ONE)["reason"] == ""
    assert sorted(claim.url for claim in job.claim()) == [ONE, site("x.png")]


def test_a_done_page_is_not_judged_again(tracker):
    job = begun(tracker)
    job.finish(job.take(ONE))
    job.reopen(ignore=("one",))
    assert (job.states()[ONE], job.page(ONE)["attempts_remaining"]) == ("READY", 0)


def test_what_a_killed_run_held_is_judged_too(tracker):
    job = begun(tracker)
    job.take(TWO)
    job.claim()
    job.reopen(ignore=("two",))
    assert job.states()[TWO] == "SKIPPED"


def test_every_version_of_the_rules_is_kept(tracker):
    job = begun(tracker, ignore=("a-one",))
    job.reopen(ignore=("a-two",))
    job.reopen()
    kept = job.db.connection.execute(select(job_rulesets.c.version, job_rulesets.c.rules)).all()
    assert [version for version, _ in kept] == [1, 2]
    assert "a-one" in kept[0].rules
    assert "a-two" in kept[1].rules


def test_a_run_killed_while_it_judged_by_new_rules_is_judged_by_the_next(tracker):
    """The rules are kept last, so a run that died on the way finds them changed still."""
    job = begun(tracker)
    rejudge(job.db, job.job_id, Ruleset(2, Patterns(()), Patterns(("one",))))
    assert jobs.latest_rules(job.db, job.job_id) == (1, Rules())
    job.reopen(ignore=("two",))
    assert (job.states()[ONE], job.states()[TWO]) == ("READY", "SKIPPED")
    assert jobs.latest_rules(job.db, job.job_id) == (2, Rules((), ("two",)))


def test_a_page_that_is_skipped_still_by_another_pattern_says_which(tracker):
    job = begun(tracker, ignore=("one",))
    job.reopen(ignore=("on.$",))
    assert job.page(ONE)["reason"] == "ignore: on.$"


def test_a_pattern_that_is_none_is_refused_before_anything_changes(tracker):
    job = begun(tracker)
    job.close()
    job.settings["ignore"] = ("(",)
    with pytest.raises(UsageError):
        job.open()
    job.reopen(ignore=())
    assert job.states()[TWO] == "READY"
