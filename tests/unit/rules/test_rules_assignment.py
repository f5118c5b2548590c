"""Which job a slot gets: tags, nice values, room, locks, and that slots stick."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment.model.pipeline import Pipeline, SlotLock
from muniment.rules.assignment import JobOffer, Slot, assign, may_run

P = Pipeline("p")


def offer(job: int, nice: int = 0, room: int | None = None, *tags: str) -> JobOffer:
    return JobOffer(job, nice, frozenset(tags), room)


@pytest.mark.parametrize(
    ("own", "matchonly", "wanted", "runs"),
    [
        ("", False, "", True),
        ("", True, "", False),
        ("a", True, "", False),
        ("a", False, "a b", True),
        ("a", True, "a b", True),
        ("c", False, "a b", False),
        ("", False, "a", False),
    ],
)
def test_tags_and_matchonly(own, matchonly, wanted, runs):
    assert may_run(Pipeline("p", frozenset(own.split()), matchonly), frozenset(wanted.split())) is runs


@pytest.mark.parametrize(("browser", "renders", "runs"), [(0, 0, True), (0, 1, False), (1, 0, True), (1, 1, True)])
def test_a_job_that_renders_needs_a_browser(browser, renders, runs):
    pipeline = Pipeline("p", browser=bool(browser))
    assert may_run(pipeline, frozenset(), renders=bool(renders)) is runs
    job = JobOffer(5, 0, frozenset(), None, bool(renders))
    assert assign(pipeline, [Slot()], [job, offer(6)]) == [5 if runs else 6]


def test_a_lower_nice_value_goes_first_and_then_the_earlier_job():
    assert assign(P, [Slot()], [offer(3, 1), offer(2, 1), offer(4, 2)]) == [2]
    assert assign(P, [Slot(2)], [offer(2, 1), offer(9, 0)]) == [9]
    assert assign(P, [Slot(2)], [offer(2, 1), offer(9, 1)]) == [2]
    assert assign(P, [Slot(2)], [offer(2, 1), offer(1, 1)]) == [1]


def test_a_job_takes_no_more_slots_than_it_has_room_for():
    offers = [offer(1, room=2), offer(2, room=0), offer(3)]
    assert assign(P, [Slot()] * 4, offers) == [1, 1, 3, 3]
    assert assign(P, [Slot(3), Slot(1), Slot(3), Slot(1)], offers) == [3, 1, 3, 1]
    assert assign(P, [Slot()] * 2, [offer(1, room=1)]) == [1, None]
    assert assign(P, [Slot(1)], [offer(1, room=-1)]) == [None]


def test_a_lock_holds_a_slot_and_keeps_other_jobs_out():
    held = Slot(7, SlotLock.INDEFINITELY)
    assert assign(P, [held, Slot(), Slot(3)], [offer(1), offer(3)]) == [7, None, None]
    assert assign(P, [held, Slot(), Slot(3)], [offer(1), offer(7)]) == [7, 7, 7]
    assert assign(P, [held, Slot()], [offer(7, room=1)]) == [7, None]


JOBS = st.lists(
    st.tuples(st.integers(-2, 2), st.none() | st.integers(-1, 3), st.sampled_from(["", "a", "b"])), max_size=5
)
SLOTS = st.lists(st.tuples(st.none() | st.integers(1, 6), st.sampled_from(SlotLock)), max_size=5)


@given(JOBS, SLOTS, st.booleans())
def test_nothing_moves_while_no_job_changes_and_better_jobs_are_full(jobs, slots, matchonly):
    pipeline = Pipeline("p", frozenset({"a"}), matchonly)
    offers = [offer(n, nice, room, *tags) for n, (nice, room, tags) in enumerate(jobs, 1)]
    before = [Slot(job, lock if job else SlotLock.NONE) for job, lock in slots]
    after = assign(pipeline, before, offers)
    again = [Slot(job, old.lock) for job, old in zip(after, before, strict=True)]
    assert assign(pipeline, again, offers) == after
    locked = {slot.job_id for slot in before if slot.lock is not SlotLock.NONE}
    for old, job in zip(before, after, strict=True):
        if old.lock is not SlotLock.NONE:
            assert job == old.job_id
            continue
        mine = next((one for one in offers if one.job_id == job), None)
        assert job is None or (mine and may_run(pipeline, mine.tags))
        assert not locked or job is None or job in locked
        for one in offers:
            better = mine is None or (one.nice, one.job_id) < (mine.nice, mine.job_id)
            if better and may_run(pipeline, one.tags) and (not locked or one.job_id in locked):
                assert one.room is not None
                assert after.count(one.job_id) >= one.room
