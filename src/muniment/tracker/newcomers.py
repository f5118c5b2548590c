"""Newcomers: pages that a batch brings. Their rows are written at once, each with the best that its parents offer.

Beside other processes, one of them may have brought the same URL in between: its page stands, and ours is its page.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from msgspec import Struct
from sqlalchemy import bindparam, select

from muniment.model.page import PageState
from muniment.model.url import host_of, is_web
from muniment.rules.scope import FAR, Scope, Standing, on_site
from muniment.rules.verdicts import Ruleset
from muniment.tracker.engine import Database, Lookup, Prepared, Row
from muniment.tracker.hosts import Host, Hosts
from muniment.tracker.tables import page_keys, pages

__all__ = ["PAGES_OF_KEYS", "Newcomer", "Newcomers", "Offer", "Written"]

_COLUMNS = (
    "job_id", "id", "key", "url", "host_id", "state", "attempts", "attempts_remaining", "nice", "ready_at",
    "link_hops", "requisite_hops", "redirects", "found_as", "via_id", "seed_id", "on_site", "included", "in_scope",
    "ruleset", "reason",
)  # fmt: skip
_INSERT = Prepared(pages.insert().values({name: bindparam(name) for name in _COLUMNS}), *_COLUMNS)
_KNOW = page_keys.insert().values(job_id=bindparam("job"), key=bindparam("k"), page_id=bindparam("page"))
_ALONE = Prepared(_KNOW, "job", "k", "page")
_BESIDE_OTHERS = Prepared(_KNOW.prefix_with("OR IGNORE", dialect="sqlite"), "job", "k", "page")
PAGES_OF_KEYS = Lookup(select(page_keys.c.key, page_keys.c.page_id), page_keys.c.job_id, page_keys.c.key)


class Offer(Struct):
    """The best that the parents of one batch offer a page."""

    link: int = FAR
    requisite: int = FAR
    redirects: int = 0


class Newcomer(Struct):
    """A page that this batch brings."""

    page_id: int
    key: bytes
    url: str
    found_as: int
    via_id: int | None
    seed_id: int | None


class Written(Struct, frozen=True):
    """What became of the pages of a batch."""

    rows: Sequence[Row] = ()
    """Those that nobody else brought."""
    all_new: bool = True
    """No other process brought one of them first; otherwise who asks has to look all of them up."""

    def skipped(self) -> list[tuple[str, str]]:
        """URL and reason of those that rules keep out."""
        return [(str(row[3]), str(row[20])) for row in self.rows if row[20]]

    def pending(self) -> Counter[int]:
        """Pages that wait, per host number."""
        ready = PageState.READY.value
        return Counter(row[4] for row in self.rows if row[18] and row[5] == ready)


class Newcomers:
    """Writes the new pages of one job, within the caller's transaction."""

    def __init__(self, db: Database, job_id: int, scope: Scope, hosts: Hosts) -> None:
        self._db, self._job_id, self._scope, self._hosts = db, job_id, scope, hosts

    def write(self, fresh: list[tuple[Newcomer, Offer | None]], ruleset: Ruleset, tries: int) -> Written:
        """Write pages, each with the best offer that it got."""
        if not fresh:
            return Written()
        names = [host_of(page.url) if is_web(page.url) else "" for page, _ in fresh]
        self._hosts.meet(names)
        rows = [
            self._row(page, offer, self._hosts.get(name), ruleset, tries)
            for (page, offer), name in zip(fresh, names, strict=True)
        ]
        ours = rows if self._first([(self._job_id, page.key, page.page_id) for page, _ in fresh]) else self._ours(rows)
        self._db.many(_INSERT, ours)
        return Written(ours, len(ours) == len(rows))

    def _first(self, keys: list[Row]) -> bool:
        """Make the URLs known; whether nobody else did before."""
        if not self._db.shared:
            self._db.many(_ALONE, keys)
            return True
        # in order, so that processes with the same URLs never wait for each other in a circle
        return self._db.changed(_BESIDE_OTHERS, sorted(keys)) == len(keys)

    def _ours(self, rows: list[Row]) -> list[Row]:
        """The rows whose URLs nobody else made known."""
        standing = set(self._db.lookup(PAGES_OF_KEYS, self._job_id, [row[2] for row in rows]))
        return [row for row in rows if (row[2], row[1]) in standing]

    def _row(self, page: Newcomer, offer: Offer | None, host: Host, rules: Ruleset, tries: int) -> Row:
        link, requisite, redirects = (offer.link, offer.requisite, offer.redirects) if offer else (FAR, FAR, 0)
        site = on_site(page.url, host.site_paths)
        included = not rules.include or rules.include.match(page.url) is not None
        reason = rules.reason(page.url, link, page.found_as, listed=self._scope.listed)
        scope = self._scope.admits(Standing(link, requisite, site, included, redirects))
        state = PageState.SKIPPED if reason else PageState.READY
        return (
            self._job_id, page.page_id, page.key, page.url, host.host_id, state.value, 0, tries, 0, 0,
            link, requisite, redirects, page.found_as, page.via_id, page.seed_id, site, included, scope,
            rules.version, reason,
        )  # fmt: skip
