"""A shorter path that appears late: hops of everything below are put right, in batches that survive a restart."""

from __future__ import annotations

import pytest
from tracker_harness import IMG, REDIRECT, A, site

from muniment.rules.scope import FAR

START, NEAR = site(""), site("near")


def chain(length, *, first=START):
    """Pages p0 … p(length-1), each leading to the next."""
    urls = [site(f"p{n}") for n in range(length)]
    return urls, {a: [(b, A)] for a, b in zip([first, *urls], urls, strict=False)}


def test_a_shorter_path_lowers_the_hops_of_everything_below(tracker):
    urls, web = chain(6)
    web[START] = [(urls[0], A), (NEAR, A)]
    job = tracker(START)
    job.finish(job.take(START), web)
    for url in urls:
        job.finish(job.take(url), web)
    web[NEAR] = [(urls[4], A)]
    job.finish(job.take(NEAR), web)
    while job.frontier.updating_depths:
        job.frontier.update_depths()
    assert [job.hops(url)[0] for url in urls] == [1, 2, 3, 4, 2, 3]
    assert job.repairs() == 0


def test_a_shorter_path_brings_a_page_into_scope(tracker):
    urls, web = chain(3)
    web[START].append((NEAR, A))
    job = tracker(START, level=2)
    job.finish(job.take(START), web)
    for url in urls[:2]:
        job.finish(job.take(url), web)
    assert job.page(urls[2])["in_scope"] is False
    web[NEAR] = [(urls[2], A)]
    report = job.finish(job.take(NEAR), web)
    assert list(report.pending.values()) == [1]
    assert job.take(urls[2]).depth == 2


def test_a_shorter_path_found_by_repair_makes_pages_pending(tracker):
    """near → p1, whose child p2 was beyond the level until now."""
    urls, web = chain(3)
    web[START].append((NEAR, A))
    web[urls[0]] = [(site("between"), A)]
    web[site("between")] = [(urls[1], A)]
    job = tracker(START, level=3)
    job.finish(job.take(START), web)
    for url in (urls[0], site("between"), urls[1]):
        job.finish(job.take(url), web)
    assert job.page(urls[2])["in_scope"] is False
    web[NEAR] = [(urls[1], A)]
    job.finish(job.take(NEAR), web)
    while job.frontier.updating_depths:
        job.frontier.update_depths()
    assert job.hops(urls[2]) == (3, FAR)
    assert [claim.url for claim in job.claim()] == [urls[2]]


def test_a_requisite_that_becomes_a_page_offers_its_links(tracker):
    frame, inner = site("frame"), site("inner")
    web = {START: [(frame, IMG), (NEAR, A)], frame: [(inner, A)], NEAR: [(frame, A)]}
    job = tracker(START)
    job.finish(job.take(START), web)
    job.finish(job.take(frame), web)
    assert job.page(inner)["in_scope"] is False
    job.finish(job.take(NEAR), web)
    while job.frontier.updating_depths:
        job.frontier.update_depths()
    assert (job.hops(frame), job.hops(inner)) == ((2, 1), (3, FAR))
    assert [claim.url for claim in job.claim()] == [inner]


@pytest.mark.parametrize("restarts", [False, True])
def test_repair_goes_in_batches_and_over_restarts(tracker, restarts):
    """250 children with a child each come nearer at once: more than two batches of a hundred."""
    hub, far = site("hub"), site("far")
    children = [site(f"c{n}") for n in range(250)]
    web = {START: [(far, A), (NEAR, A)], far: [(site("farther"), A)], site("farther"): [(hub, A)]}
    web[NEAR] = [(hub, REDIRECT)]
    web[hub] = [(child, A) for child in children]
    web |= {child: [(child + "/below", A)] for child in children}
    job = tracker(START)
    for url in (START, far, site("farther"), hub):
        job.finish(job.take(url), web)
    job.finish([c for c in job.claim() if c.url in set(children)], web)
    job.reopen()
    assert job.hops(children[0] + "/below") == (5, FAR)
    job.finish(job.take(NEAR), web)
    rounds = 0
    while job.frontier.updating_depths:
        job.frontier.update_depths()
        rounds += 1
        if restarts:
            job.reopen()
    assert rounds >= 3
    assert {job.hops(child) for child in children} == {(2, FAR)}
    assert {job.hops(child + "/below") for child in children} == {(3, FAR)}
    assert not job.repairs()


def test_a_job_with_repairs_left_says_so_after_a_restart(tracker):
    urls, web = chain(4)
    web[START].append((NEAR, A))
    job = tracker(START)
    job.finish(job.take(START), web)
    for url in urls:
        job.finish(job.take(url), web)
    assert not job.frontier.updating_depths
    web[NEAR] = [(urls[2], A)]
    job.finish(job.take(NEAR), web)
    left = job.repairs()
    job.reopen()
    assert job.frontier.updating_depths == bool(left)
    while job.frontier.updating_depths:
        job.frontier.update_depths()
    assert job.hops(urls[3]) == (3, FAR)
