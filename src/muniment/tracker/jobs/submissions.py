"""Which token a job was made by, and by which of its requests: one that is repeated finds the job that it made."""

from __future__ import annotations

from msgspec import Struct
from sqlalchemy import insert, select, update

from muniment.errors import UsageError
from muniment.tracker.db.database import Database
from muniment.tracker.schema.pipelines import submissions, tokens

__all__ = ["Submission", "SubmittedBeforeError", "check_new", "is_of", "note_submission", "submitted"]

_C = submissions.c
_DAY_MS = 86_400_000


class SubmittedBeforeError(UsageError):
    """A request has made its job before."""

    def __init__(self, job_id: int) -> None:
        super().__init__(f"this request has made job {job_id}")
        self.job_id = job_id


class Submission(Struct, frozen=True):
    """A request that makes a job."""

    token: str
    """The name of the token that it came with."""
    key: str | None = None
    """Chosen by who sent it, the same when it is repeated; None: it is not repeated."""


def check_new(db: Database, submission: Submission, now: int) -> None:
    """Within the transaction that makes a job: raise SubmittedBeforeError when the request made one before."""
    if submission.key is None:
        return
    # two servers that get the same request at once come one after the other
    db.connection.execute(select(tokens.c.name).where(tokens.c.name == submission.token).with_for_update())
    made = submitted(db, submission, now)
    if made is not None:
        raise SubmittedBeforeError(made)
    here = _C.token == submission.token, _C.request == submission.key
    db.connection.execute(update(submissions).where(*here).values(request=None))


def note_submission(db: Database, job_id: int, submission: Submission, now: int) -> None:
    """Note it within the transaction that makes the job, after `check_new`."""
    values = {"job_id": job_id, "token": submission.token, "request": submission.key, "submitted_at": now}
    db.connection.execute(insert(submissions).values(values))


def submitted(db: Database, submission: Submission, now: int) -> int | None:
    """The job that a request made within the last day."""
    if submission.key is None:
        return None
    here = _C.token == submission.token, _C.request == submission.key, _C.submitted_at > now - _DAY_MS
    return db.connection.execute(select(_C.job_id).where(*here)).scalar()


def is_of(db: Database, job_id: int, token: str) -> bool:
    """Whether a job was made by a token of that name."""
    return db.connection.execute(select(_C.token).where(_C.job_id == job_id)).scalar() == token
