"""Ignore patterns of a job, one by one and in sets."""

from __future__ import annotations

from muniment.control.verbs.delivery import JobDirectory, deliver
from muniment.model.change import AddIgnore, AddSet, ChangeMade, RemoveIgnore, RemoveSet

__all__ = ["add_ignore", "add_ignore_set", "remove_ignore", "remove_ignore_set"]


def add_ignore(job: JobDirectory, pattern: str, *, age: int | None = None) -> tuple[ChangeMade, ...]:
    """Ignore URLs that a pattern matches; pages that wait are skipped. Raises UsageError."""
    return deliver(job, AddIgnore(job.who, pattern, age=age))


def remove_ignore(job: JobDirectory, pattern: str, *, age: int | None = None) -> tuple[ChangeMade, ...]:
    """Ignore a pattern no longer; pages that it kept out wait again. Raises UsageError."""
    return deliver(job, RemoveIgnore(job.who, pattern, age=age))


def add_ignore_set(job: JobDirectory, name: str, *, age: int | None = None) -> tuple[ChangeMade, ...]:
    """Add all patterns of a built-in set. Raises UsageError."""
    return deliver(job, AddSet(job.who, name, age=age))


def remove_ignore_set(job: JobDirectory, name: str, *, age: int | None = None) -> tuple[ChangeMade, ...]:
    """Remove all patterns of a set. Raises UsageError."""
    return deliver(job, RemoveSet(job.who, name, age=age))
