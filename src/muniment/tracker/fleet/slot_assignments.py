"""Assignments: which job each slot of a pipeline sticks to, and the locks that hold it there."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, reduce
from operator import add
from typing import Any

from msgspec import structs
from sqlalchemy import Integer, Text, bindparam, cast, func, literal_column, or_, select

from muniment.errors import UsageError
from muniment.model.change import ChangeMade
from muniment.model.job import JobState
from muniment.model.pipeline import Pipeline, Session, SlotLock, tags_of
from muniment.rules.assignment import JobOffer, Slot, assign
from muniment.tracker.db.database import Asked, Database, Prepared, Row, retrying_transaction
from muniment.tracker.fleet.sessions import numbers
from muniment.tracker.jobs.audit import made_since, note
from muniment.tracker.schema.pipelines import assignments, pipelines, sessions
from muniment.tracker.schema.tables import CLAIMED, jobs, pages

__all__ = ["asked", "lock_slot", "settle_slots"]

_AT_WORK = Prepared(
    select(
        pipelines.c.id, pipelines.c.tags, pipelines.c.matchonly, sessions.c.browser,
        assignments.c.slot, assignments.c.job_id, assignments.c.lock,
    )
    .select_from(sessions)
    .join(pipelines, pipelines.c.id == sessions.c.pipeline_id)
    .outerjoin(assignments, assignments.c.pipeline_id == pipelines.c.id)
    .where(sessions.c.epoch == bindparam("epoch")),
    "epoch",
)  # fmt: skip
_END = "\t"
"""No tag contains one."""
_OFFERED = (
    select(jobs.c.id, jobs.c.nice, jobs.c.tags, jobs.c.renders, jobs.c.concurrency)
    .where(jobs.c.state == JobState.ACTIVE.value, or_(jobs.c.concurrency.is_(None), jobs.c.concurrency > 0))
    .where(jobs.c.place_id == "", jobs.c.paused.is_(False))
    .order_by(jobs.c.id)
)
_OPEN = _OFFERED.subquery().c
_MOST = func.coalesce(_OPEN.concurrency, literal_column("-1"))
_FIELDS = [cast(field, Text) for field in (_OPEN.id, _OPEN.nice, cast(_OPEN.renders, Integer), _MOST)]
_LINE = reduce(add, (field + literal_column("' '") for field in _FIELDS)) + _OPEN.tags
_APART: Any = literal_column(f"'{_END}'")
_TOGETHER = func.aggregate_strings(_LINE, _APART)
_OFFERS = Prepared(select(_TOGETHER))
"""All in one text: a thousand jobs as rows cost more than all else of a claim, and an idle fleet has the same again."""
# slots of pipelines that are away, or take no pages, take no room
_BUSY = Prepared(
    select(jobs.c.id)
    .join(assignments, assignments.c.job_id == jobs.c.id)
    .where(assignments.c.pipeline_id == bindparam("pipeline"))
    .where(jobs.c.state == literal_column("'DRAINING'"), jobs.c.paused.is_(False))
    .where(
        select(pages.c.id)
        .where(pages.c.job_id == jobs.c.id, CLAIMED)
        .where(pages.c.claim_id.between(bindparam("first"), bindparam("last")))
        .exists()
    ),
    "pipeline", "first", "last",
)  # fmt: skip
"""Jobs whose last pages are out, and some of them are a session's: its slots stay until these are done."""
_TAKEN = Prepared(
    select(assignments.c.job_id, func.count())
    .join(sessions, sessions.c.pipeline_id == assignments.c.pipeline_id)
    .where(sessions.c.ended_at.is_(None), sessions.c.paused == literal_column("''"))
    .where(assignments.c.pipeline_id != bindparam("pipeline"))
    .group_by(assignments.c.job_id),
    "pipeline",
)


def asked(epoch: int) -> list[Asked]:
    """The input of `settle_slots`: the slots of a session's pipeline, and the jobs that have pages."""
    return [(_AT_WORK, (epoch,)), (_OFFERS, ())]


def settle_slots(db: Database, answers: Sequence[list[Row]], session: Session, now: int) -> list[int | None]:
    """Bring the slots of a pipeline in line with the jobs, within the caller's transaction.

    Returns the job that each slot may take pages of; a slot that is locked to a job without any has none.
    """
    pipeline, before = _at_work(answers[0], session.slots)
    offers = _offers(db, pipeline.name, _read(answers[1][0][0] or ""))
    before = _with_last_pages(db, session, before, {offer.job_id for offer in offers})
    after = assign(pipeline, before, offers)
    if after != [slot.job_id for slot in before]:
        # two pipelines that take slots at once do so one after the other: together they might be too many
        rows = db.connection.execute(_OFFERED.with_for_update()).all()
        offers = _offers(db, pipeline.name, [_offer(*row) for row in rows])
        after = assign(pipeline, before, offers)
    for number, (slot, job_id) in enumerate(zip(before, after, strict=True)):
        if slot.job_id == job_id:
            continue
        here = (assignments.c.pipeline_id == pipeline.name) & (assignments.c.slot == number)
        db.connection.execute(assignments.delete().where(here))
        if job_id is not None:
            row = {"pipeline_id": pipeline.name, "slot": number, "job_id": job_id, "since": now}
            db.connection.execute(assignments.insert().values(row))
    offered = {offer.job_id for offer in offers}
    return [job_id if job_id in offered else None for job_id in after]


def _at_work(rows: Sequence[Row], slots: int) -> tuple[Pipeline, list[Slot]]:
    name, tags, matchonly, browser, *_ = rows[0]
    held = {number: Slot(job_id, SlotLock(lock)) for *_, number, job_id, lock in rows if number is not None}
    pipeline = Pipeline(name, tags_of(tags), bool(matchonly), browser=bool(browser))
    return pipeline, [held.get(number, Slot()) for number in range(slots)]


def _with_last_pages(db: Database, session: Session, slots: list[Slot], offered: set[int]) -> list[Slot]:
    """The slots, with a note at those whose job has no more pages to hand out than those that are out."""
    if all(slot.job_id is None or slot.job_id in offered for slot in slots):
        return slots
    busy = {job_id for (job_id,) in db.rows(_BUSY, (session.pipeline, *numbers(session.epoch)))}
    return [structs.replace(slot, busy=True) if slot.job_id in busy else slot for slot in slots]


@lru_cache(maxsize=4)
def _read(text: str) -> Sequence[JobOffer]:
    """The jobs of `_OFFERS`, each with the room that all pipelines have together."""
    return [_line(line) for line in text.split(_END) if line]


def _line(text: str) -> JobOffer:
    job_id, nice, renders, most, tags = text.split(" ", 4)
    return _offer(int(job_id), int(nice), tags, int(renders), None if most == "-1" else int(most))


def _offer(job_id: int, nice: int, tags: str, renders: int, most: int | None) -> JobOffer:
    return JobOffer(job_id, nice, tags_of(tags), most, bool(renders))


def _offers(db: Database, pipeline: str, offers: Sequence[JobOffer]) -> Sequence[JobOffer]:
    """The jobs with the room that others leave to a pipeline."""
    if all(offer.room is None for offer in offers):
        return offers
    others: dict[int, int] = dict(db.rows(_TAKEN, (pipeline,)))
    return [
        offer if offer.room is None else structs.replace(offer, room=offer.room - others.get(offer.job_id, 0))
        for offer in offers
    ]


@retrying_transaction
def lock_slot(
    db: Database,
    pipeline: str,
    slot: int,
    lock: SlotLock,
    now: int,
    job_id: int | None = None,
    *,
    who: str = "",
    age: int | None = None,
) -> tuple[ChangeMade, ...]:
    """Lock a slot to its job, or to another one; `SlotLock.NONE` unlocks it. Raises UsageError when it has no job.

    A pipeline that is away may be locked: it finds its job when it comes. `age` is that of the job that the asker
    knew: a repeat changes nothing.
    """
    if slot < 0:
        raise UsageError("slots are numbered from 0")
    here = (assignments.c.pipeline_id == pipeline) & (assignments.c.slot == slot)
    with db.transaction() as connection:
        held = connection.execute(select(assignments.c.job_id, assignments.c.lock).where(here)).first()
        before, locked = held or (None, SlotLock.NONE.value)
        wanted = job_id if job_id is not None else before
        if wanted is None:
            raise UsageError(f"slot {slot} of the pipeline {pipeline} has no job; name the one to lock it to")
        _check_lockable(db, wanted, lock)
        change = ChangeMade(f"lock of {pipeline}/{slot}", locked if before == wanted else "", lock.value)
        name = change.what, change.after
        if age is not None and (made := made_since(db, wanted, age, who, lambda one: (one.what, one.after) == name)):
            return made
        if (before, locked) == (wanted, lock.value):
            return ()
        connection.execute(assignments.delete().where(here))
        row = {"pipeline_id": pipeline, "slot": slot, "job_id": wanted, "lock": lock.value, "since": now}
        connection.execute(assignments.insert().values(row))
        note(db, wanted, who, (change,), now)
    return (change,)


def _check_lockable(db: Database, job_id: int, lock: SlotLock) -> None:
    # locked before the slot, as by who settles slots
    state = db.connection.execute(select(jobs.c.state).where(jobs.c.id == job_id).with_for_update()).scalar()
    if state is None:
        raise UsageError(f"there is no job {job_id}")
    if lock is SlotLock.UNTIL_FINISHED and state in {JobState.FINISHED, JobState.ABORTED}:
        raise UsageError(f"job {job_id} is {state} already")
