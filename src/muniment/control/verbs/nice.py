"""Nice values: which pages of a job go earlier or later than others."""

from __future__ import annotations

from muniment.control.verbs.delivery import JobDirectory, deliver
from muniment.model.change import ChangeMade, SetNice

__all__ = ["set_nice"]


def set_nice(
    job: JobDirectory, nice: int | None, *, host: str = "", prefix: str = "", age: int | None = None
) -> tuple[ChangeMade, ...]:
    """Set the nice value of the pages of a host, or whose URLs begin so, or both; None takes it away.

    Raises UsageError.
    """
    return deliver(job, SetNice(job.who, host, prefix, nice, age=age))
