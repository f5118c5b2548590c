"""Logs of the jobs of a dispatch."""

from __future__ import annotations

from collections.abc import Callable

from muniment.clock import now_ms
from muniment.tracker.db.database import Database
from muniment.tracker.jobs.job_log import EntryText, LogRows, is_shown
from muniment.tracker.jobs.shown import begin_shown

__all__ = ["JobLogs"]


class JobLogs:
    """Gives the log of a job that Redis shows; a server with `shows` has Redis show each."""

    def __init__(self, text: Callable[[], EntryText], *, shows: bool) -> None:
        self._text, self._shows = text, shows

    def of(self, db: Database, job_id: int, *, first: bool) -> LogRows | None:
        """The log of a job, if it has one; `first`: the job comes to hand."""
        if self._shows and first:
            begin_shown(db, [job_id], now_ms())
        return LogRows(db, job_id, self._text()) if is_shown(db, job_id) else None
