"""Start URLs: what is wrong with a list that gave none, and with those of which none was captured."""

from __future__ import annotations

from sqlalchemy import bindparam, literal_column, select

from muniment.model.link import FoundAs
from muniment.tracker.db.database import Database, Prepared
from muniment.tracker.jobs.store import load_job, settings_of
from muniment.tracker.schema.tables import attempts, pages

__all__ = ["list_problem", "start_problem"]

_LINES = Prepared(
    select(pages.c.id)
    .where(pages.c.job_id == bindparam("job"), pages.c.found_as == literal_column(str(FoundAs.START_LINE.value)))
    .limit(literal_column("1")),
    "job",
)
_OK = 200


def list_problem(db: Database, job_id: int) -> str:
    """Why the list of a job that has ended gave no start URL; empty when it gave some, or the job has none."""
    if not settings_of(load_job(db, job_id)).start_list or db.rows(_LINES, (job_id,)):
        return ""
    status, error = _last_attempt(db, job_id)
    if status == _OK and not error:
        return "the list of start URLs has none"
    return f"the list of start URLs cannot be read: {error or f'status {status}'}"


def start_problem(db: Database, job_id: int) -> str:
    """Why the last try of a job that captured no start URL failed; empty when nothing is known of it."""
    status, error = _last_attempt(db, job_id)
    return error or (f"status {status}" if status else "")


def _last_attempt(db: Database, job_id: int) -> tuple[int, str]:
    c = attempts.c
    last = select(c.status, c.error).where(c.job_id == job_id).order_by(c.finished_at.desc()).limit(1)
    status, error = db.connection.execute(last).first() or (0, "")
    return int(status), str(error)
