"""Assignment: which job each slot of a pipeline works at. Pure.

Slots stick: a slot leaves its job only for a better one, or when it may not have it any more. So while no job changes,
nothing moves. Jobs that are in queues of Redis go to pipelines as ArchiveBot's do.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct

from muniment.model.pipeline import Pipeline, SlotLock, is_name

__all__ = ["NAMED", "JobOffer", "Slot", "assign", "may_run", "queues_for", "tags_for"]

NAMED = "pending:"
_ANY, _SHALLOW, _LARGE = "pending", "pending-ao", "pending-large"
_TAKES_LARGE, _ONLY_SHALLOW = "large", "ao-only"
"""Tags of pipelines."""


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
    """Whether a pipeline, which has its name as a tag, may have a job with these tags; its pages may need a browser."""
    if renders and not pipeline.browser:
        return False
    if tags:
        return bool(tags & pipeline.tags) or pipeline.name in tags
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


def queues_for(pipeline: Pipeline, named: Iterable[str]) -> list[str]:
    """The queues that a pipeline takes jobs from, the first one first."""
    large = [_LARGE] if _TAKES_LARGE in pipeline.tags else []
    if _ONLY_SHALLOW in pipeline.tags:
        return [_SHALLOW, *large]
    called = [queue for queue in named if _calls(queue.removeprefix(NAMED), pipeline)]
    return [*called, *large, *([] if pipeline.matchonly else [_ANY, _SHALLOW])]


def _calls(word: str, pipeline: Pipeline) -> bool:
    return bool(word) and (word in pipeline.name or word in pipeline.tags)


def tags_for(queue: str, pipelines: Sequence[Pipeline]) -> frozenset[str]:
    """What a job of a queue asks of the pipelines that run it; a pipeline has its name as a tag.

    Nothing when all may run it that run jobs without tags.
    """
    if queue == _LARGE:
        return frozenset({_TAKES_LARGE})
    may = frozenset(one.name for one in pipelines if queue in queues_for(one, [queue]))
    if queue.startswith(NAMED):
        word = queue.removeprefix(NAMED)
        return may | ({word} if is_name(word) else frozenset())
    open_to_all = {one.name for one in pipelines if not one.matchonly}
    return frozenset() if may == open_to_all else may
