"""Guards on a real tracker: families are set aside, skipped, sampled, brought back, and so again after a kill."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from zlib import crc32

from msgspec import structs
from tests.support.pages import finish_batch, finished
from tracker_harness import A, Tracker, site

from muniment.model.change import RemoveIgnore
from muniment.model.link import FoundAs
from muniment.model.page import Claim, PageReading
from muniment.tracker.queue.frontier import FinishReport
from muniment.tracker.stores.families import FamilyRow, set_aside

START = site("")
DAYS = [site(f"day?n={number}") for number in range(100)]
WEB = {START: [(url, A) for url in DAYS]}
SHAPE = "a.example/day?n"


def reading(*blocks: str) -> PageReading:
    return PageReading(array("I", [crc32(block.encode()) for block in blocks]).tobytes())


def finish(
    job: Tracker, claims: Sequence[Claim], *blocks: str, web: dict[str, list[tuple[str, FoundAs]]] | None = None
) -> FinishReport:
    web = web or {}
    links = [link for claim in claims for link in web.get(claim.url, ())]
    pages = [structs.replace(finished(one, web.get(one.url, ())), read=reading(*blocks)) for one in claims]
    return job.frontier.finish(finish_batch(pages, links), 0, 5)


def begun(tracker, **settings) -> Tracker:
    job = tracker(START, **{"guards": "loops,barren,duplicates", **settings})
    finish(job, [job.take(START)], "welcome", "nothing", web=WEB)
    return job


def aside(job: Tracker) -> list[FamilyRow]:
    return set_aside(job.db, job.job_id)


def test_a_family_is_set_aside_after_barren_pages_in_a_row(tracker):
    job = begun(tracker, barren=5)
    assert finish(job, job.claim(4), "nothing").changes == []
    report = finish(job, job.claim(1), "nothing")
    assert [(one.what, one.before, one.after) for one in report.changes] == [("trap", "", aside(job)[0].re)]
    left = job.frontier.claim([(host, 40) for host in job.frontier.pending()], 0)
    assert left.claims == []
    assert {reason for _, _, reason in left.left_out} == {f"trap: barren: {SHAPE}"}
    assert job.frontier.admission.to_report([(url, why) for _, url, why in left.left_out]) == [
        (DAYS[5], f"trap: barren: {SHAPE}")
    ]


def test_what_is_found_later_is_skipped_but_for_samples(tracker):
    job = begun(tracker, barren=5)
    finish(job, job.claim(5), "nothing")
    job.claim(200)
    sample = [claim for claim in job.claim(200) if claim.url in DAYS]
    found = {one: [(site(f"day?n={number}"), A) for number in range(1000, 1120)] for one in [c.url for c in sample]}
    finish(job, sample, "nothing", web=found)
    family = aside(job)[0].family
    assert family.sampled >= 1
    assert family.skipped + family.sampled + 5 >= 95


def test_a_page_that_is_new_in_a_block_or_names_a_file_keeps_its_family(tracker):
    job = begun(tracker, barren=5)
    for number, claim in enumerate(job.claim(20)):
        finish(job, [claim], "nothing", *([f"new {number}"] if number % 4 == 3 else []))
    assert aside(job) == []
    for number, claim in enumerate(job.claim(20)):
        finish(job, [claim], "nothing", web={claim.url: [(site(f"{number}.pdf"), A)]})
    assert aside(job) == []


def test_a_page_that_a_barren_one_led_to_first_brings_its_family_back(tracker):
    job = begun(tracker, barren=5)
    claims = job.claim(5)
    finish(job, claims, "nothing", web={claims[0].url: [(site("letter"), A)]})
    assert [one.family.shape for one in aside(job)] == [SHAPE]
    letter = next(claim for claim in job.claim(200) if claim.url == site("letter"))
    report = finish(job, [letter], "dear reader")
    assert [(one.what, one.after) for one in report.changes] == [("trap", "")]
    assert aside(job) == []
    assert sum(state == "SKIPPED" for state in job.states().values()) == 0
    finish(job, job.claim(9), "nothing")
    assert aside(job) == [], "it has twice the patience"


def test_what_was_set_aside_stays_so_and_budgets_go_on(tracker):
    job = begun(tracker, barren=5)
    finish(job, job.claim(4), "nothing")
    job.reopen()
    assert len(finish(job, job.claim(1), "nothing").changes) == 1, "text and pages of the run before count"
    job.reopen()
    assert [one.family.shape for one in aside(job)] == [SHAPE]
    assert job.claim(40) == []


def test_an_operator_brings_a_family_back_for_good(tracker):
    job = begun(tracker, barren=5)
    finish(job, job.claim(5), "nothing")
    job.claim(200)
    changed = job.frontier.amend(RemoveIgnore("ann", aside(job)[0].re), 7)
    assert [(one.what, one.after) for one in changed.changes] == [("ignores", "")]
    assert aside(job) == []
    finish(job, job.claim(60), "nothing")
    assert aside(job) == []


def test_start_urls_and_sitemap_entries_are_asked_for(tracker):
    job = tracker(START, barren=5, guards="loops,barren,duplicates")
    listed = [(url, FoundAs.SITEMAP_URL) for url in DAYS[50:]]
    finish(job, [job.take(START)], "welcome", "nothing", web={START: [*WEB[START][:50], *listed]})
    finish(job, job.claim(5), "nothing")
    assert {claim.url for claim in job.claim(200)} >= set(DAYS[50:])


def test_a_job_without_guards_sets_nothing_aside(tracker):
    job = begun(tracker, barren=5, guards="none")
    assert not any(claim.reads for claim in job.claim(1))
    finish(job, job.claim(40), "nothing")
    assert aside(job) == []


def test_links_of_pages_with_one_text_are_left_out(tracker):
    job = begun(tracker, barren=1000)
    claims = job.claim(30)
    for number, claim in enumerate(claims):
        page = structs.replace(
            finished(claim, [(site(f"more/{number}"), A)]), read=structs.replace(reading("nothing"), digest=b"12345678")
        )
        job.frontier.finish(finish_batch([page], [(site(f"more/{number}"), A)]), 0, 5)
    states = {url: state for url, state in job.states().items() if "more" in url}
    assert set(list(states.values())[:18]) == {"READY"}
    assert set(list(states.values())[20:]) == {"SKIPPED"}
    assert [one.family.guard for one in aside(job)] == ["duplicates"]
