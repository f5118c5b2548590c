"""The queue of a job for people: what is in flight, and what comes next."""

from __future__ import annotations

from muniment.model.network.dashboard import QueuedPage, QueueView
from muniment.rules.patterns import Patterns
from muniment.tracker.db.database import Database
from muniment.tracker.views.waiting import claimed_pages, next_pages, pending_pages

__all__ = ["queue_view"]

_MOST_ROWS = 500
_HOSTS, _EACH = 50, 10


def queue_view(db: Database, job_id: int, pattern: str) -> QueueView:
    """Pages in flight, then those that come next, of each host some; with a pattern, those of all that match.

    Raises UsageError for an invalid pattern.
    """
    flying = claimed_pages(db, job_id, _MOST_ROWS)
    if not pattern:
        return QueueView(flying + next_pages(db, job_id, _HOSTS, _EACH), None)
    searched = Patterns([pattern])
    shown: list[QueuedPage] = []
    found = 0
    for page in pending_pages(db, job_id):
        if searched.match(page.url) is not None:
            found += 1
            if found <= _MOST_ROWS:
                shown.append(page)
    return QueueView([one for one in flying if searched.match(one.url) is not None] + shown, found)
