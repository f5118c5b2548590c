"""Trackers of fleets and those of crawls: a tracker is one or the other."""

from __future__ import annotations

from muniment.errors import UsageError
from muniment.tracker.db.database import Database
from muniment.tracker.views.tracker_kind import crawl_directory, has_fleet

__all__ = ["refuse_crawl", "refuse_fleet"]


def refuse_fleet(db: Database) -> None:
    """Raise UsageError for the tracker of a crawl: pipelines would take its pages."""
    if out := crawl_directory(db):
        raise UsageError(f"{db.name} is the tracker of the crawl in {out}: choose another directory for a fleet's")


def refuse_crawl(db: Database) -> None:
    """Raise UsageError for the tracker of a fleet: a crawl would go at hosts beside its pipelines."""
    if has_fleet(db):
        raise UsageError(
            f"{db.name} is the tracker of a fleet: give `muniment job add` there, or choose another tracker"
        )
