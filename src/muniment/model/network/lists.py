"""Lists over a network: each comes in parts, and says from where to go on."""

from __future__ import annotations

import msgspec
from msgspec import Struct

from muniment.model.network.jobs import JobView

__all__ = [
    "MOST_LISTED",
    "AttemptList",
    "AttemptView",
    "ChangeList",
    "ChangeView",
    "JobList",
    "PageList",
    "PageView",
    "ResultList",
    "ResultView",
]

MOST_LISTED = 1000
"""Entries of one answer."""


class JobList(Struct, frozen=True):
    """Jobs, in the order of their numbers."""

    jobs: list[JobView]
    next: int | None
    """The number to go on after; None at the end."""


class ChangeView(Struct, frozen=True):
    """A change of a job."""

    at: int
    """Unix ms."""
    who: str
    what: str
    before: str
    after: str


class ChangeList(Struct, frozen=True):
    """Changes of a job, the oldest first."""

    changes: list[ChangeView]
    next: int | None


class PageView(Struct, frozen=True, kw_only=True):
    """How a page stands."""

    id: int
    url: str
    state: str
    attempts: int
    """Over its life."""
    attempts_remaining: int
    in_scope: bool
    depth: int
    """Fewest link hops; -1 when no link leads to it."""
    reason: str
    """Why it is SKIPPED."""
    status: int
    """Of the latest attempt; 0 for none."""
    error: str
    pipeline: str
    """Which has it, or had it last; empty for none."""


class PageList(Struct, frozen=True):
    """Pages of a job, in the order of their numbers."""

    pages: list[PageView]
    next: int | None


class AttemptView(Struct, frozen=True, kw_only=True):
    """A try at a page. Times are Unix ms."""

    page: int
    url: str
    number: int
    pipeline: str
    """Empty for an attempt without one."""
    epoch: int
    ruleset: int
    """The version of the rules that it was made by."""
    started_at: int
    finished_at: int
    status: int
    error: str


class AttemptList(Struct, frozen=True):
    """Attempts of a job, in the order of their ends."""

    attempts: list[AttemptView]
    next: str | None


class ResultView(Struct, frozen=True, kw_only=True):
    """What an attempt saved beyond its records."""

    attempt: int
    kind: str
    status: str
    value: msgspec.Raw
    """JSON; of a file, its bytes in base64."""


class ResultList(Struct, frozen=True):
    """Results of a page."""

    results: list[ResultView]
    next: int | None
