"""Logs of the jobs of a dispatch."""

from __future__ import annotations

from collections.abc import Callable

from muniment.tracker.db.database import Database
from muniment.tracker.jobs.job_log import EntryText, LogRows, is_shown

__all__ = ["JobLogs"]


class JobLogs:
    """Gives the log of a job that Redis shows; with `shows`, each job has one, which begins with its first entry."""

    def __init__(self, text: Callable[[], EntryText], *, shows: bool) -> None:
        self._text, self._shows = text, shows

    def of(self, db: Database, job_id: int) -> LogRows | None:
        """The log of a job, if it has one."""
        return LogRows(db, job_id, self._text()) if self._shows or is_shown(db, job_id) else None
