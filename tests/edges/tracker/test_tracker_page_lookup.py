"""Every page that leads to one is told, and as many as there are."""

from __future__ import annotations

from tracker_harness import IMG, A, site

from muniment.control.why import why
from muniment.tracker.queue import page_lookup as module
from muniment.tracker.queue.page_lookup import Lead, Parents, parents_of

START, WANTED = site(""), site("wanted")
PAGES = [site(f"p{number}") for number in range(600)]


def parents(job, url):
    return parents_of(job.db, job.job_id, job.page(url)["id"])


def test_all_pages_that_lead_to_a_url(tracker):
    web = {START: [(url, A) for url in PAGES[:2]] + [(site("i.png"), IMG)]}
    web |= {PAGES[0]: [(WANTED, A), (START, A)], PAGES[1]: [(WANTED, IMG), (WANTED, A), (site("other"), A)]}
    job = tracker(START)
    job.crawl(web)
    assert parents(job, WANTED) == Parents(2, (Lead(PAGES[0], "a"), Lead(PAGES[1], "img")))
    assert parents(job, START) == Parents(1, (Lead(PAGES[0], "a"),))
    assert parents(job, PAGES[1]) == Parents(1, (Lead(START, "a"),))
    assert why(job.place.directory, job.place, WANTED).parents.count == 2
    assert why(job.place.directory, job.place, WANTED, parents=False).parents == Parents()


def test_of_many_all_are_told(tracker, monkeypatch):
    monkeypatch.setattr(module, "_AT_ONCE", 250)
    # numbers beyond one byte, so that one stands within another by chance
    web = {START: [(url, A) for url in PAGES], **{url: [(WANTED, A), (START, A)] for url in PAGES}}
    job = tracker(START)
    job.crawl(web)
    told = parents(job, WANTED)
    assert told.count == len(PAGES)
    assert told.first == tuple(Lead(url, "a") for url in PAGES)
    monkeypatch.setattr(module, "MOST_TOLD", 20)
    assert parents(job, WANTED) == Parents(len(PAGES), told.first[:20]), "of more than fit, the others are counted"
    for url in PAGES[::50]:
        assert parents(job, url) == Parents(1, (Lead(START, "a"),))
