"""Settings of a job: values of options that may change while it runs."""

from __future__ import annotations

from collections.abc import Sequence

from muniment.control.verbs.delivery import JobDirectory, deliver
from muniment.model.change import ChangeMade, SetValues

__all__ = ["set_values"]


def set_values(
    job: JobDirectory, values: Sequence[tuple[str, str]], *, age: int | None = None
) -> tuple[ChangeMade, ...]:
    """Give settings other values, each by its name and as written on a command line. Raises UsageError."""
    return deliver(job, SetValues(job.who, tuple(values), age=age))
