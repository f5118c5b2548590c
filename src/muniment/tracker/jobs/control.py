"""The terms of a job: what operators change beside its settings and rules. Every change is in the audit."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET
from sqlalchemy import select

from muniment.errors import UsageError
from muniment.model.change import ChangeMade
from muniment.model.job import JobOutcome, JobState, JobTerms
from muniment.model.pipeline import tags_text
from muniment.tracker.db.database import Database, retrying_transaction
from muniment.tracker.jobs.audit import note
from muniment.tracker.jobs.store import clear_finished
from muniment.tracker.schema.tables import jobs

__all__ = [
    "abort", "apply_abort", "apply_resume", "apply_terms", "change_terms", "resume_aborted", "terms_texts",
]  # fmt: skip


@retrying_transaction
def change_terms(db: Database, job_id: int, who: str, terms: JobTerms, now: int) -> tuple[ChangeMade, ...]:
    """Change what is given, in one transaction; what changed. Raises UsageError for what makes no sense."""
    with db.transaction():
        changes = apply_terms(db, job_id, terms)
        note(db, job_id, who, changes, now)
    return changes


def apply_terms(db: Database, job_id: int, terms: JobTerms) -> tuple[ChangeMade, ...]:
    """The same within the caller's transaction, without a note in the audit."""
    wanted = _columns(terms)
    names = list(wanted)
    found = select(jobs.c.id, *(jobs.c[name] for name in names)).where(jobs.c.id == job_id).with_for_update()
    row = db.connection.execute(found).first()
    if row is None:
        raise UsageError(f"there is no job {job_id}")
    before = dict(zip(names, row[1:], strict=True))
    changes = tuple(
        ChangeMade(name, _text(before[name]), _text(wanted[name])) for name in names if before[name] != wanted[name]
    )
    if changes:
        db.connection.execute(jobs.update().where(jobs.c.id == job_id).values(wanted))
    return changes


def terms_texts(terms: JobTerms) -> dict[str, str]:
    """What is given, as the audit has it."""
    return {name: _text(value) for name, value in _columns(terms).items()}


def _columns(terms: JobTerms) -> dict[str, Any]:
    wanted: dict[str, Any] = {
        name: value for name in terms.__struct_fields__ if (value := getattr(terms, name)) is not UNSET
    }
    for name in ("concurrency", "drip"):
        if (wanted.get(name) or 0) < 0:
            raise UsageError(f"{name} must be at least 0")
    if "tags" in wanted:
        wanted["tags"] = tags_text(wanted["tags"])
    return wanted


def _text(value: object) -> str:
    return "none" if value is None else str(value).replace("\n", " ")


@retrying_transaction
def abort(db: Database, job_id: int, who: str, now: int) -> None:
    """End a job: nothing more of it is handed out, and what is out may still be finished."""
    with db.transaction():
        note(db, job_id, who, apply_abort(db, job_id, now), now)


def apply_abort(db: Database, job_id: int, now: int) -> tuple[ChangeMade, ...]:
    """The same within the caller's transaction, without a note in the audit."""
    before = _state(db, job_id)
    if before == JobState.ABORTED:
        return ()
    if before == JobState.FINISHED:
        raise UsageError(f"job {job_id} is finished: there is nothing to abort")
    values = {"state": JobState.ABORTED.value, "outcome": JobOutcome.ABORTED.value, "finished_at": now}
    db.connection.execute(jobs.update().where(jobs.c.id == job_id).values(values))
    clear_finished(db, job_id)
    return (ChangeMade("state", before, JobState.ABORTED.value),)


@retrying_transaction
def resume_aborted(db: Database, job_id: int, who: str, now: int) -> None:
    """Take an aborted job up again ("un-abort"); its state is settled by what its pages are."""
    with db.transaction():
        note(db, job_id, who, apply_resume(db, job_id), now)


def apply_resume(db: Database, job_id: int) -> tuple[ChangeMade, ...]:
    """The same within the caller's transaction, without a note in the audit."""
    if _state(db, job_id) != JobState.ABORTED:
        raise UsageError(f"job {job_id} is not aborted")
    values = {"state": JobState.ACTIVE.value, "outcome": "", "finished_at": None}
    db.connection.execute(jobs.update().where(jobs.c.id == job_id).values(values))
    return (ChangeMade("state", JobState.ABORTED.value, JobState.ACTIVE.value),)


def _state(db: Database, job_id: int) -> str:
    state = db.connection.execute(select(jobs.c.state).where(jobs.c.id == job_id).with_for_update()).scalar()
    if state is None:
        raise UsageError(f"there is no job {job_id}")
    return str(state)
