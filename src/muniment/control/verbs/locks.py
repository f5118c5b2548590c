"""Locks that hold a slot of a pipeline to a job of a tracker."""

from __future__ import annotations

from muniment.clock import now_ms
from muniment.model.change import ChangeMade
from muniment.model.pipeline import SlotLock
from muniment.model.place import TrackerPlace
from muniment.tracker.connect import tracker_at
from muniment.tracker.fleet.slot_assignments import lock_slot

__all__ = ["lock", "unlock"]


def lock(
    place: TrackerPlace,
    who: str,
    pipeline: str,
    slot: int,
    kind: SlotLock,
    job_id: int | None = None,
    *,
    age: int | None = None,
) -> tuple[ChangeMade, ...]:
    """Lock a slot to its job, or to another one. Raises UsageError."""
    with tracker_at(place) as db:
        return lock_slot(db, pipeline, slot, kind, now_ms(), job_id, who=who, age=age)


def unlock(
    place: TrackerPlace, who: str, pipeline: str, slot: int, *, age: int | None = None
) -> tuple[ChangeMade, ...]:
    """Let a slot take another job when its own has no more pages. Raises UsageError."""
    return lock(place, who, pipeline, slot, SlotLock.NONE, age=age)
