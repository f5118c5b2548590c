"""The terms of a job: what operators change beside its settings and rules. Every change is in the audit."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET
from sqlalchemy import select

from muniment.errors import NotFoundError, UsageError
from muniment.model.change import ChangeMade
from muniment.model.job import JobOutcome, JobState, JobTerms
from muniment.model.pipeline import tags_text
from muniment.tracker.db.database import Database, retrying_transaction
from muniment.tracker.jobs.audit import note
from muniment.tracker.jobs.store import clear_finished
from muniment.tracker.schema.tables import jobs

__all__ = [
    "FAILED", "PAUSED", "abort", "apply_abort", "apply_fail", "apply_pause", "apply_resume", "apply_terms",
    "begin_terms", "change_terms", "resume_aborted", "terms_texts",
]  # fmt: skip

FAILED, PAUSED = "failed", "paused"
"""What the audit calls these changes."""
_NO, _YES = "no", "yes"
_NAMES = {"concurrency": "max_slots"}
"""What operators call a column, where that is something else."""


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
        raise NotFoundError(f"there is no job {job_id}")
    before = dict(zip(names, row[1:], strict=True))
    changes = tuple(
        ChangeMade(_NAMES.get(name, name), _text(before[name]), _text(wanted[name]))
        for name in names
        if before[name] != wanted[name]
    )
    if changes:
        db.connection.execute(jobs.update().where(jobs.c.id == job_id).values(wanted))
    return changes


def begin_terms(db: Database, job_id: int, terms: JobTerms, *, paused: bool) -> None:
    """Give a new job its terms, within the transaction that makes it."""
    values = _columns(terms) | ({"paused": True} if paused else {})
    if values:
        db.connection.execute(jobs.update().where(jobs.c.id == job_id).values(values))


def terms_texts(terms: JobTerms) -> dict[str, str]:
    """What is given, as the audit has it."""
    return {_NAMES.get(name, name): _text(value) for name, value in _columns(terms).items()}


def _columns(terms: JobTerms) -> dict[str, Any]:
    wanted: dict[str, Any] = {
        name: value for name in terms.__struct_fields__ if (value := getattr(terms, name)) is not UNSET
    }
    for name in ("concurrency", "drip"):
        if (wanted.get(name) or 0) < 0:
            raise UsageError(f"{_NAMES.get(name, name)} must be at least 0")
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
    before, _ = _standing(db, job_id)
    if before == JobState.ABORTED:
        return ()
    return _end(db, job_id, before, JobOutcome.ABORTED, now)


def apply_fail(db: Database, job_id: int, reason: str, now: int) -> tuple[ChangeMade, ...]:
    """End a job that has failed, within the caller's transaction, without a note in the audit."""
    before, outcome = _standing(db, job_id)
    ended = () if before == JobState.ABORTED else _end(db, job_id, before, JobOutcome.FAILED, now)
    known = db.connection.execute(select(jobs.c.reason).where(jobs.c.id == job_id)).scalar_one()
    if not ended and (outcome, known) == (JobOutcome.FAILED, reason):
        return ()
    values = {"outcome": JobOutcome.FAILED.value, "reason": reason}
    db.connection.execute(jobs.update().where(jobs.c.id == job_id).values(values))
    return (*ended, ChangeMade(FAILED, outcome, reason))


def _end(db: Database, job_id: int, before: str, outcome: JobOutcome, now: int) -> tuple[ChangeMade, ...]:
    if before == JobState.FINISHED:
        raise UsageError(f"job {job_id} is finished: there is nothing to abort")
    values = {"state": JobState.ABORTED.value, "outcome": outcome.value, "finished_at": now}
    db.connection.execute(jobs.update().where(jobs.c.id == job_id).values(values))
    clear_finished(db, job_id)
    return (ChangeMade("state", before, JobState.ABORTED.value),)


def apply_pause(db: Database, job_id: int) -> tuple[ChangeMade, ...]:
    """Pause a job, within the caller's transaction, without a note in the audit; once more changes nothing."""
    state, _ = _standing(db, job_id)
    if state in {JobState.FINISHED, JobState.ABORTED}:
        raise UsageError(f"job {job_id} is {state.lower()}: there is nothing to pause")
    if _paused(db, job_id):
        return ()
    db.connection.execute(jobs.update().where(jobs.c.id == job_id).values(paused=True, reason=""))
    return (ChangeMade(PAUSED, _NO, _YES),)


@retrying_transaction
def resume_aborted(db: Database, job_id: int, who: str, now: int) -> None:
    """Take an aborted job up again ("un-abort"); its state is settled by what its pages are."""
    with db.transaction():
        note(db, job_id, who, apply_resume(db, job_id), now)


def apply_resume(db: Database, job_id: int) -> tuple[ChangeMade, ...]:
    """Have a paused or aborted job go on, within the caller's transaction; one that is neither stays as it is."""
    changes: list[ChangeMade] = []
    if _standing(db, job_id)[0] == JobState.ABORTED:
        values = {"state": JobState.ACTIVE.value, "outcome": "", "finished_at": None, "reason": ""}
        db.connection.execute(jobs.update().where(jobs.c.id == job_id).values(values))
        changes.append(ChangeMade("state", JobState.ABORTED.value, JobState.ACTIVE.value))
    if _paused(db, job_id):
        db.connection.execute(jobs.update().where(jobs.c.id == job_id).values(paused=False, reason=""))
        changes.append(ChangeMade(PAUSED, _YES, _NO))
    return tuple(changes)


def _paused(db: Database, job_id: int) -> bool:
    return bool(db.connection.execute(select(jobs.c.paused).where(jobs.c.id == job_id)).scalar_one())


def _standing(db: Database, job_id: int) -> tuple[str, str]:
    """State and outcome; the row is locked."""
    found = select(jobs.c.state, jobs.c.outcome).where(jobs.c.id == job_id).with_for_update()
    row = db.connection.execute(found).first()
    if row is None:
        raise NotFoundError(f"there is no job {job_id}")
    return str(row[0]), str(row[1])
