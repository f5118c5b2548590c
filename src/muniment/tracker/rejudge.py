"""Judging again the pages that wait or were ignored, after the patterns of a job changed.

One batch at a time, so that a running crawl goes on in between. Which version all pages were judged by is kept: a kill
on the way has the next run begin again.
"""

from __future__ import annotations

from collections import Counter

from msgspec import Struct
from sqlalchemy import bindparam, func, or_, select

from muniment.model.page import PageState
from muniment.tracker import jobs
from muniment.tracker.admission import Ruleset
from muniment.tracker.engine import Database, Prepared, Row, one_transaction
from muniment.tracker.tables import pages

__all__ = ["IGNORED", "JUDGED", "Judged", "Judging", "rejudge"]

IGNORED = "ignore: "
"""How the reason of a page begins that a pattern keeps out; others were skipped by robots.txt and stay so."""

_BATCH = 5_000
_WAITING = Prepared(
    select(pages.c.id, pages.c.url, pages.c.state, pages.c.reason, pages.c.host_id, pages.c.in_scope)
    .where(
        pages.c.job_id == bindparam("job"),
        pages.c.id > bindparam("after"),
        pages.c.id <= bindparam("last"),
        pages.c.attempts_remaining > 0,
        or_(pages.c.state == bindparam("one"), pages.c.state == bindparam("other")),
    )
    .order_by(pages.c.id),
    "job", "after", "last", "one", "other",
)  # fmt: skip
JUDGED = Prepared(
    pages.update()
    .where(pages.c.job_id == bindparam("job"), pages.c.id == bindparam("page"))
    .values(state=bindparam("s"), ruleset=bindparam("v"), reason=bindparam("why")),
    "s", "v", "why", "job", "page",
)  # fmt: skip
"""What was decided about a page that waits or was skipped."""


class Judged(Struct, frozen=True):
    """What one batch changed."""

    pending: Counter[int]
    """Pages that wait more (or, negative, fewer) per host number."""
    skipped: list[tuple[str, str]]
    """URL and reason of the pages that are left out from now on."""


class Judging:
    """Goes through the pages of a job once; those that come in meanwhile are judged as they come."""

    def __init__(self, db: Database, job_id: int, ruleset: Ruleset, only: PageState | None = None) -> None:
        """`only`: the state to look at, when all pages were judged by the version before and no other can change."""
        self._db, self._job_id, self._ruleset = db, job_id, ruleset
        self._states = (only or PageState.READY).value, (only or PageState.SKIPPED).value
        self._at = 0
        last = select(func.max(pages.c.id)).where(pages.c.job_id == job_id)
        self._last = int(db.connection.execute(last).scalar() or 0)

    @property
    def done(self) -> bool:
        """Whether every page was judged."""
        return self._at >= self._last

    @one_transaction
    def step(self) -> Judged:
        """Judge one batch, in a transaction of its own."""
        until = self._at + _BATCH
        rows = self._db.rows(_WAITING, (self._job_id, self._at, until, *self._states))
        judged = Judged(Counter(), [])
        with self._db.transaction():
            self._db.many(JUDGED, [update for row in rows if (update := self._judge(row, judged)) is not None])
            if until >= self._last:
                jobs.set_judged(self._db, self._job_id, self._ruleset.version)
        self._at = until
        return judged

    def _judge(self, row: Row, judged: Judged) -> Row | None:
        page_id, url, state, known, host_id, in_scope = row
        if known and not known.startswith(IGNORED):
            return None
        ignored = self._ruleset.ignore.match(url)
        wanted = PageState.READY if ignored is None else PageState.SKIPPED
        reason = "" if ignored is None else IGNORED + ignored
        if wanted == state and reason == known:
            return None
        if wanted != state:
            judged.pending[host_id] += bool(in_scope) * (1 if ignored is None else -1)
            if reason:
                judged.skipped.append((url, reason))
        return (wanted.value, self._ruleset.version, reason, self._job_id, page_id)


def rejudge(db: Database, job_id: int, ruleset: Ruleset) -> None:
    """Skip what is ignored now and make ready what no longer is, all of it."""
    judging = Judging(db, job_id, ruleset)
    while not judging.done:
        judging.step()
