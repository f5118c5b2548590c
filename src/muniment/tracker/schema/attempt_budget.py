"""The budget of attempts: what gives a page new ones, and how many it had in its life."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, literal_column, or_

from muniment.tracker.schema.tables import attempts, pages

__all__ = ["IS_LATEST", "TRIED", "UNASKED", "new_tries"]

TRIED: ColumnElement[int] = pages.c.earlier_attempts + pages.c.attempts
"""Attempts of a page in its life, which is the number of its last one; `pages.attempts` counts since new tries."""
IS_LATEST = (attempts.c.job_id == pages.c.job_id) & (attempts.c.page_id == pages.c.id) & (attempts.c.number == TRIED)
"""Joins a page with its last attempt."""
_UNASKED = ("dead-host: %", "private-address: %", "robots: robots.txt answers%")
"""How the reasons of pages begin whose origin cannot or may not be reached; the last one is of older versions."""
UNASKED: ColumnElement[bool] = (pages.c.state == "SKIPPED") & or_(*map(pages.c.reason.like, _UNASKED))
"""Pages that were skipped with their origin, and that new tries may get."""


def new_tries(left: Any, ready_at: Any = 0) -> dict[str, Any]:
    """The values of an update that gives pages `left` tries: `attempts` counts from there on."""
    return {
        "attempts_remaining": left,
        "ready_at": ready_at,
        "earlier_attempts": literal_column("earlier_attempts + attempts"),
        "attempts": literal_column("0"),
    }
