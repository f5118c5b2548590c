"""Backlog: pages of a host wait for requisites that lie beside it, as long as these are done at a pace like theirs."""

from __future__ import annotations

import pytest
from tests.support.pages import claim

from muniment.crawl.orchestrator.requisite_backlog import RequisiteBacklog
from muniment.crawl.orchestrator.schedule import Schedule

PAGES, IMAGES = 1, 2
"""Numbers of two hosts."""
HELD = 30
"""Pages of a host that are out at once: six permits, five for each."""


def schedule(*, gap_ms: int = 0, pages: int = 500, images: int = 500) -> Schedule:
    made = Schedule(6, gap_ms=gap_ms)
    made.add_worker(0)
    made.add_pending(PAGES, "pages.example", pages)
    if images:
        made.add_pending(IMAGES, "images.example", images)
        made.backlog.add([(PAGES, IMAGES, images)], 0)
    return made


def pick(made: Schedule, now: int, most: int = 1000) -> dict[int, int]:
    picked = dict(made.pick(0, most, now))
    for host_id, pages in picked.items():
        made.claimed(0, host_id, pages, pages, now)
    return picked


def end(made: Schedule, host_id: int, pages: int, now: int) -> None:
    for _ in range(pages):
        made.landed(0, host_id)
        if host_id == IMAGES:
            made.backlog.done(host_id, now)


def test_pages_wait_for_images_of_another_host() -> None:
    assert pick(schedule(), 0) == {IMAGES: HELD}


def test_pages_go_on_as_images_get_few() -> None:
    made = schedule(images=40)
    assert pick(made, 0) == {IMAGES: HELD}
    end(made, IMAGES, 20, 100)
    assert pick(made, 100) == {IMAGES: 10, PAGES: HELD - 20}
    end(made, IMAGES, 20, 200)
    assert pick(made, 200) == {PAGES: 20}


def test_pages_that_show_nothing_beside_them_do_not_wait() -> None:
    made = schedule()
    made.add_pending(3, "others.example", 500)
    assert pick(made, 0) == {IMAGES: HELD, 3: HELD}


def test_a_host_that_ends_none_is_waited_for_two_seconds() -> None:
    made = schedule()
    pick(made, 0)
    assert pick(made, 2_000) == {}
    assert pick(made, 2_501) == {PAGES: HELD}


@pytest.mark.parametrize(("each_ms", "waits"), [(150, True), (400, False)])
def test_a_slow_host_is_not_waited_for(each_ms: int, waits: bool) -> None:
    made = schedule()
    pick(made, 0)
    for turn in range(1, 20):
        end(made, IMAGES, 1, turn * each_ms)
        pick(made, turn * each_ms)
    assert (made.told_of(PAGES) == ()) == waits


def test_a_pace_that_is_asked_for_counts() -> None:
    made = schedule(gap_ms=1_000)
    pick(made, 0)
    for turn in range(1, 20):
        end(made, IMAGES, 1, turn * 1_000)
        assert PAGES not in pick(made, turn * 1_000)


def test_a_host_that_waits_itself_is_not_waited_for() -> None:
    made = schedule()
    made.hold(IMAGES, 60_000)
    assert pick(made, 0) == {PAGES: HELD}


def test_two_hosts_with_images_of_each_other_both_go_on() -> None:
    made = schedule()
    made.backlog.add([(IMAGES, PAGES, 100)], 0)
    assert pick(made, 0) == {PAGES: HELD, IMAGES: HELD}


def test_an_idle_host_has_no_entry() -> None:
    backlog = RequisiteBacklog()
    backlog.add([(PAGES, IMAGES, 2), (PAGES, PAGES, 1)], 0)
    assert list(backlog.beside(PAGES)) == [IMAGES]
    for host_id in (IMAGES, IMAGES, PAGES, IMAGES):
        backlog.done(host_id, 1)
    assert not list(backlog.beside(PAGES))
    assert not backlog._hosts and not backlog._beside


@pytest.mark.parametrize(
    ("depth", "last_try", "done", "left"),
    [(-1, False, False, 2), (-1, False, True, 1), (-1, True, False, 1), (2, False, True, 2), (2, True, False, 2)],
)
def test_a_requisite_that_is_tried_again_is_still_left(depth: int, last_try: bool, done: bool, left: int) -> None:
    """Or pages would get ahead of a host by one for each of its answers that asks for another try."""
    backlog = RequisiteBacklog()
    backlog.add([(PAGES, IMAGES, 2)], 0)
    backlog.tried(claim(last_try=last_try, depth=depth), IMAGES, 1, done=done)
    assert backlog.left(IMAGES) == left
