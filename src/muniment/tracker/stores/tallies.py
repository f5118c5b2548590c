"""Tallies: which count of its job a page belongs to that has ended (`TALLIES`), and moves between them.

A requisite that a link leads to later is a page from then on, and so is a host that a start URL redirects to the site.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from sqlalchemy import bindparam

from muniment.http.redirects import REDIRECTS
from muniment.model.link import FoundAs
from muniment.model.network.counts import as_page_tally, site_tally, tally_of
from muniment.model.page import LINK_ENTRY, PageResult
from muniment.rules.retry import word_of
from muniment.rules.scope import NO_PAGES, Scope, Standing
from muniment.tracker.db.database import Database, Prepared
from muniment.tracker.schema.tables import pages
from muniment.tracker.stores.hosts import Hosts

__all__ = ["Tallies", "redirect_of"]

_RETALLY = Prepared(
    pages.update()
    .where(pages.c.job_id == bindparam("job"), pages.c.id == bindparam("page"))
    .values(tally=bindparam("t")),
    "t", "job", "page",
)  # fmt: skip


class Tallies:
    """The tallies of one job's pages; within the caller's transaction."""

    def __init__(self, db: Database, job_id: int, scope: Scope, hosts: Hosts) -> None:
        self._db, self._job_id, self._scope, self._hosts = db, job_id, scope, hosts
        self._begin()
        db.on_rollback(self._begin)

    def _begin(self) -> None:
        self._moved: Counter[tuple[int, int]] = Counter()

    def of(self, status: int, error: str, host_id: int, found_as: int, standing: Standing) -> int:
        """The count of a page that ended so; 0 for a file that only lists pages."""
        if found_as in NO_PAGES:
            return 0
        site = self._scope.listed or self._hosts.of_site(host_id)
        return tally_of(word_of(status, error), site=site, as_page=self._scope.as_page(standing))

    def ended(self, page: PageResult, host_id: int, found_as: int, standing: Standing) -> int:
        """The count of a page that is done; a redirect has none until it is seen to lead nowhere."""
        if redirect_of(page) is not None:
            return 0
        return self.of(page.status, page.error, host_id, found_as, standing)

    def nearer(self, page_id: int, tally: int, standing: Standing) -> None:
        """Count a page by what it is, when it has come nearer."""
        if tally and self._scope.as_page(standing):
            self.move([(page_id, tally, as_page_tally(tally))])

    def as_site(self, tally: int, standing: Standing) -> int:
        """The same of a page whose host is part of the site from now on."""
        return site_tally(tally, as_page=self._scope.as_page(standing)) if tally else 0

    def move(self, pages: Iterable[tuple[int, int, int]]) -> None:
        """Count pages elsewhere: the number of each, the count that it leaves and the one that it comes to."""
        rows = []
        for page_id, before, after in pages:
            if before != after:
                self._moved[before, after] += 1
                rows.append((after, self._job_id, page_id))
        self._db.many(_RETALLY, rows)

    def take_moved(self) -> Counter[tuple[int, int]]:
        """How many pages moved since the last call, by the counts that they left and that they came to."""
        moved, self._moved = self._moved, Counter()
        return moved


def redirect_of(page: PageResult) -> bytes | None:
    """The key of the URL that a page redirects to."""
    entry = page.outlinks[:LINK_ENTRY]
    moved = page.done and page.status in REDIRECTS and len(entry) == LINK_ENTRY and entry[-1] == FoundAs.REDIRECT
    return entry[:-1] if moved else None
