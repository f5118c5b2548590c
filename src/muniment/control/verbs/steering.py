"""What others want of a job over Redis, as changes of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator

from muniment.errors import UsageError
from muniment.model.change import (
    AbortJob,
    AmendPatterns,
    Change,
    ChangeMade,
    FailJob,
    PauseJob,
    ResumeJob,
    SetTerms,
    SetValues,
)
from muniment.model.job import JobTerms
from muniment.model.network.live import Outside
from muniment.rules.patterns import Patterns, expand

__all__ = ["WHO", "take_over"]

WHO = "redis"
"""Who the audit names."""
_EXAMPLE = "https://example.com/"


async def take_over(
    carry_out: Callable[[Change], Awaitable[tuple[ChangeMade, ...]]], outside: Outside, *, paused: bool
) -> list[str]:
    """Change a job as others want it, field by field; returns a line for each thing that a UsageError refused."""
    refused: list[str] = []
    added = [pattern for pattern in outside.added if _valid(pattern, refused)]
    for name, change in _changes(outside, tuple(added), paused=paused):
        try:
            await carry_out(change)
        except UsageError as error:
            refused.append(f"{name}: {error}")
    return refused


def _valid(pattern: str, refused: list[str]) -> bool:
    try:
        Patterns(expand(pattern, [_EXAMPLE]))
    except UsageError as error:
        refused.append(f"ignore pattern: {error}")
        return False
    return True


def _changes(outside: Outside, added: tuple[str, ...], *, paused: bool) -> Iterator[tuple[str, Change]]:
    if outside.delay is not None:
        low, high = outside.delay
        yield "delay", SetValues(WHO, (("delay", f"{low}-{high}"),))
    if outside.per_host == 0:
        yield "concurrency", PauseJob(WHO)
    elif outside.per_host is not None:
        yield "concurrency", SetValues(WHO, (("per-host", str(outside.per_host)),))
        if paused:
            yield "concurrency", ResumeJob(WHO)
    if outside.ignore_reports is not None:
        yield "ignore reports", SetValues(WHO, (("ignore-reports", "on" if outside.ignore_reports else "off"),))
    if outside.explanation is not None:
        yield "note", SetTerms(WHO, JobTerms(explanation=outside.explanation))
    if added or outside.removed:
        yield "ignore patterns", AmendPatterns(WHO, added, outside.removed)
    if outside.failed:
        yield "failed", FailJob(WHO, "said in Redis")
    elif outside.abort:
        yield "abort", AbortJob(WHO)
