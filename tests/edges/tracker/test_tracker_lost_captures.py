"""Lost captures: their pages wait again, sums are put right, and nothing refers to a payload that is gone."""

from __future__ import annotations

import hashlib
from uuid import UUID

from msgspec import structs
from tests.support.exchanges import exchange, page_context
from tracker_harness import A, site

from muniment.archive.index.rows import record_row
from muniment.model.link import FoundAs

START, PAGE = site(""), site("page")
RECORD = UUID(int=7)
ROUTE = FoundAs.FRAGMENT_ROUTE
BODY = b"<p>a page that is long enough</p>"


def capture(url, attempt=1, found_as="a", record=RECORD):
    context = structs.replace(page_context(), attempt=attempt, found_as=found_as)
    place = ("muniment-00000.warc.gz", 0, 10)
    return record_row(
        exchange(url, BODY), context, unchanged=False, record_id=record.urn, record_type="response", place=place
    )


def crawled(tracker):
    job = tracker(START)
    job.finish(job.take(START), {START: [(PAGE, A)]})
    job.finish(job.take(PAGE), payload=hashlib.sha1(BODY).digest(), record_id=RECORD.bytes)
    return job


def test_the_page_of_a_lost_capture_waits_again_with_all_its_tries(tracker):
    job = crawled(tracker)
    assert job.sums()[0] == 2
    assert list(job.frontier.fetch_again([capture(PAGE)]).values()) == [1]
    assert job.sums()[0] == 1
    claim = job.take(PAGE)
    assert not claim.last_try
    job.finish(claim)
    assert job.sums()[0] == 2


def test_told_twice_it_is_fetched_once(tracker):
    job = crawled(tracker)
    job.frontier.fetch_again([capture(PAGE)])
    assert job.frontier.fetch_again([capture(PAGE)]) == {}
    assert job.sums()[0] == 1


def test_a_page_that_is_claimed_is_left_to_its_worker(tracker):
    job = crawled(tracker)
    job.frontier.fetch_again([capture(PAGE)])
    claim = job.take(PAGE)
    assert job.frontier.fetch_again([capture(PAGE)]) == {}
    assert len(job.finish(claim).accepted) == 1


def test_an_earlier_try_robots_and_unknown_urls_send_no_page_again(tracker):
    job = crawled(tracker)
    lost = [capture(PAGE, attempt=2), capture(START, found_as="robots"), capture(site("never-seen"))]
    assert job.frontier.fetch_again(lost) == {}
    assert job.sums()[0] == 2


def test_no_later_revisit_refers_to_a_lost_record(tracker):
    job = crawled(tracker)
    digest = hashlib.sha1(BODY).digest()
    job.frontier.fetch_again([capture(PAGE, record=UUID(int=8))])
    assert job.frontier.payloads.known([digest])[digest].record_id == RECORD.bytes, "another record of it was lost"
    job.frontier.fetch_again([capture(PAGE)])
    assert job.frontier.payloads.known([digest]) == {}


def test_a_lost_document_sends_all_its_routes_again(tracker):
    route, other = f"{PAGE}#/x_%41", f"{site('pages')}#/x"
    job = tracker(START)
    job.finish(job.take(START), {START: [(PAGE, A), (route, ROUTE), (other, ROUTE)]})
    for url in (PAGE, route, other):
        job.finish(job.take(url))
    lost = structs.replace(capture(PAGE), engine="browser")
    assert list(job.frontier.fetch_again([lost]).values()) == [2]
    assert {job.take(PAGE).url, job.take(route).url} == {PAGE, route}
