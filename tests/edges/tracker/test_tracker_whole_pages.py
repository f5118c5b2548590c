"""Claims ask for what a captured page needs before further pages, and say where browsers would come from."""

from __future__ import annotations

from itertools import pairwise

import pytest
from tracker_harness import IFRAME, IMG, REDIRECT, A, site

from muniment.model.link import FoundAs
from muniment.tracker.schema.tables import pages

START, PAGE, OTHER, LAST = site(""), site("page"), site("other"), site("last")
IMAGE, STYLE, FONT, MOVED = site("image.png"), site("style.css"), site("font.woff"), site("moved.png")


def order(job, most=100):
    """What would be handed out next, in order; it is given back."""
    claims = job.claim(most)
    job.frontier.release([(c.page_id, c.claim_id) for c in claims])
    return [claim.url for claim in claims]


def test_requisites_go_before_pages_that_were_found_earlier(tracker):
    web = {
        START: [(PAGE, A), (OTHER, A), (LAST, A)],
        PAGE: [(site("new"), A), (STYLE, FoundAs.STYLESHEET), (IMAGE, IMG)],
        STYLE: [(FONT, FoundAs.CSS_URL)],
        IMAGE: [(MOVED, REDIRECT)],
    }
    job = tracker(START)
    job.finish(job.take(START), web)
    assert order(job) == [PAGE, OTHER, LAST]
    job.finish(job.take(PAGE), web)
    assert order(job) == [STYLE, IMAGE, OTHER, LAST, site("new")]
    assert [claim.nice for claim in job.claim()] == [-1, -1, 0, 0, 0]
    job.reopen()
    job.frontier.recover()
    assert order(job, 2) == [STYLE, IMAGE], "what a killed run held is asked for in the same order"
    job.finish(job.take(STYLE), web)
    job.finish(job.take(IMAGE), web)
    assert order(job) == [FONT, MOVED, OTHER, LAST, site("new")]


def test_a_link_that_waits_goes_first_once_a_page_needs_it(tracker):
    web = {START: [(PAGE, A), (OTHER, A), (IMAGE, A), (LAST, A)], PAGE: [(STYLE, FoundAs.STYLESHEET)]}
    web |= {STYLE: [(IMAGE, FoundAs.CSS_URL)], OTHER: [(LAST, IFRAME), (IMAGE, IMG)]}
    job = tracker(START)
    job.finish(job.take(START), web)
    job.finish(job.take(PAGE), web)
    assert order(job) == [STYLE, OTHER, IMAGE, LAST]
    job.finish(job.take(STYLE), web)
    assert order(job) == [IMAGE, OTHER, LAST]
    assert (job.hops(IMAGE), job.page(IMAGE)["nice"]) == ((1, 2), -1)
    job.finish(job.take(OTHER), web)
    assert job.hops(IMAGE) == (1, 1), "nearer once more, which takes nothing more from its nice value"
    assert order(job) == [IMAGE, LAST]
    assert [job.page(url)["nice"] for url in (IMAGE, LAST, OTHER)] == [-1, -1, 0]


def test_a_page_and_its_requisite_of_one_batch(tracker):
    job = tracker(START)
    job.finish(job.take(START), {START: [(PAGE, A), (OTHER, A), (LAST, A)]})
    claims = {claim.url: claim for claim in job.claim(2)}
    job.finish(list(claims.values()), {PAGE: [(IMAGE, A)], OTHER: [(IMAGE, IMG)]})
    assert order(job) == [IMAGE, LAST]


def test_what_an_operator_set_stays_one_apart(tracker):
    """`nice` is for operators too: a requisite has one less than it would have."""
    job = tracker(START)
    job.finish(job.take(START), {START: [(PAGE, A), (IMAGE, A)]})
    with job.db.transaction() as connection:
        connection.execute(pages.update().where(job.mine(pages)).values(nice=5))
    job.finish(job.take(PAGE), {PAGE: [(IMAGE, IMG)]})
    assert job.page(IMAGE)["nice"] == 4


def test_a_page_that_repair_brings_within_five_requisite_hops_goes_first(tracker):
    chain = [site(f"{n}.css") for n in range(6)]
    web = {a: [(b, FoundAs.CSS_IMPORT)] for a, b in pairwise(chain)}
    web[START] = [(chain[0], FoundAs.STYLESHEET), (PAGE, A), (LAST, A), (chain[5], A)]
    web[PAGE] = [(chain[1], FoundAs.STYLESHEET)]
    job = tracker(START)
    job.finish(job.take(START), web)
    for url in chain[:5]:
        job.finish(job.take(url), web)
    assert (job.hops(chain[5]), order(job)) == ((1, 6), [PAGE, LAST, chain[5]])
    job.finish(job.take(PAGE), web)
    while job.frontier.updating_depths:
        job.frontier.update_depths()
    assert (job.hops(chain[5]), order(job)) == ((1, 5), [chain[5], LAST])


def test_sitemaps_wait_for_their_turn(tracker):
    sitemap = site("sitemap.xml")
    job = tracker(START)
    job.finish(job.take(START), {START: [(PAGE, A), (sitemap, FoundAs.SITEMAP), (IMAGE, IMG)]})
    assert order(job) == [IMAGE, PAGE, sitemap]


# -- referrers


def referrers(job):
    """Every pending page with where browsers would come from."""
    claims = job.claim()
    job.frontier.release([(c.page_id, c.claim_id) for c in claims])
    return {claim.url: claim.referrer for claim in claims}


def test_the_page_that_led_here_first_is_the_referrer(tracker):
    job = tracker(START)
    assert referrers(job) == {START: ""}
    job.finish(job.take(START), {START: [(PAGE, A), (OTHER, A)]})
    assert referrers(job) == dict.fromkeys((PAGE, OTHER), START)
    job.finish(job.take(PAGE), {PAGE: [(OTHER, A), (IMAGE, IMG), (STYLE, FoundAs.STYLESHEET)]})
    assert referrers(job) == {OTHER: START, IMAGE: PAGE, STYLE: PAGE}
    job.finish(job.take(STYLE), {STYLE: [(FONT, FoundAs.CSS_URL)]})
    assert referrers(job)[FONT] == STYLE


def test_a_redirect_keeps_the_referrer_of_the_request_that_was_redirected(tracker):
    hops = [site(f"hop{n}") for n in range(3)]
    job = tracker(START)
    job.finish(job.take(START), {START: [(PAGE, A), (OTHER, A)]})
    job.finish(job.take(PAGE), {PAGE: [(hops[0], IMG)]})
    job.finish(job.take(OTHER), {OTHER: [(LAST, REDIRECT)]})
    for here, there in zip(hops, [*hops[1:], MOVED], strict=True):
        job.finish(job.take(here), {here: [(there, REDIRECT)]})
        assert referrers(job) == {there: PAGE, LAST: START}


@pytest.mark.parametrize("found_as", [FoundAs.SITEMAP_URL, FoundAs.SITEMAP, FoundAs.ROBOTS])
def test_what_lists_for_robots_name_comes_from_nowhere(tracker, found_as):
    job = tracker(START)
    job.finish(job.take(START), {START: [(PAGE, found_as)]})
    assert referrers(job) == {PAGE: ""}
    job.finish(job.take(PAGE), {PAGE: [(MOVED, REDIRECT)]})
    assert referrers(job) == {MOVED: ""}


def test_where_a_start_page_redirects_comes_from_nowhere(tracker):
    job = tracker(START)
    job.finish(job.take(START), {START: [(PAGE, REDIRECT)]})
    assert referrers(job) == {PAGE: ""}
    job.finish(job.take(PAGE), {PAGE: [(OTHER, A)]})
    assert referrers(job) == {OTHER: PAGE}
