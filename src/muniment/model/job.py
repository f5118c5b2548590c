"""A job as its operators see it: states, outcomes, who started it, and the terms that it runs on."""

from __future__ import annotations

from enum import StrEnum

from msgspec import UNSET, Struct, UnsetType

__all__ = ["JobOrigin", "JobOutcome", "JobState", "JobTerms"]


class JobState(StrEnum):
    """The state of a job."""

    ACTIVE = "ACTIVE"
    """Pages are pending: they may be handed out."""
    DRAINING = "DRAINING"
    """No page is pending, and some are claimed: it gets no slots."""
    FINISHED = "FINISHED"
    """No page is pending or claimed."""
    ABORTED = "ABORTED"
    """An operator ended it; its pages stay as they are, and it may be taken up again."""


class JobOutcome(StrEnum):
    """The end of a job; empty while it has not ended."""

    COMPLETED = "completed"
    """It is FINISHED, and something was captured."""
    ABORTED = "aborted"
    """It is ABORTED."""
    FAILED = "failed"
    """It is FINISHED, and no start page gave an answer."""


class JobOrigin(Struct, frozen=True):
    """The origin of a job."""

    who: str = ""
    where: str = ""
    why: str = ""


class JobTerms(Struct, frozen=True, kw_only=True):
    """The values of a job that an operator may change, besides settings and rules; others stay."""

    nice: int | UnsetType = UNSET
    """Lower goes first."""
    concurrency: int | UnsetType | None = UNSET
    """Maximum slots of pipelines at once; 0 pauses the job, None means no limit."""
    tags: frozenset[str] | UnsetType = UNSET
    """It runs only on pipelines with one of these; empty: on all that are not matchonly."""
    drip: int | UnsetType = UNSET
    """Pages that come out of the stash each time that none is pending."""
    explanation: str | UnsetType = UNSET
    """Why it runs."""
