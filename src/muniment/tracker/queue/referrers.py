"""Referrers of what redirects lead to: browsers keep the one of the request that was redirected first."""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import select

from muniment.http.referrer import comes_from_nowhere
from muniment.model.link import FoundAs
from muniment.tracker.db.database import Database, Lookup
from muniment.tracker.schema.tables import pages

__all__ = ["first_referrers"]

_before = pages.alias("before")
# a sub-select: without statistics, PostgreSQL's planner would read a whole job for a join
_URL_BEFORE = (
    select(_before.c.url).where(_before.c.job_id == pages.c.job_id, _before.c.id == pages.c.via_id).scalar_subquery()
)
_LED = Lookup(select(pages.c.id, pages.c.found_as, pages.c.via_id, _URL_BEFORE), pages.c.job_id, pages.c.id)


def first_referrers(db: Database, job_id: int, redirecting: Collection[int], most: int) -> dict[int, str]:
    """Of pages that redirect, the URL that led to the first of their chain, which has at most so many; or empty."""
    at = {page_id: page_id for page_id in redirecting}
    found: dict[int, str] = {}
    for _ in range(most):
        if not at:
            break
        led = {row[0]: row[1:] for row in db.lookup(_LED, job_id, sorted(set(at.values())))}
        farther: dict[int, int] = {}
        for page_id, reached in at.items():
            found_as, via_id, url = led[reached]
            if found_as == FoundAs.REDIRECT and via_id:
                farther[page_id] = via_id
            else:
                found[page_id] = "" if comes_from_nowhere(found_as) else url or ""
        at = farther
    return found
