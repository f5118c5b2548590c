"""Assignment: which job each slot of a pipeline works at. Pure.

Slots stick: a slot leaves its job only for a better one, or when it may not have it any more. So while no job changes,
nothing moves.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from muniment.model.pipeline import Pipeline, SlotLock

__all__ = ["JobOffer", "Slot", "assign", "may_run"]


class JobOffer(Struct, frozen=True):
    """A job that has pages to hand out."""

    job_id: int
    """In the order in which jobs came in."""
    nice: int
    tags: frozenset[str]
    room: int | None
    """Slots that it may have beside those of other pipelines; None is any number."""
    renders: bool = False
    """Its pages may need a browser."""


class Slot(Struct, frozen=True):
    """A slot of a pipeline; they are numbered from 0."""

    job_id: int | None = None
    lock: SlotLock = SlotLock.NONE
    busy: bool = False
    """Its job hands out no more pages, and its pipeline has the last ones: it stays until they are done."""


def may_run(pipeline: Pipeline, tags: frozenset[str], *, renders: bool = False) -> bool:
    """Whether a pipeline may have a job with these tags, whose pages may need a browser."""
    if renders and not pipeline.browser:
        return False
    if tags:
        return bool(tags & pipeline.tags)
    return not pipeline.matchonly


def assign(pipeline: Pipeline, slots: Sequence[Slot], offers: Sequence[JobOffer]) -> list[int | None]:
    """The job of each slot: the lowest nice value first, then first in first out; None where there is none."""
    locked = {slot.job_id for slot in slots if slot.lock is not SlotLock.NONE}
    stays = [slot.busy or slot.lock is not SlotLock.NONE for slot in slots]
    chosen = [slot.job_id if stay else None for slot, stay in zip(slots, stays, strict=True)]
    free = [number for number, stay in enumerate(stays) if not stay]
    for offer in sorted(offers, key=lambda offer: (offer.nice, offer.job_id)):
        if not may_run(pipeline, offer.tags, renders=offer.renders) or (locked and offer.job_id not in locked):
            continue
        # those that have it come first, so that none of them changes places with another
        free.sort(key=lambda number, job=offer.job_id: (slots[number].job_id != job, number))  # type: ignore[misc]
        room = len(free) if offer.room is None else max(0, offer.room - chosen.count(offer.job_id))
        for number in free[:room]:
            chosen[number] = offer.job_id
        free = free[room:]
    return chosen
