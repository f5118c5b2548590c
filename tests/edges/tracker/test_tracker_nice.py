"""Nice values and user agents that rules say: for waiting pages, for new ones, for what pages need and redirect to."""

from __future__ import annotations

import pytest
from tracker_harness import IMG, REDIRECT, A, site

from muniment.errors import UsageError
from muniment.model.change import SetNice, SetRules
from muniment.model.link import FoundAs
from muniment.model.rule import Rule
from muniment.rules.rule_engine import MOST_NICE

START, ONE, TWO = site(""), site("one/"), site("two/")
IMAGE, STYLE, FONT, AWAY = site("i.png"), site("s.css"), site("f.woff"), site("away", "b.example")
WEB = {
    START: [(ONE, A), (TWO, A), (AWAY, A)],
    TWO: [(STYLE, FoundAs.STYLESHEET), (site("two/x"), A), (site("two/moved"), A), (site("three"), A)],
    STYLE: [(FONT, FoundAs.CSS_URL), (IMAGE, FoundAs.CSS_URL)],
    site("two/moved"): [(site("four"), REDIRECT)],
}


def nice(job, *urls):
    return [job.page(url)["nice"] for url in urls]


def order(job):
    claims = job.claim(100)
    job.frontier.release([(c.page_id, c.claim_id) for c in claims])
    return [claim.url for claim in claims]


def amend(job, change):
    """A change, and the walk through all that waits."""
    amended = job.frontier.amend(change, 0)
    if amended.ruleset is not None:
        walk(job)
    return [(one.what, one.before, one.after) for one in amended.changes]


def walk(job):
    judging = job.frontier.judging()
    while not judging.done:
        judging.step()


def begun(tracker):
    job = tracker(START)
    job.finish(job.take(START), WEB)
    return job


def test_pages_that_wait_and_pages_that_come_go_by_what_was_set(tracker):
    job = begun(tracker)
    assert order(job)[:2] == [ONE, TWO]
    assert amend(job, SetNice("me", "", TWO, -5)) == [(f"nice of {TWO}", "", "-5")]
    assert order(job)[:2] == [TWO, ONE]
    job.finish(job.take(TWO), WEB)
    assert nice(job, site("two/x"), site("three"), ONE) == [-5, 0, 0]
    assert order(job)[:4] == [STYLE, site("two/x"), site("two/moved"), ONE]
    # by host, both ways, and back
    assert amend(job, SetNice("me", "B.example", "", 3)) == [("nice of b.example", "", "3")]
    assert nice(job, AWAY, ONE, site("two/x")) == [3, 0, -5]
    assert amend(job, SetNice("me", "", TWO, 7)) == [(f"nice of {TWO}", "-5", "7")]
    assert nice(job, site("two/x"), STYLE) == [7, 6]
    assert amend(job, SetNice("me", "", TWO, None)) == [(f"nice of {TWO}", "7", "")]
    assert amend(job, SetNice("me", "b.example", "", None)) == [("nice of b.example", "3", "")]
    assert nice(job, site("two/x"), STYLE, AWAY) == [0, -1, 0]
    assert amend(job, SetNice("me", "b.example", "", None)) == []


def test_what_a_page_needs_has_one_less_than_the_page(tracker):
    job = begun(tracker)
    amend(job, SetNice("me", "", TWO, -5))
    job.finish(job.take(TWO), WEB)
    job.finish(job.take(STYLE), WEB)
    job.finish(job.take(site("two/moved")), WEB)
    # a style sheet, what that shows, and where a page moved to, all of them outside the prefix
    assert nice(job, STYLE, FONT, IMAGE, site("four")) == [-6, -6, -6, -5]
    amend(job, SetNice("me", "", TWO, 5))
    assert nice(job, FONT, IMAGE, site("four")) == [4, 4, 5], "their pages are done, and count all the same"
    amend(job, SetNice("me", "", IMAGE, -2))
    assert nice(job, FONT, IMAGE) == [4, -3], "its own value, which is lower"
    amend(job, SetNice("me", "", IMAGE, 20))
    assert nice(job, FONT, IMAGE) == [4, 4], "its page's value, which is lower"


def test_what_was_set_outlasts_a_resume_and_a_kill_within_the_walk(tracker):
    job = begun(tracker)
    job.frontier.amend(SetNice("me", "", TWO, -5), 0)
    job.reopen()
    assert nice(job, TWO, ONE) == [-5, 0]
    job.finish(job.take(TWO), WEB)
    assert nice(job, STYLE, site("two/x")) == [-6, -5]
    job.frontier.amend(SetNice("me", "", TWO, None), 0)
    job.reopen()
    assert nice(job, STYLE, site("two/x")) == [-1, 0]


def test_a_page_that_is_out_or_waits_for_a_round_comes_back_by_it(tracker):
    job = begun(tracker)
    claim = job.take(TWO)
    amend(job, SetNice("me", "", TWO, -5))
    job.finish(claim, {}, status=500, error="", done=False, retry_after_ms=1)
    assert nice(job, TWO) == [-5]
    assert job.claim(100, now=10)[0].url == TWO


def test_what_a_host_throttled_stays_behind(tracker):
    job = begun(tracker)
    job.finish(job.take(TWO), {}, status=429, error="", done=False, retry_after_ms=1)
    assert nice(job, TWO) == [1]
    amend(job, SetNice("me", "a.example", "", -5))
    assert nice(job, TWO, ONE) == [-4, -5]


def test_rules_say_nice_values_too(tracker):
    job = begun(tracker)
    amend(job, SetRules("me", (Rule(nice=2), Rule(regex="two", nice=-2), Rule(kind="requisite", nice=4))))
    job.finish(job.take(TWO), WEB)
    assert nice(job, ONE, site("two/x"), site("three"), STYLE) == [2, -2, 2, -3]
    amend(job, SetNice("me", "a.example", "", 9))
    assert nice(job, ONE, site("two/x"), AWAY) == [9, 9, 2], "what is said last"


@pytest.mark.parametrize(
    ("host", "prefix", "value", "told"),
    [
        ("", "", 1, "name one of them"),
        ("a.example", "", MOST_NICE + 1, "is not from"),
        ("", "HTTPS://A.example/x", 1, "did you mean https://a.example/x?"),
        ("", "a.example/x", 1, "did you mean https://a.example/x?"),
        ("*", "", 1, "is not a host"),
    ],
)
def test_what_makes_no_sense_is_refused(tracker, host, prefix, value, told):
    with pytest.raises(UsageError, match=told.replace("?", r"\?")):
        begun(tracker).frontier.amend(SetNice("me", host, prefix, value), 0)


def agents(job):
    claims = job.claim(100)
    job.frontier.release([(c.page_id, c.claim_id) for c in claims])
    return {claim.url: claim.orders.ua for claim in claims}


def test_an_agent_is_that_of_a_page_of_what_it_needs_and_of_where_it_moved(tracker):
    job = begun(tracker)
    amend(job, SetRules("me", (Rule(prefix=TWO, ua="firefox"),)))
    job.finish(job.take(TWO), WEB)
    job.finish(job.take(STYLE), WEB)
    job.finish(job.take(site("two/moved")), WEB)
    assert agents(job) == {
        FONT: "firefox", IMAGE: "firefox", site("four"): "firefox", site("two/x"): "firefox",
        ONE: "", AWAY: "", site("three"): "",
    }  # fmt: skip
    # an own rule wins, the empty one too
    amend(job, SetRules("me", (Rule(prefix=TWO, ua="firefox"), Rule(prefix=FONT, ua=""), Rule(prefix=IMAGE, ua="x"))))
    assert {url: agent for url, agent in agents(job).items() if url in (FONT, IMAGE)} == {FONT: "", IMAGE: "x"}


def test_a_sitemap_is_asked_for_as_the_job_says(tracker):
    job = tracker(START)
    amend(job, SetRules("me", (Rule(prefix=START, regex="/$", ua="firefox"),)))
    job.finish(job.take(START), {START: [(site("sitemap.xml"), FoundAs.SITEMAP), (IMAGE, IMG)]})
    assert agents(job) == {site("sitemap.xml"): "", IMAGE: "firefox"}


def test_jobs_without_such_rules_look_nothing_up(tracker, monkeypatch):
    monkeypatch.setattr("muniment.tracker.queue.new_pages.inheritances", None)
    monkeypatch.setattr("muniment.tracker.queue.claims.inheritances", None)
    job = begun(tracker)
    amend(job, SetRules("me", (Rule(prefix=ONE, skip=True),)))
    job.finish(job.take(TWO), WEB)
    assert agents(job)[STYLE] == ""


def test_requisites_that_wait_are_told_whatever_their_value(tracker):
    job = begun(tracker)
    for value in (-5, 5):
        amend(job, SetNice("me", "a.example", "", value))
        if value < 0:
            job.finish(job.take(TWO), WEB)
        assert [count for _, count in job.frontier.requisites()] == [1], "the style sheet"
