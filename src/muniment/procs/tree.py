"""Trees of processes, decided from rows and from what the kernel shows, without asking either."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from muniment.model.process import LiveProcess, Process

__all__ = [
    "ancestors_of",
    "in_tree_order",
    "is_part",
    "related",
]


def is_part(row: Process, rows: Iterable[Process]) -> bool:
    """Whether a row is of a part of a process: its parent, among rows, is of the same one."""
    mine = row.pid, row.start_ticks
    return row.pid is not None and any(one.id == row.parent_id and (one.pid, one.start_ticks) == mine for one in rows)


def related(living: Mapping[int, LiveProcess], found: Iterable[int]) -> set[int]:
    """The living among processes that were found, and all that descend from one or are in the session of one."""
    roots = set(found)
    while more := {
        pid
        for pid, seen in living.items()
        if pid not in roots and (seen.parent in roots or (seen.session in roots and seen.session != pid))
    }:
        roots |= more
    return roots & living.keys()


def ancestors_of(process: Process, rows: Iterable[Process]) -> list[Process]:
    """The ancestors of a process, its parent first; a circle in damaged data ends it."""
    by_id = {row.id: row for row in rows}
    found: list[Process] = []
    met = {process.id}
    at = process.parent_id
    while at is not None and at not in met and at in by_id:
        met.add(at)
        found.append(by_id[at])
        at = by_id[at].parent_id
    return found


def in_tree_order(rows: Sequence[Process]) -> Iterator[tuple[int, Process]]:
    """Every row once, children after their parents and the eldest first, with its level among the rows given.

    Rows without a parent among them begin a tree; so does, of a circle, the row that was queued first.
    """
    children: dict[str | None, list[Process]] = defaultdict(list)
    ids = {row.id for row in rows}
    ordered = sorted(rows, key=lambda row: (row.queued_at, row.id))
    for row in ordered:
        children[row.parent_id if row.parent_id in ids and row.parent_id != row.id else None].append(row)
    met: set[str] = set()
    for start in (*children[None], *ordered):
        waiting = [(0, start)]
        while waiting:
            level, row = waiting.pop()
            if row.id in met:
                continue
            met.add(row.id)
            yield level, row
            waiting += [(level + 1, child) for child in reversed(children[row.id])]
