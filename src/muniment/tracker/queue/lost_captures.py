"""Lost captures: their pages wait again, and no later revisit refers to their payloads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from uuid import UUID

from sqlalchemy import func, or_, select

from muniment.model.capture import Capture
from muniment.model.link import FoundAs
from muniment.model.page import Counted, PageOutcome, PageState
from muniment.rules.session_ids import page_key
from muniment.tracker.db.database import Database, Lookup, retrying_transaction
from muniment.tracker.jobs.store import apply_reopen, reopen
from muniment.tracker.queue.counters import take_out
from muniment.tracker.queue.depth_updates import DepthUpdates
from muniment.tracker.queue.page_keys import PageKeys
from muniment.tracker.queue.payloads import Payloads
from muniment.tracker.schema.attempt_budget import TRIED, new_tries
from muniment.tracker.schema.pipelines import sessions
from muniment.tracker.schema.tables import attempts, fresh_payloads, pages, payloads

__all__ = ["LostCaptures", "wait_again"]

_DONE = Lookup(
    select(pages.c.id, pages.c.key, TRIED, pages.c.host_id, pages.c.counted, pages.c.tally).where(
        pages.c.state == PageState.READY.value, pages.c.attempts_remaining == 0, pages.c.in_scope
    ),
    pages.c.job_id,
    pages.c.id,
)
_MADE_BY = Lookup(
    select(attempts.c.page_id, attempts.c.number, sessions.c.pipeline_id).join(
        sessions, sessions.c.epoch == attempts.c.session
    ),
    attempts.c.job_id,
    attempts.c.page_id,
)
_ROBOTS = FoundAs.ROBOTS.label
_AT_ONCE = 500


class LostCaptures:
    """Takes back what was done with captures of one job, within the caller's transaction."""

    def __init__(self, db: Database, job_id: int, depths: DepthUpdates, keys: PageKeys, payloads: Payloads) -> None:
        self._db, self._job_id, self._depths, self._keys, self._payloads = db, job_id, depths, keys, payloads

    def fetch_again(self, captures: Iterable[Capture], tries: int) -> Counter[int]:
        """Make the pages pending whose last try these captures are; pages newly pending per host number.

        Pages that wait or are claimed are fetched in any case.
        """
        lost = [capture for capture in captures if capture.found_as != _ROBOTS]
        last = {page_key(capture.url): capture.attempt for capture in lost}
        shown = {capture.url for capture in lost if capture.engine == "browser" and capture.record_type != "resource"}
        last |= self._routes(shown, {capture.url: capture.attempt for capture in lost})
        pending: Counter[int] = Counter()
        ids = [page_id for _, page_id, _ in self._keys.find(list(last))]
        for page_id, key, tried, host_id, *counted in self._db.lookup(_DONE, self._job_id, ids):
            if tried == last[key]:
                self._depths.make_pending(page_id, Counted(*counted), tries)
                pending[host_id] += 1
        stored = [capture for capture in lost if capture.record_type == "response" and capture.digest]
        self._payloads.forget([(bytes.fromhex(c.digest), UUID(c.record_id).bytes) for c in stored])
        return pending

    def _routes(self, urls: Iterable[str], attempts: Mapping[str, int]) -> dict[bytes, int]:
        """By key, the pages that are routes of these documents: their captures have the URL of the document."""
        keys: dict[bytes, int] = {}
        for url in urls:
            here = pages.c.job_id == self._job_id, pages.c.url.startswith(f"{url}#", autoescape=True)
            found = self._db.connection.execute(select(pages.c.key).where(*here)).scalars()
            keys |= dict.fromkeys(map(bytes, found), attempts[url])
        return keys

    def of_pipeline(self, last: Mapping[str, int], pipeline: str, tries: int) -> Counter[int]:
        """Make the pages of these URLs pending whose last try is this one, and was made by a pipeline."""
        keys = {page_key(url): attempt for url, attempt in last.items()}
        ids = [page_id for _, page_id, _ in self._keys.find(list(keys))]
        mine = {(row[0], row[1]) for row in self._db.lookup(_MADE_BY, self._job_id, ids) if row[2] == pipeline}
        pending: Counter[int] = Counter()
        for page_id, key, tried, host_id, *counted in self._db.lookup(_DONE, self._job_id, ids):
            if tried == keys.get(bytes(key)) and (page_id, tried) in mine:
                self._depths.make_pending(page_id, Counted(*counted), tries)
                pending[host_id] += 1
        if pending:
            # a job that has ended goes on
            apply_reopen(self._db, self._job_id)
        return pending


def wait_again(db: Database, job_id: int, ids: Sequence[int], tries: int) -> None:
    """Make done pages pending, of which nothing else is known; their job goes on with its next run.

    A kill in between leaves some of them waiting, and the job open.
    """
    reopen(db, job_id)
    for at in range(0, len(ids), _AT_ONCE):
        _wait_again(db, job_id, ids[at : at + _AT_ONCE], tries)


@retrying_transaction
def _wait_again(db: Database, job_id: int, ids: Sequence[int], tries: int) -> None:
    here = pages.c.job_id == job_id, pages.c.id.in_(ids)
    with db.transaction() as connection:
        counted = pages.c.counted, pages.c.tally
        sums = connection.execute(select(*counted, func.count()).where(*here).group_by(*counted))
        take_out(db, job_id, Counter({Counted(*row[:2]): row[2] for row in sums}), 0)
        uncounted = {"counted": PageOutcome.NONE, "tally": 0}
        connection.execute(pages.update().where(*here).values(**uncounted, **new_tries(tries)))
        for kept in (payloads, fresh_payloads):
            # of what browsers asked for, nothing says whose record is lost: it is stored again
            gone = or_(kept.c.page_id.in_(ids), kept.c.url.is_not(None))
            connection.execute(kept.delete().where(kept.c.job_id == job_id, gone))
