"""The counts of a job: each URL once, by its last state, apart by site and other hosts, pages and requisites."""

from __future__ import annotations

from typing import Any

from sqlalchemy import select
from tests.support.pages import finish_batch, finished
from tracker_harness import IMG, REDIRECT, A, Tracker, site

from muniment.model.link import FoundAs
from muniment.model.network.counts import TALLIES, PageCounts, SiteCounts, done_counts
from muniment.tracker.queue.counters import totals_of
from muniment.tracker.queue.rounds import try_failed_again
from muniment.tracker.schema.tables import pages
from muniment.tracker.views.counts import UrlCounts, job_summary, url_counts

START, ONE, TWO, THREE = site(""), site("1"), site("2"), site("3")
OTHER, IMAGE, REMOTE = site("", "b.example"), site("i.png"), site("i.png", "cdn.example")
NONE = PageCounts()


def counted(job: Tracker) -> UrlCounts:
    """The counts, which are those that the pages themselves say."""
    found = url_counts(job.db, job.job_id)
    rows = job.db.connection.execute(select(pages.c.tally).where(job.mine(pages), pages.c.tally > 0)).scalars()
    tallies = [0] * len(TALLIES)
    for tally in rows:
        tallies[tally - 1] += 1
    assert totals_of(job.db, job.job_id).tallies == tuple(tallies) == job.frontier.totals.tallies
    return found


def end(job: Tracker, url: str, links: Any = (), **how: Any) -> None:
    job.finish(job.take(url), {url: links}, **how)


def test_pages_count_by_their_last_state(tracker):
    job = tracker(START, level=None)
    web = [(ONE, A), (TWO, A), (THREE, A), (site("4"), A), (OTHER, A), (IMAGE, IMG), (REMOTE, IMG)]
    end(job, START, web)
    end(job, ONE, status=404)
    end(job, TWO, status=500)
    end(job, THREE, status=0, error="reset: gone")
    end(job, OTHER, status=410)
    end(job, IMAGE)
    end(job, REMOTE, status=429)
    found = counted(job)
    assert found.site == SiteCounts(("a.example",), PageCounts(1, 1, 2, 0, 1), PageCounts(1))
    assert (found.other.hosts, found.other.pages, found.other.requisites) == (2, PageCounts(0, 1), PageCounts(0, 0, 1))
    told = job_summary(job.db, job.job_id)
    assert (told.outcome, told.failed) == ("running", {"500": 1, "reset": 1, "429": 1})
    assert told.answers == {"200": 2, "404": 1, "410": 1, "429": 1, "500": 1}
    assert (told.rows, told.requests, told.errors, told.retryable) == (7, 7, {"reset": 1}, 3)
    assert [one.host for one in told.silent_hosts] == []


def test_a_tried_page_waits_and_is_counted_when_its_tries_are_used_up(tracker):
    job = tracker(START, tries=2, rounds=0)
    end(job, START, status=503, done=False)
    assert counted(job).site.pages == PageCounts(queued=1)
    end(job, START, status=503)
    assert counted(job).site.pages == PageCounts(failed=1)


def test_what_a_later_round_takes_up_waits_again(tracker):
    job = tracker(START, ONE, tries=1, rounds=1)
    end(job, ONE)
    job.finish(job.take(START), status=0, error="reset: gone", done=False)
    assert counted(job).site.pages == PageCounts(captured=1, failed=1)
    job.frontier.next_round()
    assert counted(job).site.pages == PageCounts(captured=1, queued=1)


def test_a_redirect_is_counted_at_its_target(tracker):
    job = tracker(START)
    end(job, START, [(ONE, A), (TWO, A)])
    end(job, ONE, [(TWO, REDIRECT)], status=302)
    assert counted(job).site.pages == PageCounts(captured=1, queued=1)
    end(job, TWO, [(THREE, REDIRECT)], status=301)
    end(job, THREE, status=404)
    assert counted(job).site.pages == PageCounts(captured=1, missing=1)


def test_two_redirects_of_a_batch_may_lead_to_one_page(tracker):
    job = tracker(START, ONE, TWO)
    links = [(THREE, REDIRECT)]
    claims = {claim.url: claim for claim in job.claim()}
    results = [finished(claims[url], links, status=302) for url in (ONE, TWO)]
    job.frontier.finish(finish_batch([*results, finished(claims[START])], links), 0, 0)
    assert counted(job).site.pages == PageCounts(captured=1, queued=1)


def test_a_chain_that_ends_in_no_page_counts_as_one(tracker):
    job = tracker(START, max_redirects=20)
    end(job, START, [(ONE, A), (THREE, A)])
    end(job, ONE, [(TWO, REDIRECT)], status=302)
    end(job, TWO, [(ONE, REDIRECT)], status=302)
    end(job, THREE, [(THREE, REDIRECT)], status=302)
    assert counted(job).site.pages == PageCounts(captured=3), "the start, a circle of two, a circle of one"


def test_a_redirect_beyond_the_limit_counts_itself(tracker):
    job = tracker(START, max_redirects=1)
    end(job, START, [(ONE, REDIRECT)], status=302)
    end(job, ONE, [(TWO, REDIRECT)], status=302)
    assert counted(job).site.pages == PageCounts(captured=1)


def test_a_start_url_takes_the_host_that_it_redirects_to_to_the_site(tracker):
    job = tracker(START, site("", "c.example"))
    end(job, START, [(OTHER, A), (site("x.png", "b.example"), IMG)])
    end(job, OTHER, status=404)
    end(job, site("x.png", "b.example"))
    assert counted(job).other.pages == PageCounts(missing=1)
    end(job, site("", "c.example"), [(site("d", "b.example"), REDIRECT)], status=301)
    found = counted(job)
    assert found.site.hosts == ("a.example", "c.example", "b.example")
    # its first page is asked for again, for its links are followed now
    assert (found.site.pages, found.site.requisites) == (PageCounts(captured=1, queued=2), PageCounts(1))
    assert (found.other.hosts, found.other.pages, found.other.requisites) == (0, NONE, NONE)


def test_a_requisite_that_a_link_leads_to_is_a_page(tracker):
    job = tracker(START)
    end(job, START, [(IMAGE, IMG), (ONE, A)])
    end(job, IMAGE)
    assert (counted(job).site.pages.captured, counted(job).site.requisites.captured) == (1, 1)
    end(job, ONE, [(IMAGE, A)])
    job.frontier.update_depths()
    found = counted(job)
    assert found.site.pages.captured + found.site.pages.queued == 3
    assert found.site.requisites == NONE


def test_files_that_list_pages_are_none(tracker):
    job = tracker(START)
    end(job, START, [(site("sitemap.xml"), FoundAs.SITEMAP)])
    end(job, site("sitemap.xml"), [(ONE, FoundAs.SITEMAP_URL)])
    assert counted(job).site == SiteCounts(("a.example",), PageCounts(captured=1, queued=1), NONE)


def test_of_a_list_all_hosts_are_the_site(tracker):
    job = tracker(START, seed="list.txt")
    job.frontier.admission.add_listed([(OTHER, FoundAs.START)])
    end(job, OTHER, status=404)
    found = counted(job)
    assert (found.site.pages.missing, found.other.pages) == (1, NONE)


def test_skipped_pages_have_causes(tracker):
    job = tracker(START, ignore=("/2$",))
    end(job, START, [(ONE, A), (TWO, A)])
    job.finish(job.take(ONE), refused="robots: disallowed")
    found = counted(job)
    assert (found.site.pages, found.site.skipped) == (PageCounts(captured=1, skipped=2), {"ignore": 1, "robots": 1})
    assert found.skipped == {"ignore": 1, "robots": 1}


def test_what_is_asked_for_again_waits(tracker):
    job = tracker(START)
    end(job, START, [(ONE, A)])
    end(job, ONE, status=500)
    assert counted(job).site.pages == PageCounts(captured=1, failed=1)
    try_failed_again(job.db, job.job_id, 3)
    job.reopen()
    assert counted(job).site.pages == PageCounts(captured=1, queued=1)


def test_the_counts_of_sessions_add_up():
    parts = done_counts(range(1, 13))
    assert [part.captured for part in parts] == [1, 4, 7, 10]
    assert done_counts(()) == (NONE, NONE, NONE, NONE)
