"""The audit of a job: every change with who, when, from and to; the job's age counts them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct
from sqlalchemy import bindparam, select

from muniment.model.change import ChangeMade
from muniment.tracker.db.database import Database, Prepared
from muniment.tracker.schema.changes import job_changes
from muniment.tracker.schema.tables import jobs

__all__ = ["AuditEntry", "changes_of", "made_since", "note", "settings_age"]

_AGE = Prepared(select(jobs.c.settings_age).where(jobs.c.id == bindparam("job")), "job")


class AuditEntry(Struct, frozen=True):
    """One change of a job."""

    age: int
    at: int
    """Unix ms."""
    who: str
    what: str
    before: str
    after: str


def note(db: Database, job_id: int, who: str, changes: Sequence[ChangeMade], now: int) -> int:
    """Note changes within the transaction that makes them; returns the job's new age."""
    age = settings_age(db, job_id)
    rows = [
        {"job_id": job_id, "age": number, "at": now, "who": who, "what": c.what, "before": c.before, "after": c.after}
        for number, c in enumerate(changes, age + 1)
    ]
    if rows:
        db.connection.execute(job_changes.insert(), rows)
        age += len(rows)
        db.connection.execute(jobs.update().where(jobs.c.id == job_id).values(settings_age=age))
    return age


def settings_age(db: Database, job_id: int) -> int:
    """The number of changes of a job: a process that knows fewer has old settings."""
    return int(db.rows(_AGE, (job_id,))[0][0])


def changes_of(db: Database, job_id: int, since: int = 0) -> list[AuditEntry]:
    """The changes after an age, in order."""
    c = job_changes.c
    found = select(c.age, c.at, c.who, c.what, c.before, c.after).where(c.job_id == job_id, c.age > since)
    return [AuditEntry(*row) for row in db.connection.execute(found.order_by(c.age))]


def made_since(
    db: Database, job_id: int, age: int, who: str, wanted: Callable[[AuditEntry], bool]
) -> tuple[ChangeMade, ...]:
    """The changes after an age that somebody made, as far as they are wanted: what a repeat of theirs made before."""
    made = (entry for entry in changes_of(db, job_id, age) if entry.who == who and wanted(entry))
    return tuple(ChangeMade(entry.what, entry.before, entry.after) for entry in made)
