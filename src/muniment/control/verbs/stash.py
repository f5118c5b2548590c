"""The stash of a job: pages that are put aside, and come back."""

from __future__ import annotations

from muniment.control.verbs.delivery import JobDirectory, deliver
from muniment.model.change import ChangeMade, StashPages, UnstashPages

__all__ = ["stash", "unstash"]


def stash(job: JobDirectory, *, host: str = "", prefix: str = "", age: int | None = None) -> tuple[ChangeMade, ...]:
    """Put the pages aside that wait, of a host or whose URLs begin so, or all. Raises UsageError."""
    return deliver(job, StashPages(job.who, host, prefix, age=age))


def unstash(job: JobDirectory, most: int | None = None, *, age: int | None = None) -> tuple[ChangeMade, ...]:
    """Take the first pages out of the stash, or all. Raises UsageError."""
    return deliver(job, UnstashPages(job.who, most, age=age))
