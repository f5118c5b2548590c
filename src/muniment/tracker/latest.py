"""The latest try of a page, among all that were made: tries given back are counted anew, attempts never are."""

from __future__ import annotations

from muniment.tracker.tables import attempts, pages

__all__ = ["IS_LATEST", "TRIED"]

TRIED = pages.c.earlier_attempts + pages.c.attempts
"""How many tries a page had in its life: the number of the latest one."""

IS_LATEST = (attempts.c.job_id == pages.c.job_id) & (attempts.c.page_id == pages.c.id) & (attempts.c.number == TRIED)
