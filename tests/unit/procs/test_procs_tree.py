"""Trees of processes and who is alive, decided from rows alone: clocks, reused numbers, circles, depth and width."""

from __future__ import annotations

from collections import Counter

import pytest
from msgspec import structs

from muniment.model.process import LiveProcess, Process, ProcessPlace
from muniment.procs.liveness import LEASE_MS, judge, same_process
from muniment.procs.tree import ancestors_of, in_tree_order, related

HERE = ProcessPlace("machine", "boot", 1)
HOUR_MS = 3_600_000
NOW = 1_800_000_000_000


def row(name: str = "a", parent: str | None = None, **given: object) -> Process:
    made = Process(
        id=name, parent_id=parent, root_id="a", process_type="binary", status="running", machine_id="machine",
        boot_id="boot", pid_namespace=1, pid=100, start_ticks=7, cmd=("x",), pwd="/", queued_at=NOW, beat_at=NOW,
        started_at=NOW,
    )  # fmt: skip
    return structs.replace(made, **given)


def seen(**given: object) -> LiveProcess:
    return structs.replace(
        LiveProcess(pid=100, parent=1, session=100, state="S", start_ticks=7, cpu_ms=0, rss=0), **given
    )


def verdict(
    row: Process, seen: LiveProcess | None, *, now: int = NOW, booted_at: int = NOW - HOUR_MS, begun: int = NOW
) -> str:
    return judge(row, HERE, seen, seen_started_at=begun, booted_at=booted_at, now=now)


def test_a_process_is_known_by_its_ticks_whatever_the_date_says():
    for step in (-HOUR_MS, HOUR_MS, 400 * 24 * HOUR_MS):
        assert verdict(row(), seen(), now=NOW + step, begun=NOW + step) == "alive"


def test_a_number_that_another_process_has_now_is_a_dead_row():
    assert verdict(row(), seen(start_ticks=8)) == "dead"


@pytest.mark.parametrize("found", [None, seen(state="Z"), seen(state="X")])
def test_who_is_gone_or_waits_to_be_reaped_is_dead(found):
    assert verdict(row(), found) == "dead"


def test_without_ticks_the_date_is_believed_for_a_day_and_to_five_seconds():
    untold = row(start_ticks=None)
    assert verdict(untold, seen(), begun=NOW + 4_900) == "alive"
    assert verdict(untold, seen(), begun=NOW + 5_100) == "dead"
    assert verdict(untold, seen(), now=NOW + 24 * HOUR_MS) == "alive"
    assert verdict(untold, seen(), now=NOW + 24 * HOUR_MS + 1) == "dead"
    assert not same_process(row(start_ticks=None, started_at=None), seen(), seen_started_at=NOW, now=NOW)


@pytest.mark.parametrize("where", [{"machine_id": "other"}, {"pid_namespace": 2}, {"machine_id": "o", "boot_id": "x"}])
def test_rows_of_other_machines_and_namespaces_are_not_judged(where):
    for found in (None, seen(), seen(start_ticks=8)):
        assert verdict(row(beat_at=0, **where), found) == "elsewhere"


def test_an_earlier_start_of_this_machine_is_over_and_a_clone_of_it_is_not():
    before = row(boot_id="before")
    assert verdict(structs.replace(before, beat_at=NOW - 2 * HOUR_MS), seen()) == "dead"
    assert verdict(structs.replace(before, beat_at=NOW), seen()) == "elsewhere"
    assert verdict(structs.replace(before, beat_at=NOW - LEASE_MS + 1), None, booted_at=NOW) == "elsewhere"


def test_ancestors_lead_to_the_root_and_a_circle_ends_them():
    chain = [row("a"), row("b", "a"), row("c", "b")]
    assert [one.id for one in ancestors_of(chain[2], chain)] == ["b", "a"]
    circle = [row("a", "c"), row("b", "a"), row("c", "b")]
    assert [one.id for one in ancestors_of(circle[2], circle)] == ["b", "a"]
    own = row("a", "a")
    assert ancestors_of(own, [own]) == []


def test_every_row_is_shown_once_after_its_parent():
    rows = [row("c", "b", queued_at=3), row("d", "a", queued_at=4), row("b", "a", queued_at=2), row("a", "gone")]
    rows[3] = structs.replace(rows[3], queued_at=1)
    assert [(level, one.id) for level, one in in_tree_order(rows)] == [(0, "a"), (1, "b"), (2, "c"), (1, "d")]


def test_rows_in_a_circle_are_shown_once():
    circle = [row("a", "b", queued_at=1), row("b", "a", queued_at=2), row("c", "c", queued_at=3)]
    assert sorted(one.id for _, one in in_tree_order(circle)) == ["a", "b", "c"]


def test_deep_and_wide_trees():
    deep = [row("0"), *(row(str(n), str(n - 1), queued_at=NOW + n) for n in range(1, 1_000))]
    assert [level for level, _ in in_tree_order(deep)] == list(range(1_000))
    assert len(ancestors_of(deep[-1], deep)) == 999
    child = row("b", "a")
    wide = [row("a"), *(structs.replace(child, id=str(n)) for n in range(100_000))]
    assert Counter(level for level, _ in in_tree_order(wide)) == {0: 1, 1: 100_000}


def test_related_are_descendants_and_the_sessions_that_they_began():
    tree = {pid: seen(pid=pid, parent=parent, session=session) for pid, parent, session in (
        (1, 0, 1), (10, 1, 10), (11, 10, 10), (12, 11, 12), (13, 1, 12), (14, 13, 14), (20, 1, 20),
    )}  # fmt: skip
    assert related(tree, {10}) == {10, 11, 12, 13, 14}, "13 has lost its parent, not its session"
    assert related(tree, {12, 99}) == {12, 13, 14}, "99 has ended"
    del tree[12]
    assert related(tree, {12}) == {13, 14}, "who has ended may have begun a session"
    assert related(tree, set()) == set()
