"""What an ignore pattern would take, before it is added."""

from __future__ import annotations

from collections.abc import Sequence

from muniment.errors import UsageError
from muniment.model.network.dashboard import IgnoreEffect
from muniment.rules.job_rules import Rules, compile_ignores
from muniment.tracker.db.database import Database
from muniment.tracker.jobs import store
from muniment.tracker.views.waiting import pending_pages

__all__ = ["ignore_effect"]

_SAMPLE = 20


def ignore_effect(db: Database, job_id: int, pattern: str, recent: Sequence[str]) -> IgnoreEffect:
    """What a pattern matches of the pages that wait and of recent captures; nothing changes."""
    try:
        compiled = compile_ignores(Rules(ignore=(pattern,)), store.start_urls(db, job_id))
    except UsageError as error:
        return IgnoreEffect(valid=False, error=str(error))
    count, sample = 0, []
    for page in pending_pages(db, job_id):
        if compiled.match(page.url) is not None:
            count += 1
            if count <= _SAMPLE:
                sample.append(page.url)
    taken = sum(compiled.match(url) is not None for url in recent)
    return IgnoreEffect(valid=True, pending=count, sample=tuple(sample), recent=taken)
