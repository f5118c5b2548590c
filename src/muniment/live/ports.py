"""What the live plane asks of the tracker, and how it is run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from muniment.model.network.live import (
    ConnectedPipeline,
    LiveJob,
    LogEntry,
    LogPosition,
    LogState,
    Outside,
    QueuedJob,
    ShownJob,
)
from muniment.settings.live_plane import LOG_KEEP, REAP_AFTER_S, ROLES

__all__ = ["EntryReader", "FleetPort", "JobPort", "PlaneOptions", "ReadLog"]


class PlaneOptions(Struct, frozen=True, kw_only=True):
    """How the live plane is run."""

    roles: frozenset[str] = frozenset(ROLES)
    keep: int = LOG_KEEP
    """Entries of a running job's log that stay."""
    announce: str = "queue"
    reap_after: float = REAP_AFTER_S
    """Seconds without a heartbeat; 0: for ever."""


class JobPort(Protocol):
    """The job in the tracker, asked from the thread of the live plane; LookupError when nobody answers."""

    def job(self) -> LiveJob:
        """The job as it is now."""

    def age(self) -> int:
        """The age of its settings, asked often."""

    def keep_ident(self, ident: str, url: str) -> None:
        """Keep its name in Redis."""

    def keep_epoch(self, epoch: str) -> None:
        """Keep which server has all of it."""

    def keep_counted(self, outcome: str) -> None:
        """Keep which outcome the counts in Redis have; empty for none."""

    def steer(self, outside: Outside) -> list[str]:
        """Change the job; a line for each thing that is refused."""


class FleetPort(Protocol):
    """The tracker of a server, asked in the same way."""

    def holds(self) -> bool:
        """Whether this server has the live plane of its tracker."""

    def leave(self) -> None:
        """Let another server have it."""

    def swept(self) -> int:
        """How often the server has swept; it grows while pages are handed out and taken in."""

    def begin(self) -> None:
        """Have all jobs shown that run."""

    def jobs(self) -> list[ShownJob]:
        """The jobs that are shown; one that is as before is the same object."""

    def recent(self, epoch: str, within_s: int) -> list[ShownJob]:
        """The jobs that ended within this time, but for aborted ones, whose records a server in this state lacks."""

    def ended(self, epoch: str, within_s: int) -> list[tuple[str, int]]:
        """Ident and number of those of them whose records a server in this state was given."""

    def job(self, job_id: int) -> JobPort:
        """One of them."""

    def several(self, job_ids: Sequence[int]) -> dict[int, LiveJob]:
        """Some of them as they are now."""

    def tails(self, ends: Mapping[int, tuple[int, int]]) -> dict[int, list[bytes]]:
        """By job: the entries of its log after a number, up to another."""

    def keep_epochs(self, job_ids: Sequence[int], epoch: str) -> None:
        """Keep which server has all of some jobs."""

    def target(self, job_id: int) -> str:
        """What it archives."""

    def known(self, job_id: int) -> int:
        """The pages that are, or were, in its scope."""

    def entries(self, job_id: int, after: int, end: int) -> list[bytes]:
        """The entries of its log after a number, up to another."""

    def say(self, job_id: int, lines: Sequence[LogEntry]) -> None:
        """Add lines to its log."""

    def say_changes(self, job_id: int) -> None:
        """Add a line for each change of it that has none."""

    def say_end(self, job_id: int, lines: Sequence[LogEntry]) -> None:
        """Add its last lines, once."""

    def set_shown(self, job_id: int, *, ended: bool) -> None:
        """Keep that Redis shows its end, or that it goes on."""

    def set_gone(self, job_id: int) -> None:
        """Keep that others took its record away."""

    def keep_pipeline(self, job_id: int, instance: str) -> None:
        """Keep which pipeline works at it."""

    def machines(self) -> list[ConnectedPipeline]:
        """The pipelines that are connected."""

    def admit(self, queued: QueuedJob, epoch: str) -> str | None:
        """Make a job of what was taken from a queue: empty when it is made, None when it was before, or why not."""

    @property
    def tracker(self) -> str:
        """The random name of the tracker."""


class EntryReader(Protocol):
    """Reads entries of a log in order."""

    def read(self, end: LogPosition, most: int) -> list[bytes]:
        """The next entries up to a place, at most so many."""


class ReadLog(Protocol):
    """The log of a job, as the live plane reads it."""

    state: LogState
    """The last commit."""

    def say(self, message: str) -> None:
        """Add a line for operators."""

    def tail(self, state: LogState, most: int) -> tuple[int, list[bytes]]:
        """The score before the last entries of a commit, at most so many, and these."""

    def reader_after(self, state: LogState) -> EntryReader:
        """Reads what comes after a commit."""
