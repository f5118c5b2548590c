"""A job as a whole: its end, its return, and its terms."""

from __future__ import annotations

from muniment.control.verbs.delivery import JobDirectory, deliver
from muniment.model.change import AbortJob, ChangeMade, ResumeJob, SetTerms
from muniment.model.job import JobTerms

__all__ = ["abort", "change_terms", "resume"]


def abort(job: JobDirectory, *, age: int | None = None) -> tuple[ChangeMade, ...]:
    """End a job; a run that is under way ends as by Ctrl-C. Raises UsageError."""
    return deliver(job, AbortJob(job.who, age=age))


def resume(job: JobDirectory, *, age: int | None = None) -> tuple[ChangeMade, ...]:
    """Let the next run go on with an aborted job. Raises UsageError."""
    return deliver(job, ResumeJob(job.who, age=age))


def change_terms(job: JobDirectory, terms: JobTerms, *, age: int | None = None) -> tuple[ChangeMade, ...]:
    """Change what an operator says of a job beside its settings and rules. Raises UsageError."""
    return deliver(job, SetTerms(job.who, terms, age=age))
