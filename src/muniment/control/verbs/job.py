"""A job as a whole: its pause, its end, its return, and its terms."""

from __future__ import annotations

from muniment.control.verbs.delivery import JobDirectory, deliver
from muniment.model.change import AbortJob, ChangeMade, FailJob, PauseJob, ResumeJob, SetTerms
from muniment.model.job import JobTerms

__all__ = ["abort", "change_terms", "fail", "pause", "resume"]


def abort(job: JobDirectory, *, age: int | None = None) -> tuple[ChangeMade, ...]:
    """End a job; a run that is under way ends as by Ctrl-C. Raises UsageError."""
    return deliver(job, AbortJob(job.who, age=age))


def fail(job: JobDirectory, reason: str, *, age: int | None = None) -> tuple[ChangeMade, ...]:
    """End a job that has failed; a run that is under way ends as by Ctrl-C. Raises UsageError."""
    return deliver(job, FailJob(job.who, reason, age=age))


def pause(job: JobDirectory, *, age: int | None = None) -> tuple[ChangeMade, ...]:
    """Pause a job: a run that is under way asks for nothing more until it is resumed. Raises UsageError."""
    return deliver(job, PauseJob(job.who, age=age))


def resume(job: JobDirectory, *, age: int | None = None) -> tuple[ChangeMade, ...]:
    """Let a paused run go on, or the next run with an aborted job. Raises UsageError."""
    return deliver(job, ResumeJob(job.who, age=age))


def change_terms(job: JobDirectory, terms: JobTerms, *, age: int | None = None) -> tuple[ChangeMade, ...]:
    """Change what an operator says of a job beside its settings and rules. Raises UsageError."""
    return deliver(job, SetTerms(job.who, terms, age=age))
