"""Include and ignore patterns on a real tracker, and what a changed set of them does to a resumed job."""

from __future__ import annotations

import pytest
from sqlalchemy import select
from tracker_harness import IMG, REDIRECT, A, site

from muniment.errors import UsageError
from muniment.model.change import AddIgnore, RemoveIgnore, SetValues
from muniment.model.page import PageState
from muniment.rules.job_rules import Rules
from muniment.tracker.jobs import store as jobs
from muniment.tracker.schema import tables
from muniment.tracker.schema.changes import job_rulesets

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
    kept = job.db.connection.execute(
        select(job_rulesets.c.version, job_rulesets.c.rules).where(job.mine(job_rulesets))
    ).all()
    assert [version for version, _ in kept] == [1, 2]
    assert "a-one" in kept[0].rules
    assert "a-two" in kept[1].rules


def test_a_run_killed_while_it_judged_by_new_rules_is_judged_by_the_next(tracker):
    """The change is kept first; which version all pages were judged by is kept last."""
    job = begun(tracker, ignore=("one",))
    job.frontier.amend(RemoveIgnore("me", "one"), 1)
    job.frontier.amend(AddIgnore("me", "two"), 1)
    assert job.states()[ONE] == "SKIPPED"
    job.reopen()
    assert (job.states()[ONE], job.states()[TWO]) == ("READY", "SKIPPED")
    assert jobs.latest_rules(job.db, job.job_id) == (3, Rules((), ("two",)))


def test_an_added_pattern_holds_at_once_for_what_waits(tracker):
    job = begun(tracker)
    job.frontier.amend(AddIgnore("me", "two"), 1)
    batch = job.frontier.claim([(host, 1_000) for host in job.frontier.pending()], 0)
    assert sorted(claim.url for claim in batch.claims) == [ONE, site("x.png")]
    assert (job.states()[TWO], job.page(TWO)["reason"]) == ("SKIPPED", "ignore: two")
    assert [left_out[1:] for left_out in batch.left_out] == [(TWO, "ignore: two")]


def test_an_added_pattern_holds_for_a_page_whose_try_was_under_way(tracker):
    job = begun(tracker)
    claim = job.take(TWO)
    job.frontier.amend(AddIgnore("me", "two"), 1)
    job.frontier.judging().step()
    job.finish(claim, done=False, error="reset: gone")
    assert TWO not in [claim.url for claim in job.claim()]
    assert job.states()[TWO] == "SKIPPED"


def test_judging_tells_what_waits_more_and_less(tracker):
    job = begun(tracker, ignore=("one",))
    [host] = job.frontier.pending()
    job.frontier.amend(AddIgnore("me", "two"), 1)
    job.frontier.amend(AddIgnore("me", "png"), 1)
    judging = job.frontier.judging()
    judged = judging.step()
    assert judging.done
    assert (judged.pending[host], [url for url, _ in judged.skipped]) == (-2, [TWO, site("x.png")])
    job.frontier.amend(RemoveIgnore("me", "one"), 1)
    assert job.frontier.judging().step().pending[host] == 1
    assert sum(job.frontier.pending().values()) == 1


def test_a_walk_may_look_at_one_state_alone(tracker):
    job = begun(tracker, ignore=("one",))
    job.frontier.amend(RemoveIgnore("me", "one"), 1)
    job.frontier.amend(AddIgnore("me", "two"), 1)
    job.frontier.judging(PageState.READY).step()
    assert (job.states()[ONE], job.states()[TWO]) == ("SKIPPED", "SKIPPED")
    job.frontier.judging(PageState.SKIPPED).step()
    assert (job.states()[ONE], job.states()[TWO]) == ("READY", "SKIPPED")


def test_what_robots_txt_keeps_out_stays_out(tracker):
    job = begun(tracker)
    job.finish(job.take(TWO), refused="robots: robots.txt disallows it")
    job.reopen(ignore=("x.png",))
    assert (job.states()[TWO], job.page(TWO)["reason"]) == ("SKIPPED", "robots: robots.txt disallows it")


def test_settings_that_were_changed_stay_when_the_same_command_resumes(tracker):
    job = begun(tracker, per_host=3)
    job.frontier.amend(SetValues("me", (("per-host", "9"), ("max-pages", "5"))), 1)
    job.reopen()
    assert (job.opened.settings.per_host, job.opened.settings.max_pages) == (9, 5)
    job.reopen(per_host=4)
    assert (job.opened.settings.per_host, job.opened.settings.max_pages) == (4, 5)


def test_secrets_are_used_and_not_kept(tracker):
    job = begun(tracker, header=("Authorization: Basic x",), proxy="http://me:secret@proxy.example:1")
    job.reopen()
    assert job.opened.settings.header == ("Authorization: Basic x",)
    row = job.db.connection.execute(
        select(tables.jobs.c.settings, tables.jobs.c.given).where(job.mine(tables.jobs))
    ).one()
    assert not [text for text in row if "secret" in text or "Basic" in text]


def test_a_job_of_an_older_version_is_resumed(tracker):
    job = begun(tracker, ignore=("one",))
    with job.db.transaction() as connection:
        connection.execute(tables.jobs.update().where(job.mine(tables.jobs)).values(given="", judged=0))
    job.reopen(ignore=("two",))
    assert (job.states()[ONE], job.states()[TWO]) == ("READY", "SKIPPED")


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
