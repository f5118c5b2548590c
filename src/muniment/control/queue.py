"""The queue of a job for people: what is in flight, what comes next, and what the job waits for."""

from __future__ import annotations

from muniment.model.network.dashboard import QueuedPage, QueueView
from muniment.model.network.jobs import JobView
from muniment.rules.hosts.job_waits import JobWaits, waits_in_words
from muniment.rules.patterns import Patterns
from muniment.tracker.db.database import Database
from muniment.tracker.views.waiting import claimed_pages, next_pages, pages_with_hooks, pending_pages, waits_of_hosts

__all__ = ["job_waits", "queue_view"]

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


def job_waits(db: Database, view: JobView, now: int, run: str = "") -> str:
    """What a job waits for now, in words; `run`: why its whole run pauses. Empty when it does not wait."""
    hosts, every, delay_ms = waits_of_hosts(db, view.id, now)
    gap = str(view.settings.get("delay") or "0").rpartition("-")[2]
    return waits_in_words(
        JobWaits(
            queued=view.pages.pending,
            in_flight=view.pages.claimed,
            hosts=hosts,
            every=every,
            gap_ms=max(delay_ms, int(gap) if gap.isdecimal() else 0),
            hooks=pages_with_hooks(db, view.id),
            run=run,
        )
    )
