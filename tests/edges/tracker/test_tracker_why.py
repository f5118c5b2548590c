"""`why` tells the rule of a job that keeps a page out, as it stood in the version that the page was judged by."""

from __future__ import annotations

from collections.abc import Callable

from tracker_harness import A, Tracker, site

from muniment.control.why import RuleMatch, why
from muniment.model.change import SetRules
from muniment.model.rule import Rule
from muniment.tracker.queue.rejudge import rejudge

ONE, TWO = site("one"), site("two")
SKIP, LATER = Rule(prefix=ONE, skip=True), Rule(kind="link", skip=True)


def test_the_rule_that_keeps_a_page_out_is_told(tracker: Callable[..., Tracker]) -> None:
    job = tracker()
    job.frontier.amend(SetRules("t", (Rule(host="*.b.example", accept=False), SKIP)), 1)
    job.finish(job.take(site("")), {site(""): [(ONE, A), (TWO, A)]})
    told = why(job.place.directory, job.place, ONE)
    said = 'rule 2: skip is true; it is `{"prefix":"https://a.example/one","skip":true}` in version 2 of the rules'
    assert (told.verdict, told.text, told.rule) == ("skipped", said, RuleMatch(2, SKIP))
    assert why(job.place.directory, job.place, TWO).rule is None


def test_a_page_that_newer_rules_leave_out_waits_to_be_skipped(tracker: Callable[..., Tracker]) -> None:
    job = tracker()
    job.finish(job.take(site("")), {site(""): [(ONE, A)]})
    ruleset = job.frontier.amend(SetRules("t", (LATER,)), 1).ruleset
    told = why(job.place.directory, job.place, ONE)
    assert (told.verdict, told.rule) == ("queued", RuleMatch(2, LATER))
    assert told.text.startswith("will be skipped when its turn comes: rule 1: skip is true; it is `{")
    assert ruleset is not None
    rejudge(job.db, job.job_id, ruleset)
    job.frontier.amend(SetRules("t", (SKIP, LATER)), 2)
    told = why(job.place.directory, job.place, ONE)
    assert (told.verdict, told.rule) == ("skipped", RuleMatch(2, LATER)), (
        "the rules that it was judged by, not the newest"
    )


def test_a_pattern_is_no_rule(tracker: Callable[..., Tracker]) -> None:
    job = tracker(ignore=("/one$",))
    job.finish(job.take(site("")), {site(""): [(ONE, A)]})
    told = why(job.place.directory, job.place, ONE)
    assert (told.verdict, told.text, told.rule) == ("skipped", "ignore: /one$", None)
