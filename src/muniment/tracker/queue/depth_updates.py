"""Depths: when a shorter path to a page appears after its children were recorded, their hops are lowered, too.

A page that is to be followed, of whose capture only requisites were recorded (it was offsite, or a mere requisite
then), is fetched again. The pages to look at are rows of `repairs`, so that a crash loses none of them. Hops only ever
fall, and the links of a page are recorded once, so the work ends.
"""

from __future__ import annotations

from collections import Counter

from sqlalchemy import bindparam, literal_column, select

from muniment.model.page import Counted, PageState
from muniment.rules.scope import Scope, Standing
from muniment.tracker.db.database import Database, Prepared
from muniment.tracker.queue.admission import Admission
from muniment.tracker.queue.new_pages import Offer
from muniment.tracker.schema.attempt_budget import new_tries
from muniment.tracker.schema.tables import pages, relations, repairs

__all__ = ["DepthUpdates"]

_BATCH = 100
_NEXT = Prepared(
    select(
        repairs.c.page_id, pages.c.link_hops, pages.c.requisite_hops, pages.c.on_site, pages.c.included,
        pages.c.redirects, relations.c.children, pages.c.host_id, pages.c.state, pages.c.attempts_remaining,
        pages.c.links_told, pages.c.counted, pages.c.tally,
    )
    .select_from(repairs)
    .join(pages, (pages.c.job_id == repairs.c.job_id) & (pages.c.id == repairs.c.page_id))
    .outerjoin(relations, (relations.c.job_id == repairs.c.job_id) & (relations.c.parent_id == repairs.c.page_id))
    .where(repairs.c.job_id == bindparam("job"))
    .order_by(repairs.c.page_id)
    .limit(bindparam("most"))
    # what another process works at is left to it, or to the next batch
    .with_for_update(of=[repairs, pages], skip_locked=True),
    "job", "most",
)  # fmt: skip
_DONE = Prepared(
    repairs.delete().where(repairs.c.job_id == bindparam("job"), repairs.c.page_id == bindparam("page")), "job", "page"
)


_AGAIN = Prepared(
    pages.update()
    .where(pages.c.job_id == bindparam("job"), pages.c.id == bindparam("page"))
    .values(counted=literal_column("0"), tally=literal_column("0"), **new_tries(bindparam("left"))),
    "left", "job", "page",
)  # fmt: skip


class DepthUpdates:
    """Works off the `repairs` of one job in small batches, within the caller's transaction."""

    def __init__(self, db: Database, job_id: int, scope: Scope, admission: Admission) -> None:
        self._db, self._job_id, self._scope, self._admission = db, job_id, scope, admission
        self._reopened: Counter[Counted] = Counter()
        """Pages made pending again since somebody last looked, by what they were counted as."""
        self._begin()
        db.on_rollback(self._begin)

    def look_again(self) -> None:
        """See whether rows are left that another process wrote."""
        any_left = select(repairs.c.page_id).where(repairs.c.job_id == self._job_id).limit(1)
        self._leftover = self._db.connection.execute(any_left).first() is not None

    def _begin(self) -> None:
        self._reopened = Counter()
        self.look_again()

    @property
    def waiting(self) -> bool:
        """Whether there are pages whose children are still to be offered a shorter path."""
        return self._leftover or self._admission.dirtied

    def work(self) -> Counter[int]:
        """Update one batch; returns pages newly pending per host number."""
        if not self.waiting:
            return Counter()
        self._admission.dirtied = False
        rows = self._db.rows(_NEXT, (self._job_id, _BATCH))
        self._leftover = len(rows) == _BATCH
        self._db.many(_DONE, [(self._job_id, row[0]) for row in rows])
        offers: dict[int, Offer] = {}
        pending: Counter[int] = Counter()
        for page_id, link, requisite, site, included, redirects, children, host_id, *how in rows:
            standing = Standing(link, requisite, bool(site), bool(included), redirects)
            if self._left_behind(standing, *how):
                self.make_pending(page_id, Counted(*how[-2:]), 1)
                pending[host_id] += 1
            elif children:
                self._admission.offer_again(standing, children, offers)
        return pending + self._admission.apply(offers)

    def make_pending(self, page_id: int, counted: Counted, tries: int) -> None:
        """Make a done page pending; `counted` are the counters that it was added to."""
        self._reopened[counted] += 1
        self._db.many(_AGAIN, [(tries, self._job_id, page_id)])

    def take_reopened(self) -> Counter[Counted]:
        """The pages made pending again since the last call, by the counters that they were added to."""
        reopened, self._reopened = self._reopened, Counter()
        return reopened

    def _left_behind(self, standing: Standing, state: str, left: int, told: bool, *_counted: int) -> bool:
        """Whether a done page is to be followed although its links were not recorded."""
        follows = self._scope.follows(standing.on_site) and self._scope.as_page(standing)
        return follows and not told and left == 0 and state == PageState.READY
