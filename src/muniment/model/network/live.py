"""Values of the live plane: a job as Redis shows it, where its log ends, and what others ask over Redis."""

from __future__ import annotations

from msgspec import Struct

from muniment.model.queue import Totals
from muniment.settings.table import Settings

__all__ = ["LiveJob", "LogPosition", "LogState", "Outside"]


class LogPosition(Struct, frozen=True):
    """The end of the log of a job; part of the commit whose entries it has."""

    score: int = 0
    """The number of its last entry; they are 1, 2, 3 …"""
    length: int = 0
    """Bytes of `log.jsonl`."""
    unknown: int = 0
    """Answers whose status is outside of 100 to 599."""
    robots: int = 0
    """Times that a robots.txt was asked for."""


class LogState(Struct, frozen=True):
    """A commit as the live plane shows it."""

    position: LogPosition = LogPosition()
    totals: Totals = Totals()


class LiveJob(Struct, frozen=True, kw_only=True):
    """A job in the tracker as Redis shows it."""

    job_id: int
    state: str
    outcome: str
    settings: Settings
    patterns: frozenset[str]
    """Ignore patterns in force, sets included."""
    paused: bool
    age: int
    """`jobs.settings_age`."""
    explanation: str
    started_by: str
    started_in: str
    created_at: int
    """Unix ms."""
    finished_at: int | None
    ident: str = ""
    """Empty: it has none yet."""
    url: str = ""
    """That makes the ident."""
    epoch: str = ""
    """The state of the server that last had the whole layout."""
    started_at: int = 0
    """Unix ms; 0: it has not been shown yet."""


class Outside(Struct, frozen=True, kw_only=True):
    """What others changed in Redis, as far as it makes sense; None stands for what they left alone."""

    delay: tuple[int, int] | None = None
    per_host: int | None = None
    """0 pauses the job; another number resumes it."""
    ignore_reports: bool | None = None
    explanation: str | None = None
    added: tuple[str, ...] = ()
    """Ignore patterns."""
    removed: tuple[str, ...] = ()
    abort: bool = False
    failed: bool = False
