"""A seed list in the tracker: lines become pages once, hops belong to their line, places outlast a kill."""

from __future__ import annotations

import pytest
from sqlalchemy import select
from tests.support.pages import finish_batch, finished

from muniment.model.link import FoundAs
from muniment.model.page import Claim
from muniment.model.place import TrackerPlace
from muniment.model.seed import BadLine, Prior, SeedBatch, SeedLine, SeedPlace
from muniment.model.url import host_of, is_web, url_key
from muniment.settings.option_table import Settings
from muniment.tracker.connect import opened
from muniment.tracker.jobs import store as jobs
from muniment.tracker.open import StartPages, open_job
from muniment.tracker.queue import rounds
from muniment.tracker.schema.tables import pages, seeds

A, B, C = (f"https://{name}.example/" for name in "abc")


class ListTracker:
    """One fetch."""

    def __init__(self, place: TrackerPlace, **settings: object) -> None:
        self.place, self.settings = place, Settings(seed="list", **settings)
        self.open()

    def open(self, **how: bool) -> None:
        self.db = opened(self.place)
        self.opened = open_job(self.db, "job", self.settings, StartPages(list_digest=b"d" * 16), 1_000, **how)
        self.frontier, self.book = self.opened.frontier, self.opened.seeds
        self.job_id = self.opened.job.job_id

    def reopen(self, **how: bool) -> None:
        self.db.close()
        self.open(**how)

    def admit(self, *lines: SeedLine | str, bad: int = 0) -> int:
        """Take in one batch; returns how many pages became pending."""
        at = self.book.read.place.number
        made = [line if isinstance(line, SeedLine) else SeedLine(at + n, line) for n, line in enumerate(lines, 1)]
        batch = SeedBatch(made, [BadLine(0, "x")] * bad, SeedPlace(100 * (at + len(made)), at + len(made)))
        return sum(self.book.admit(batch).values())

    def claims(self) -> dict[str, Claim]:
        found = self.frontier.claim([(host, 1000) for host in sorted(self.frontier.pending())], 10**12).claims
        return {claim.url: claim for claim in found}

    def finish(self, claim: Claim, *redirects: str, **how: object) -> None:
        links = [(url, FoundAs.REDIRECT) for url in redirects]
        self.frontier.finish(finish_batch([finished(claim, links, **how)], links), 0, 0)

    def urls(self) -> list[str]:
        return list(
            self.db.connection.execute(
                select(pages.c.url).where(pages.c.job_id == self.job_id).order_by(pages.c.id)
            ).scalars()
        )


@pytest.fixture
def tracker(new_place):
    made = ListTracker(new_place())
    yield made
    made.db.close()


def test_a_line_is_a_page_once(tracker):
    assert tracker.admit(A, B, A) == 2
    assert tracker.admit(B, C) == 1
    read = tracker.book.read
    assert (read.lines, read.duplicates, read.place.number) == (5, 2, 5)
    assert tracker.urls() == [A, B, C]


def test_a_url_is_known_by_all_of_it(tracker):
    assert tracker.admit(A + "?PHPSESSID=0123456789abcdef", A + "?PHPSESSID=abcdef0123456789", A) == 3


def test_a_plain_line_is_stored_once(tracker):
    tracker.admit(A, SeedLine(2, B, '{"x":"y"}', Prior("d", "e", "l", 7)))
    rows = [tuple(row) for row in tracker.db.connection.execute(select(seeds).where(seeds.c.job_id == tracker.job_id))]
    assert rows == [(tracker.job_id, 2, 2, "d", "e", "l", 7, '{"x":"y"}')]


def test_claims_bring_what_the_line_says(tracker):
    tracker.admit(A, SeedLine(2, B, '{"x":"y"}', Prior("d", "e", "l", 7)))
    claims = tracker.claims()
    assert (claims[A].seed_url, claims[A].meta_json, claims[A].prior) == (A, "", None)
    assert (claims[B].seed_url, claims[B].meta_json, claims[B].prior) == (B, '{"x":"y"}', Prior("d", "e", "l", 7))
    assert not any(claim.follow or claim.barred for claim in claims.values())


def test_every_hop_belongs_to_its_line(tracker):
    tracker.admit(SeedLine(1, A, '{"x":"y"}', Prior("d")))
    tracker.finish(tracker.claims()[A], B, status=301)
    second = tracker.claims()[B]
    tracker.finish(second, C, status=301)
    third = tracker.claims()[C]
    for claim in (second, third):
        assert (claim.seed_url, claim.meta_json, claim.prior, claim.depth) == (A, '{"x":"y"}', None, 0)
    assert third.via == B


def test_a_line_that_was_led_to_before_it_was_fetched_becomes_its_own(tracker):
    tracker.admit(A)
    tracker.finish(tracker.claims()[A], B, status=301)
    assert tracker.admit(SeedLine(2, B, '{"b":"b"}')) == 0
    claim = tracker.claims()[B]
    assert (claim.seed_url, claim.meta_json) == (B, '{"b":"b"}')
    assert tracker.book.read.duplicates == 0


def test_a_line_that_was_captured_as_a_hop_stays_so(tracker):
    tracker.admit(A)
    tracker.finish(tracker.claims()[A], B, status=301)
    tracker.finish(tracker.claims()[B])
    assert tracker.admit(B) == 0
    assert tracker.claims() == {}
    assert tracker.book.read.duplicates == 0


def test_what_cannot_be_asked_for_is_barred(tracker):
    tracker.admit("ftp://a.example/", "mailto:a@a.example", A + "x" * 9000)
    barred = {claim.url[:6]: (claim.host, claim.barred) for claim in tracker.claims().values()}
    assert barred == {
        "ftp://": ("", "scheme: ftp is neither http nor https"),
        "mailto": ("", "scheme: mailto is neither http nor https"),
        "https:": ("a.example", "limit: a URL of 9018 characters; at most 8000 are asked for"),
    }


def test_a_redirect_beyond_the_limit_is_barred(new_place):
    tracker = ListTracker(new_place(), max_redirects=2)
    tracker.admit(A + "0")
    for number in range(3):
        claim = tracker.claims()[f"{A}{number}"]
        assert not claim.barred
        tracker.finish(claim, f"{A}{number + 1}", status=302)
    [claim] = tracker.claims().values()
    assert (claim.url, claim.seed_url) == (A + "3", A + "0")
    assert claim.barred == "limit: more than 2 redirects lead here"
    tracker.db.close()


def test_a_place_outlasts_a_kill(tracker):
    tracker.admit(A, B, bad=3)
    before = tracker.book.read
    tracker.reopen()
    assert tracker.book.read == before
    assert tracker.admit(A, C) == 1
    assert (tracker.book.read.duplicates, tracker.book.read.bad) == (1, 3)


def test_a_job_is_not_over_before_its_list_is(tracker):
    assert tracker.frontier.settle(0) == "ACTIVE"
    tracker.admit(A)
    tracker.finish(tracker.claims()[A])
    assert tracker.frontier.settle(0) == "ACTIVE"
    tracker.book.end()
    assert tracker.frontier.settle(0) == "FINISHED"


def test_failed_pages_are_tried_again(tracker):
    tracker.admit(A, B)
    claims = tracker.claims()
    tracker.finish(claims[A])
    tracker.finish(claims[B], status=0, error="reset: x")
    tracker.book.end()
    tracker.frontier.settle(0)
    assert rounds.any_failed(tracker.db, tracker.job_id)
    tracker.reopen(retry_failed=True)
    assert jobs.find_job(tracker.db).state == "ACTIVE"
    assert (tracker.frontier.totals.captured, tracker.frontier.totals.failed) == (1, 0)
    again = tracker.claims()
    assert list(again) == [B]
    assert again[B].attempt == 2
    tracker.finish(again[B])
    assert tracker.frontier.totals.captured == 2
    assert not rounds.any_failed(tracker.db, tracker.job_id)


def test_a_sitemap_lists_pages_of_the_list(tracker):
    tracker.admit(SeedLine(1, A, found_as=FoundAs.SITEMAP))
    claim = tracker.claims()[A]
    links = [(B, FoundAs.SITEMAP_URL), (C, FoundAs.SITEMAP)]
    tracker.frontier.finish(finish_batch([finished(claim, links)], links), 0, 0)
    listed = tracker.claims()
    assert (listed[B].depth, listed[B].seed_url, listed[B].via) == (0, B, A)
    assert listed[C].found_as == FoundAs.SITEMAP


def test_the_cache_forgets_and_the_tracker_does_not(tracker):
    urls = [f"{A}{number}" for number in range(2500)]
    assert sum(tracker.admit(*urls[at : at + 500]) for at in range(0, 2500, 500)) == 2500
    tracker.reopen()
    assert tracker.admit(*urls[::2]) == 0
    assert tracker.book.read.duplicates == 1250
    assert all(is_web(url) and host_of(url) == "a.example" for url in tracker.urls())


def again(tracker):
    return [(line.key, line.meta_json) for line in tracker.book.repeats(0)]


def test_what_a_line_says_whose_url_an_earlier_line_has_is_kept_beside(tracker):
    tracker.admit(SeedLine(1, A, "a1"), SeedLine(2, A, "a2"), B, SeedLine(4, B, "b4"), A)
    claims = tracker.claims()
    assert (claims[A].meta_json, claims[B].meta_json) == ("a1", "")
    tracker.admit(SeedLine(6, B, "b6"), SeedLine(7, A, "", Prior("d")), SeedLine(8, C, "c8"))
    tracker.reopen()
    assert again(tracker) == [(url_key(A), "a2"), (url_key(B), "b4"), (url_key(B), "b6")]
    assert tracker.claims()[C].meta_json == "c8"


def test_what_a_later_line_knows_is_compared_with_all_the_same(tracker):
    tracker.admit(A, SeedLine(2, A, "a2", Prior("d", "e", "l", 7)))
    claim = tracker.claims()[A]
    assert (claim.prior, claim.meta_json) == (Prior("d", "e", "l", 7), "")


@pytest.mark.parametrize("done", [False, True])
def test_a_hop_that_is_being_fetched_stays_so_and_the_line_is_listed_again(tracker, done):
    tracker.admit(SeedLine(1, A, "a1"))
    tracker.finish(tracker.claims()[A], B, status=301)
    claim = tracker.claims()[B]
    if done:
        tracker.finish(claim)
    tracker.admit(SeedLine(2, B, "b2"), SeedLine(3, B, "b3"))
    assert again(tracker) == [(url_key(B), "b2"), (url_key(B), "b3")]
    assert tracker.book.read.duplicates == 1


def test_the_second_line_of_a_hop_is_listed_again(tracker):
    tracker.admit(SeedLine(1, A, "a1"))
    tracker.finish(tracker.claims()[A], B, status=301)
    tracker.admit(SeedLine(2, B, "b2"), SeedLine(3, B, "b3"))
    assert tracker.claims()[B].meta_json == "b2"
    assert again(tracker) == [(url_key(B), "b3")]
