"""Values of the live plane: a job as Redis shows it, where its log ends, and what others ask over Redis."""

from __future__ import annotations

from msgspec import Struct

from muniment.model.job import JobState
from muniment.model.pipeline import HostReport, Pipeline
from muniment.model.queue import Totals
from muniment.settings.option_table import Settings

__all__ = ["ConnectedPipeline", "LiveJob", "LogEntry", "LogPosition", "LogState", "Outside", "QueuedJob", "ShownJob"]


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


class LogEntry(Struct, frozen=True, array_like=True):
    """An entry of a log that has no number yet: a line, an exchange, or a URL that a pattern left out."""

    at: int
    """Unix ms."""
    text: str
    """The line, or the URL."""
    status: int | None = None
    """None: it is not an exchange."""
    error: str = ""
    pattern: str = ""


class ShownJob(Struct, frozen=True):
    """A job of a server, as the live plane looks at it a few times a second."""

    job_id: int
    ident: str
    state: str
    outcome: str
    age: int
    """`jobs.settings_age`."""
    said: int
    """Changes that its log has."""
    ending: str
    """How far its end is shown."""
    paused: bool
    tags: frozenset[str]
    """It runs on pipelines with one of these; empty: on all that are not matchonly."""
    log: LogState

    @property
    def over(self) -> bool:
        """Whether it has ended."""
        return bool(self.outcome) and self.state in {JobState.FINISHED, JobState.ABORTED}


class ConnectedPipeline(Struct, frozen=True, kw_only=True):
    """A pipeline that is connected, as the live plane shows it."""

    instance: str
    """Hexadecimal."""
    pipeline: Pipeline
    version: str
    free: int
    """Slots without a job; 0 while it takes no pages."""
    stopping: bool
    jobs: tuple[int, ...]
    """Those that its slots are at, that with most slots first."""
    report: HostReport
    reported_at: int
    """Unix ms."""


class QueuedJob(Struct, frozen=True, kw_only=True):
    """A job as a queue of Redis describes it."""

    ident: str
    url: str
    queued: str
    """When it came into the queue, as written there."""
    listed: bool = False
    """The URL is that of a list."""
    shallow: bool = False
    offsite_links: bool = True
    user_agent: str = ""
    delay: tuple[int, int] | None = None
    per_host: int | None = None
    ignore_reports: bool = False
    ignores: tuple[str, ...] = ()
    note: str = ""
    started_by: str = ""
    started_in: str = ""
    queue: str = ""
    """It came from there."""


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
    queued: str = ""
    """When it came into a queue of Redis, as written there; empty: it came from elsewhere."""
    pipeline: str = ""
    """Instance of the pipeline that works at it, or did last."""
    reason: str = ""
    """Why it is paused or has failed."""
    counted: str = ""
    """The outcome that the counts in Redis have of it; empty: none."""


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
