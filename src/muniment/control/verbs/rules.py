"""Rules of a job, in order."""

from __future__ import annotations

from collections.abc import Sequence

from muniment.control.verbs.delivery import JobDirectory, deliver
from muniment.model.change import ChangeMade, SetRules
from muniment.model.rule import Rule

__all__ = ["replace_rules"]


def replace_rules(job: JobDirectory, rules: Sequence[Rule], *, age: int | None = None) -> tuple[ChangeMade, ...]:
    """Put other rules in place of those in force; the ignore patterns stay. Raises UsageError."""
    return deliver(job, SetRules(job.who, tuple(rules), age=age))
