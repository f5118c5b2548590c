"""Claim, finish, release, recover: what a page goes through in a real SQLite tracker."""

from __future__ import annotations

import pytest
from msgspec import structs
from sqlalchemy import select, update
from tests.support.pages import finish_batch, finished, packed_links
from tracker_harness import IFRAME, IMG, NOWHERE, REDIRECT, A, site

from muniment.control.why import why
from muniment.errors import ProtocolError
from muniment.model.link import FoundAs
from muniment.model.page import FinishBatch
from muniment.model.url import url_key
from muniment.rules.scope import FAR
from muniment.tracker.schema.tables import jobs, pages

START, ONE, TWO, THREE, FOUR = site(""), site("1"), site("2"), site("3"), site("4")
IMAGE, SHEET = site("i.png"), site("s.css")


def set_nice(job, url, nice):
    with job.db.transaction() as connection:
        connection.execute(update(pages).where(job.mine(pages), pages.c.key == url_key(url)).values(nice=nice))


def tried(job, url):
    page = job.page(url)
    return page["attempts"], page["attempts_remaining"], page["state"]


# -- claim


def test_pages_of_a_host_are_claimed_first_in_first_out(tracker):
    job = tracker(START, THREE, ONE, TWO)
    assert [claim.url for claim in job.claim(2)] == [START, THREE]
    assert [claim.url for claim in job.claim(2)] == [ONE, TWO]
    assert job.claim() == []


def test_a_lower_nice_value_goes_first(tracker):
    job = tracker(START, ONE, TWO, THREE)
    set_nice(job, TWO, -1)
    set_nice(job, START, 1)
    assert [claim.url for claim in job.claim()] == [TWO, ONE, THREE, START]


@pytest.mark.parametrize("listed", [False, True])
def test_pages_of_origins_that_are_left_alone_stay(tracker, listed):
    urls = [
        f"{origin}/{n}" for n in range(3) for origin in ("https://a.example", "http://a.example:8", "http://a.example")
    ]
    job = tracker(*urls, site("", "b.example"), seed="list.txt" if listed else "")
    [first, second] = sorted(job.frontier.pending())
    without = {first: ["http://a.example:8/", "http://a.example/"]}
    claims = job.frontier.claim([(first, 100), (second, 100)], 0, without=without).claims
    assert [claim.url for claim in claims] == [*(url for url in urls if url.startswith("https")), site("", "b.example")]
    assert job.frontier.claim([(first, 100)], 0, without=without).claims == []
    others = job.frontier.claim(
        [(first, 100)], 0, without={first: ["http://a.example:80/", "https://a.example/"]}
    ).claims
    assert [claim.url for claim in others] == [url for url in urls if not url.startswith("https")]


def test_a_claim_says_all_that_the_fetch_needs(tracker):
    web = {START: [(ONE, A), (site("x.png", "cdn.example"), IMG)]}
    job = tracker(START)
    start = job.take(START)
    assert (start.host, start.attempt, start.last_try, start.depth, start.via) == ("a.example", 1, False, 0, "")
    assert start.follow
    job.finish(start, web)
    page, image = job.claim()
    assert (page.url, page.depth, page.via, page.found_as, page.follow) == (ONE, 1, START, A, True)
    assert (image.host, image.depth, image.via, image.found_as, image.follow) == ("cdn.example", -1, START, IMG, False)


def test_no_page_is_given_the_same_claim_number_twice(tracker):
    job = tracker(START, ONE)
    given = []
    for _ in range(3):
        claims = [(claim.page_id, claim.claim_id) for claim in job.claim()]
        given += claims
        job.frontier.release(claims)
    assert len(set(given)) == 6


def test_a_host_gives_at_most_what_is_asked(tracker):
    job = tracker(START, ONE, site("", "b.example"), site("1", "b.example"))
    first, second = sorted(job.frontier.pending())
    assert [c.url for c in job.frontier.claim([(second, 1), (first, 5)], 0).claims] == [
        site("", "b.example"),
        START,
        ONE,
    ]


# -- finish


def test_success_leaves_no_attempts_and_failure_takes_one(tracker):
    job = tracker(START, ONE, tries=3)
    job.finish(job.take(START))
    job.finish(job.take(ONE), status=500, done=False)
    assert tried(job, START) == (1, 0, "READY")
    assert tried(job, ONE) == (1, 2, "READY")


def test_tries_end_and_each_is_kept(tracker):
    job = tracker(START, tries=3)
    lasts = []
    for _ in range(3):
        claim = job.take(START)
        lasts.append(claim.last_try)
        job.finish(claim, status=0, error="reset: gone", done=claim.last_try)
    assert lasts == [False, False, True]
    assert job.attempts(START) == [(1, 0, "reset: gone"), (2, 0, "reset: gone"), (3, 0, "reset: gone")]
    assert job.claim() == []
    assert job.sums()[:2] == (0, 1)


def test_a_retry_waits_until_it_is_ready(tracker):
    job = tracker(START)
    report = job.finish(job.take(START), status=503, done=False, retry_after_ms=2_000, now=10_000)
    assert list(report.retries.values()) == [12_000]
    assert job.claim(now=11_999) == []
    assert [claim.attempt for claim in job.claim(now=12_000)] == [2]


def test_the_earliest_retry_of_a_host_is_reported(tracker):
    job = tracker(START, ONE)
    start, one = job.claim()
    batch = finish_batch(
        [finished(start, done=False, retry_after_ms=900), finished(one, done=False, retry_after_ms=300)]
    )
    assert list(job.frontier.finish(batch, 0, 5_000).retries.values()) == [5_300]


def test_new_pages_of_a_host_do_not_wait_for_its_retries(tracker):
    job = tracker(START, ONE)
    start, one = job.claim()
    batch = [finished(start, [(TWO, A)]), finished(one, status=503, done=False, retry_after_ms=60_000)]
    report = job.frontier.finish(finish_batch(batch, [(TWO, A)]), 0, 0)
    assert list(report.pending.values()) == [2]
    assert report.retries == {}


def test_a_finish_sent_twice_changes_nothing_twice(tracker):
    web = {START: [(ONE, A)]}
    job = tracker(START)
    claim = job.take(START)
    job.finish(claim, web)
    before = job.everything()
    report = job.finish(claim, web)
    assert report.accepted == []
    assert report.pending == {}
    assert job.everything() == before


@pytest.mark.parametrize("wrong", [0, -1, 1 << 40])
def test_a_finish_with_another_claim_changes_nothing(tracker, wrong):
    job = tracker(START)
    claim = job.take(START)
    before = job.everything()
    page = finished(claim, [(ONE, A)])
    other = type(page)(*[wrong if name == "claim_id" else getattr(page, name) for name in page.__struct_fields__])
    assert job.frontier.finish(finish_batch([other], [(ONE, A)]), 0, 0).accepted == []
    assert job.everything() == before


def test_a_finish_of_a_page_that_was_given_to_another_changes_nothing(tracker):
    job = tracker(START)
    first = job.take(START)
    job.frontier.release([(first.page_id, first.claim_id)])
    second = job.take(START)
    assert job.finish(first).accepted == []
    assert job.page(START)["claim_id"] == second.claim_id
    assert len(job.finish(second).accepted) == 1


def test_a_finish_of_an_unknown_page_changes_nothing(tracker):
    job = tracker(START)
    claim = job.take(START)
    before = job.everything()
    page = finished(claim)
    other = type(page)(*[99 if name == "page_id" else getattr(page, name) for name in page.__struct_fields__])
    assert job.frontier.finish(finish_batch([other]), 0, 0).accepted == []
    assert job.everything() == before


def test_an_outlink_whose_text_was_never_told_is_refused_and_leaves_nothing(tracker):
    """An exception in the middle of a finish: the pages of the batch before it are rolled back too."""
    job = tracker(START, ONE)
    start, one = job.claim()
    before = job.everything()
    batch = FinishBatch([finished(start, [(TWO, A)]), finished(one, [(THREE, A)])], [(url_key(TWO), TWO)])
    with pytest.raises(ProtocolError):
        job.frontier.finish(batch, 0, 0)
    assert job.everything() == before
    job.reopen()
    assert job.states() == {START: "READY", ONE: "READY"}


def test_the_same_new_url_as_link_and_as_requisite_is_one_page(tracker):
    job = tracker(START)
    report = job.finish(job.take(START), {START: [(ONE, A), (ONE, IMG)]})
    assert list(report.pending.values()) == [1]
    assert job.hops(ONE) == (1, 1)
    assert job.children(START) == [(ONE, A), (ONE, IMG)]


def test_relations_are_kept_packed_and_in_order(tracker):
    links = [(ONE, A), (TWO, IMG), (THREE, IFRAME), (START, A), (site("f", "b.example"), FoundAs.ROBOTS)]
    job = tracker(START)
    job.finish(job.take(START), {START: links})
    assert job.children(START) == links


def test_outlinks_of_a_page_that_will_be_tried_again_are_told_by_the_last_try(tracker):
    job = tracker(START)
    job.finish(job.take(START), status=503, done=False)
    assert job.states() == {START: "READY"}
    job.finish(job.take(START), {START: [(ONE, A)]})
    assert job.hops(ONE) == (1, NOWHERE[1])


def test_an_unknown_page_beyond_the_level_is_kept_and_not_claimed(tracker):
    """Seed 002: it must be kept, for a shorter path may come."""
    web = {START: [(ONE, A)], ONE: [(TWO, A)], TWO: [(THREE, A)]}
    job = tracker(START, level=1)
    assert job.crawl(web) == [START, ONE]
    assert job.page(TWO)["in_scope"] is False
    assert job.states()[TWO] == "READY"


def test_each_page_of_a_batch_gets_what_became_of_it(tracker):
    job = tracker(START, ONE, TWO, THREE, site("4"), site("5"))
    captured, failed, retried, refused, again, kept = job.claim()
    stale = structs.replace(finished(kept), claim_id=kept.claim_id + 1)
    batch = [
        finished(captured),
        finished(failed, error="connect: refused", status=0),
        finished(retried, error="timeout: read", status=0, done=False, retry_after_ms=50),
        finished(refused, refused="robots.txt"),
        finished(again),
        stale,
    ]
    report = job.frontier.finish(finish_batch(batch), 0, 1000)
    assert [page.page_id for page in report.accepted] == [page.page_id for page in batch[:-1]]
    columns = "state", "claim_id", "attempts", "attempts_remaining", "ready_at", "counted", "reason"
    assert [tuple(job.page(page.url)[name] for name in columns) for page in (captured, failed, retried, refused)] == [
        ("READY", None, 1, 0, 0, 1, ""),
        ("READY", None, 1, 0, 0, 3, ""),
        ("READY", None, 1, 2, 1050, 0, ""),
        ("SKIPPED", None, 1, 3, 0, 0, "robots.txt"),
    ]
    assert tried(job, again.url) == (1, 0, "READY")
    assert (job.page(kept.url)["state"], job.page(kept.url)["claim_id"]) == ("CLAIMED", kept.claim_id)


# -- release and recover


def test_of_pages_released_together_those_with_another_claim_stay(tracker):
    job = tracker(START, ONE, TWO)
    first, second, third = job.claim()
    job.frontier.release([(first.page_id, first.claim_id), (second.page_id, 99), (third.page_id, third.claim_id)])
    assert list(job.states().values()) == ["READY", "CLAIMED", "READY"]


def test_a_released_page_waits_again_without_having_lost_a_try(tracker):
    job = tracker(START)
    claim = job.take(START)
    job.frontier.release([(claim.page_id, claim.claim_id)])
    page = job.page(START)
    assert (page["state"], page["claim_id"], page["attempts"], page["attempts_remaining"]) == ("READY", None, 0, 3)


def test_a_release_with_another_claim_changes_nothing(tracker):
    job = tracker(START)
    claim = job.take(START)
    job.frontier.release([(claim.page_id, claim.claim_id + 1)])
    assert job.page(START)["state"] == "CLAIMED"


def test_what_a_killed_run_held_waits_again(tracker):
    job = tracker(START, ONE, TWO)
    job.finish(job.take(START))
    held = job.claim()
    assert job.states() == {START: "READY", ONE: "CLAIMED", TWO: "CLAIMED"}
    job.reopen()
    assert (job.opened.resumed, job.opened.given_back) == (True, len(held))
    assert sorted(claim.url for claim in job.claim()) == [ONE, TWO]


def test_a_retry_that_waits_is_kept_by_a_restart(tracker):
    job = tracker(START)
    job.finish(job.take(START), status=503, done=False, retry_after_ms=60_000, now=1_000)
    job.reopen()
    assert sum(job.frontier.pending().values()) == 1
    assert job.claim(now=60_999) == []
    assert [claim.attempt for claim in job.claim(now=61_000)] == [2]


# -- sums


def test_pages_requisites_failures_and_bytes_are_counted(tracker):
    image, gone = site("x.png"), site("gone")
    web = {START: [(ONE, A), (image, IMG), (gone, A)]}
    job = tracker(START)
    job.finish(job.take(START), web, body_length=1_000)
    job.finish(job.take(ONE), body_length=200)
    job.finish(job.take(image), body_length=30)
    job.finish(job.take(gone), status=0, error="reset: gone", body_length=4)
    assert job.sums() == (2, 1, 1, 1, 1_234)
    job.reopen()
    totals = job.frontier.totals
    assert (totals.captured, totals.failed, totals.starts_captured, totals.requisites) == (2, 1, 1, 1)
    assert totals.payload_bytes == 1_234


def test_a_try_that_will_be_repeated_is_not_counted(tracker):
    job = tracker(START)
    job.finish(job.take(START), status=503, done=False, body_length=77)
    assert job.sums() == (0, 0, 0, 0, 77)


def test_pending_is_counted_per_host_and_agrees_with_the_reports(tracker):
    web = {START: [(ONE, A), (TWO, A), (site("x", "b.example"), A)]}
    job = tracker(START)
    report = job.finish(job.take(START), web)
    assert report.pending == job.frontier.pending()
    assert sorted(report.pending.values()) == [1, 2]


def test_a_url_known_before_a_restart_is_not_a_new_page_after_it(tracker):
    web = {START: [(ONE, A)], ONE: [(START, A), (ONE, A), (TWO, A)]}
    job = tracker(START)
    job.finish(job.take(START), web)
    job.reopen()
    job.finish(job.take(ONE), web)
    assert list(job.states()) == [START, ONE, TWO]


# -- where scripts lead


def test_a_document_that_a_rendered_page_was_sent_to_is_done_with_it(tracker):
    job = tracker(START, ONE)
    report = job.finish(job.take(START), {START: [(TWO, FoundAs.FOLLOWED), (THREE, A)]})
    assert sum(report.pending.values()) == 1
    assert job.sums()[0] == 2
    job.reopen()
    # what is linked as well is asked for once, and what waited before waits no more
    job.finish(job.take(ONE), {ONE: [(TWO, A), (THREE, FoundAs.FOLLOWED)]})
    assert job.claim() == []
    assert why(job.place.directory, job.place, TWO).verdict == "captured"


def test_a_document_that_was_nearer_than_the_page_sent_to_it_leads_on_from_there(tracker):
    job = tracker(START)
    job.finish(job.take(START), {START: [(ONE, A), (TWO, A)]})
    job.finish(job.take(ONE), {ONE: [(THREE, A)]})
    job.finish(job.take(THREE), {THREE: [(TWO, FoundAs.FOLLOWED), (FOUR, A)]})
    assert [claim.url for claim in job.claim()] == [FOUR]
    assert (job.hops(TWO), job.hops(FOUR)) == ((1, FAR), (2, FAR))


def test_what_a_browser_got_is_done_with_its_page(tracker):
    got, frame = FoundAs.REQUISITE, FoundAs.SUBDOCUMENT
    job = tracker(START, ONE, THREE)
    # one that waits for its first try, one that is a page of the crawl, one that is new, one that is in hand
    job.finish(job.take(ONE), {ONE: [(IMAGE, FoundAs.IMG), (TWO, A)]})
    held = {claim.url: claim for claim in job.claim()}
    job.frontier.release([(c.page_id, c.claim_id) for c in held.values() if c.url not in (START, THREE)])
    waited = sum(job.frontier.pending().values())
    web = {START: [(IMAGE, got), (TWO, frame), (FOUR, frame), (SHEET, got), (THREE, got)]}
    report = job.finish(held[START], web)
    assert sum(report.pending.values()) == sum(job.frontier.pending().values()) - waited == -1
    assert not report.requisites
    assert {claim.url for claim in job.claim()} == {TWO}
    assert [job.attempts(url) for url in (IMAGE, FOUR, SHEET, THREE)] == [[(1, 200, "")]] * 3 + [[]]
    assert job.frontier.totals.requisites == 3
    # later a link leads to both: the document is a page of the site now, and its own links were not recorded
    report = job.finish(held[THREE], {THREE: [(FOUR, A), (IMAGE, A), (SHEET, FoundAs.STYLESHEET)]})
    while job.frontier.updating_depths:
        job.frontier.update_depths()
    assert {claim.url for claim in job.claim()} == {FOUR}


# -- payloads


def test_a_payload_is_known_by_its_first_capture(tracker):
    job = tracker(START, ONE)
    start, one = job.claim()
    digest, first, second = b"d" * 20, b"1" * 16, b"2" * 16
    batch = finish_batch(
        [finished(start, payload=digest, record_id=first), finished(one, payload=digest, record_id=second)]
    )
    job.frontier.finish(batch, 0, 0)
    for _ in range(2):
        known = job.frontier.payloads.known([digest, b"e" * 20, digest[:10] + b"e" * 10])
        assert list(known) == [digest]
        assert (known[digest].url, known[digest].record_id) == (START, first)
        job.reopen()


def test_more_digests_than_one_lookup_takes(tracker):
    urls = [site(str(n)) for n in range(300)]
    job = tracker(*urls)
    made = [
        finished(claim, payload=claim.page_id.to_bytes(20, "big"), record_id=claim.page_id.to_bytes(16, "big"))
        for claim in job.claim()
    ]
    job.frontier.finish(finish_batch(made), 0, 0)
    known = job.frontier.payloads.known([n.to_bytes(20, "big") for n in range(400)])
    assert sorted(earlier.url for earlier in known.values()) == sorted(urls)


# -- the site


def test_the_host_that_a_start_page_redirects_to_is_the_site(tracker):
    home, inner = site("", "b.example"), site("inner", "b.example")
    web = {START: [(home, REDIRECT)], home: [(inner, A)], inner: [(site("deep", "b.example"), A)]}
    job = tracker(START)
    assert job.crawl(web) == [START, home, inner, site("deep", "b.example")]


def test_a_redirect_of_another_page_makes_no_site(tracker):
    away, inner = site("", "b.example"), site("inner", "b.example")
    web = {START: [(ONE, A)], ONE: [(away, REDIRECT)], away: [(inner, A)]}
    job = tracker(START)
    assert job.crawl(web) == [START, ONE, away]


def test_pages_captured_before_their_host_became_the_site_go_again_and_are_followed(tracker):
    moved, home, page = site("moved"), site("", "b.example"), site("page", "b.example")
    web = {START: [(page, A)], moved: [(home, REDIRECT)], page: [(site("deep", "b.example"), A)]}
    job = tracker(START, moved)
    job.finish(job.take(START), web)
    job.finish(job.take(page), web)
    assert job.page(page)["attempts_remaining"] == 0
    job.finish(job.take(moved), web)
    assert job.page(page)["attempts_remaining"] == 1
    again = job.take(page)
    assert again.follow
    job.frontier.release([(again.page_id, again.claim_id)])
    assert set(job.crawl(web)) == {home, page, site("deep", "b.example")}
    assert [number for number, _, _ in job.attempts(page)] == [1, 2]


def test_a_page_out_while_its_host_becomes_the_site_goes_again(tracker):
    moved, home, page = site("moved"), site("", "b.example"), site("page", "b.example")
    web = {START: [(page, A)], moved: [(home, REDIRECT)], page: [(site("deep", "b.example"), A)]}
    job = tracker(START, moved)
    job.finish(job.take(START), web)
    out = job.take(page)
    job.finish(job.take(moved), web)
    job.finish(out, web)
    assert set(job.crawl(web)) == {home, page, site("deep", "b.example")}


def test_a_page_that_goes_again_counts_once(tracker):
    moved, home, page = site("moved"), site("", "b.example"), site("page", "b.example")
    web = {START: [(page, A)], moved: [(home, REDIRECT)]}
    job = tracker(START, moved)
    for url in (START, page, moved, home, page):
        job.finish(job.take(url), web)
    assert job.sums()[0] == 4


def test_a_failed_page_that_goes_again_counts_once(tracker):
    moved, home, page = site("moved"), site("", "b.example"), site("page", "b.example")
    web = {START: [(page, A)], moved: [(home, REDIRECT)]}
    job = tracker(START, moved)
    job.finish(job.take(START), web)
    job.finish(job.take(page), status=0, error="reset: gone")
    for url in (moved, home, page):
        job.finish(job.take(url), web)
    assert job.sums()[:2] == (4, 0)


def test_without_a_parent_a_host_has_the_directories_of_all_its_start_pages(tracker):
    start, other = site("one/two/page"), site("x", "b.example")
    inside, beside = (site("one/two/in"), site("three/in"), site("any", "b.example")), (site("one/out"), site("three"))
    job = tracker(start, site("three/page"), site("all/x", "b.example"), other, no_parent=True)
    web = {start: [(url, A) for url in (*inside, *beside)]}
    web |= {url: [(f"{url}/next", A)] for url in (*inside, *beside)}
    assert {url for url in job.crawl(web) if url.endswith("/next")} == {f"{url}/next" for url in inside}


def test_no_parent_keeps_to_the_directory_of_each_start_page(tracker):
    start, other = site("docs/index.html"), site("wiki/")
    web = {start: [(site("docs/a"), A), (site("blog/"), A), (site("docsx"), A)], site("docs/a"): [(site("docs/b"), A)]}
    web |= {site("blog/"): [(site("blog/inner"), A)]}
    web |= {other: [(site("wiki/w"), A)], site("wiki/w"): [(site("wiki/v"), A)]}
    job = tracker(start, other, no_parent=True)
    assert set(job.crawl(web)) == {
        start, other, site("docs/a"), site("docs/b"), site("blog/"), site("docsx"), site("wiki/w"), site("wiki/v"),
    }  # fmt: skip


def test_a_job_is_active_and_its_settings_hold_no_secret(tracker):
    job = tracker(
        START,
        proxy=("http://user:hush@proxy.example:1/", "*.a=http://u:hush@b:1"),
        header=("Cookie: hush", "X-Plain: kept"),
    )
    state, kept = job.db.connection.execute(select(jobs.c.state, jobs.c.settings).where(job.mine(jobs))).one()
    assert state == "ACTIVE"
    assert "hush" not in kept
    assert "X-Plain: ***" in kept


def test_packed_links_are_what_the_tracker_unpacks():
    assert len(packed_links([(ONE, A), (TWO, IMG)])) == 34
