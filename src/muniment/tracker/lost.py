"""Lost captures: their pages wait again, and no later revisit refers to their payloads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from uuid import UUID

from sqlalchemy import bindparam, select

from muniment.model.capture import Capture
from muniment.model.link import FoundAs
from muniment.model.page import PageState
from muniment.rules.sessions import page_key
from muniment.tracker.engine import Database, Lookup, Prepared
from muniment.tracker.repair import Repair
from muniment.tracker.tables import pages, payloads

__all__ = ["Lost"]

_DONE = Lookup(
    select(pages.c.id, pages.c.key, pages.c.attempts, pages.c.host_id, pages.c.counted).where(
        pages.c.state == PageState.READY.value, pages.c.attempts_remaining == 0, pages.c.in_scope
    ),
    pages.c.job_id,
    pages.c.key,
)
_FORGET = Prepared(
    payloads.delete().where(
        payloads.c.job_id == bindparam("job"),
        payloads.c.digest == bindparam("d"),
        payloads.c.record_id == bindparam("r"),
    ),
    "job", "d", "r",
)  # fmt: skip
_ROBOTS = FoundAs.ROBOTS.label


class Lost:
    """Takes back what was done with captures of one job, within the caller's transaction."""

    def __init__(self, db: Database, job_id: int, repair: Repair) -> None:
        self._db, self._job_id, self._repair = db, job_id, repair

    def fetch_again(self, captures: Iterable[Capture], tries: int) -> Counter[int]:
        """Make the pages pending whose last try these captures are; pages newly pending per host number.

        Pages that wait or are claimed are fetched in any case.
        """
        lost = [capture for capture in captures if capture.found_as != _ROBOTS]
        last = {page_key(capture.url): capture.attempt for capture in lost}
        pending: Counter[int] = Counter()
        for page_id, key, attempts, host_id, counted in self._db.lookup(_DONE, self._job_id, list(last)):
            if attempts == last[key]:
                self._repair.send_again(page_id, counted, tries)
                pending[host_id] += 1
        stored = [capture for capture in lost if capture.record_type == "response" and capture.digest]
        rows = [(self._job_id, bytes.fromhex(c.digest), UUID(c.record_id).bytes) for c in stored]
        self._db.many(_FORGET, rows)
        return pending
