"""Attempts as they are written: a row for each try at a page."""

from __future__ import annotations

from muniment.model.page import PageResult, session_of
from muniment.tracker.db.database import BatchInsert, Row
from muniment.tracker.schema.tables import attempts

__all__ = ["ATTEMPT", "attempt_row"]

_COLUMNS = (
    "job_id", "page_id", "number", "session", "worker", "ruleset", "started_at", "finished_at", "status", "error"
)  # fmt: skip
ATTEMPT = BatchInsert(attempts, *_COLUMNS, conflict="REPLACE")


def attempt_row(job_id: int, page: PageResult, worker: int, ruleset: int) -> Row:
    """The row of the try that a page came of; `ruleset` is the version of the rules that it was claimed under."""
    return (
        job_id, page.page_id, page.attempt, session_of(page.claim_id), worker, ruleset,
        page.started_at // 1000, page.finished_at, page.status, page.error,
    )  # fmt: skip
