"""Repair: when a shorter path to a page appears after its children were told, they are told again.

The pages whose children are to be told again are rows of `repairs`, so that a crash loses none of them. Hops only ever
fall, so the work ends.
"""

from __future__ import annotations

from collections import Counter

from sqlalchemy import bindparam, func, select

from muniment.rules.scope import Standing
from muniment.tracker.admission import Admission, Offer
from muniment.tracker.engine import Database, Prepared
from muniment.tracker.tables import pages, relations, repairs

__all__ = ["Repair"]

_BATCH = 100
_NEXT = Prepared(
    select(
        repairs.c.page_id, pages.c.link_hops, pages.c.requisite_hops, pages.c.on_site, pages.c.included,
        pages.c.redirects, relations.c.children,
    )
    .select_from(repairs)
    .join(pages, (pages.c.job_id == repairs.c.job_id) & (pages.c.id == repairs.c.page_id))
    .outerjoin(relations, (relations.c.job_id == repairs.c.job_id) & (relations.c.parent_id == repairs.c.page_id))
    .where(repairs.c.job_id == bindparam("job"))
    .order_by(repairs.c.page_id)
    .limit(bindparam("most")),
    "job", "most",
)  # fmt: skip
_DONE = Prepared(
    repairs.delete().where(repairs.c.job_id == bindparam("job"), repairs.c.page_id == bindparam("page")), "job", "page"
)


class Repair:
    """Works off the repairs of one job in small batches, within the caller's transaction."""

    def __init__(self, db: Database, job_id: int, admission: Admission) -> None:
        self._db, self._job_id, self._admission = db, job_id, admission
        counted = select(func.count()).select_from(repairs).where(repairs.c.job_id == job_id)
        self._leftover = bool(db.connection.execute(counted).scalar_one())

    @property
    def waiting(self) -> bool:
        """Whether pages wait for their children to be told again."""
        return self._leftover or self._admission.dirtied

    def work(self) -> Counter[int]:
        """Repair one batch; returns pages newly pending per host number."""
        if not self.waiting:
            return Counter()
        self._admission.dirtied = False
        rows = self._db.rows(_NEXT, (self._job_id, _BATCH))
        self._leftover = len(rows) == _BATCH
        self._db.many(_DONE, [(self._job_id, row[0]) for row in rows])
        offers: dict[int, Offer] = {}
        for _, link, requisite, site, included, redirects, children in rows:
            if children:
                standing = Standing(link, requisite, bool(site), bool(included), redirects)
                self._admission.offer_again(standing, children, offers)
        return self._admission.apply(offers)
